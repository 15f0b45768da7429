//! The pool of idle workers that all Python tools share.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::worker::Worker;
use crate::backend::process::ProcessScope;
use crate::backend::sandbox::Confined;

/// Time a worker stays warm without a call.
pub const IDLE_MAX: Duration = Duration::from_mins(5);
/// Delay before the next spare starts: a run with a single call ends before that and starts no
/// useless process.
const REFILL_AFTER: Duration = Duration::from_secs(1);
/// Time limit for the workers' tasks at shutdown.
const STOP_WAIT_MAX: Duration = Duration::from_secs(2);
/// Maximum number of warm workers of all tools; beyond that the longest idle one is stopped.
pub const IDLE_WORKERS_MAX: usize = 32;

/// Workers that wait for the next call of their tool. One pool per runtime, so that many tools do
/// not mean many idle processes.
pub struct WarmWorkers {
    idle_max: Duration,
    workers_max: usize,
    shelf: Mutex<Shelf>,
    tasks: TaskTracker,
    scope: ProcessScope,
}

/// The tool a worker belongs to.
pub(super) struct Owner {
    id: u64,
    stopped: AtomicBool,
}

#[derive(Default)]
struct Shelf {
    /// Longest idle first.
    idle: Vec<Idle>,
    /// Wakes when the first worker has been idle for too long.
    clearing: Option<AbortOnDropHandle<()>>,
    /// A process without a tool, so that a tool's first call need not wait for Python.
    spare: Option<Spare>,
    /// Wakes when it is time for the next spare.
    refilling: Option<AbortOnDropHandle<()>>,
    /// Set at shutdown: no worker is kept.
    is_stopped: bool,
}

struct Spare {
    python: String,
    worker: Worker,
}

struct Idle {
    owner: u64,
    worker: Worker,
    until: Instant,
}

impl Owner {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), stopped: AtomicBool::new(false) }
    }
}

impl WarmWorkers {
    /// Creates an empty pool with the default limits.
    pub fn new() -> Arc<Self> {
        Self::with_limits(IDLE_MAX, IDLE_WORKERS_MAX)
    }

    /// Creates an empty pool of `workers_max` workers, each kept for `idle_max`.
    pub fn with_limits(idle_max: Duration, workers_max: usize) -> Arc<Self> {
        let shelf = Mutex::default();
        let (tasks, scope) = (TaskTracker::new(), ProcessScope::new());
        Arc::new(Self { idle_max, workers_max, shelf, tasks, scope })
    }

    /// Starts a process for the first tool that is called. If Python cannot be started, the call
    /// that needs it reports the error.
    pub fn prepare(&self, python: &str) {
        let Ok(worker) = self.start(python) else { return };
        let mut kept = self.lock();
        // Checked under the lock: a spare that `stop` did not see would never end, and `stop` would
        // wait for it.
        if !kept.is_stopped {
            kept.spare = Some(Spare { python: python.to_owned(), worker });
        }
    }

    /// Stops every idle worker and waits for them. Call it when no call is in flight.
    pub async fn stop(&self) {
        let (idle, spare) = {
            let mut kept = self.lock();
            kept.is_stopped = true;
            kept.clearing = None;
            kept.refilling = None;
            (std::mem::take(&mut kept.idle), kept.spare.take())
        };
        // It has loaded nothing, so it needs no graceful end.
        drop(spare);
        retire_all(idle).await;
        self.tasks.close();
        // Every task ends with its process. If one hangs, the shutdown must not: the remaining
        // processes are killed afterwards.
        let _ = timeout(STOP_WAIT_MAX, self.tasks.wait()).await;
    }

    /// The scope of the workers' processes.
    pub fn scope(&self) -> ProcessScope {
        self.scope
    }

    /// Starts a process without a tool.
    pub(super) fn start(&self, python: &str) -> io::Result<Worker> {
        Worker::start(python, &self.tasks, self.scope)
    }

    /// Starts a process for one tool, inside its sandbox.
    pub(super) fn start_confined(&self, confined: Confined) -> io::Result<Worker> {
        Worker::start_confined(confined, &self.tasks, self.scope)
    }

    /// Returns the most recently used worker of `owner`. One whose files have changed is replaced.
    pub(super) fn take(&self, owner: &Owner) -> Option<Worker> {
        loop {
            let mut worker = {
                let mut kept = self.lock();
                let last = kept.idle.iter().rposition(|idle| idle.owner == owner.id)?;
                kept.idle.remove(last).worker
            };
            if worker.is_current() {
                return Some(worker);
            }
            self.retire(worker);
        }
    }

    /// Returns the spare process if it runs this Python; a new spare starts a little later.
    pub(super) fn take_spare(self: &Arc<Self>, python: &str) -> Option<Worker> {
        let mut kept = self.lock();
        let spare = kept.spare.take_if(|spare| spare.python == python)?;
        let (warm, python) = (Arc::downgrade(self), spare.python);
        let refill = self.tasks.spawn(async move {
            sleep_until(Instant::now() + REFILL_AFTER).await;
            if let Some(warm) = warm.upgrade() {
                warm.prepare(&python);
            }
        });
        kept.refilling = Some(AbortOnDropHandle::new(refill));
        let mut worker = spare.worker;
        worker.is_alive().then_some(worker)
    }

    #[cfg(test)]
    pub(super) fn spare_id(&self) -> Option<i32> {
        self.lock().spare.as_ref().map(|spare| spare.worker.id())
    }

    /// Keeps a worker for the next call.
    pub(super) fn put(self: &Arc<Self>, owner: &Owner, worker: Worker) {
        let surplus = {
            let mut kept = self.lock();
            let until = Instant::now() + self.idle_max;
            kept.idle.push(Idle { owner: owner.id, worker, until });
            if kept.clearing.as_ref().is_none_or(AbortOnDropHandle::is_finished) {
                let clearing = self.tasks.spawn(clear(Arc::downgrade(self)));
                kept.clearing = Some(AbortOnDropHandle::new(clearing));
            }
            // Checked under the lock: `stop_all_of` sets it before it reads the idle list.
            if kept.is_stopped || owner.stopped.load(Ordering::SeqCst) {
                kept.idle.pop()
            } else if kept.idle.len() > self.workers_max {
                Some(kept.idle.remove(0))
            } else {
                None
            }
        };
        if let Some(Idle { worker, .. }) = surplus {
            self.retire(worker);
        }
    }

    /// Ends a worker.
    pub(super) fn retire(&self, worker: Worker) {
        self.tasks.spawn(worker.retire());
    }

    /// Stops the workers of one tool, now and when one is returned later.
    pub(super) async fn stop_all_of(&self, owner: &Owner) {
        owner.stopped.store(true, Ordering::SeqCst);
        let idle = self.take_all_of(owner);
        retire_all(idle).await;
    }

    /// Kills the workers of one tool.
    pub(super) fn drop_all_of(&self, owner: &Owner) {
        drop(self.take_all_of(owner));
    }

    fn take_all_of(&self, owner: &Owner) -> Vec<Idle> {
        self.lock().idle.extract_if(.., |idle| idle.owner == owner.id).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock()
    }
}

/// Retires workers that were idle for too long, until the pool is empty.
async fn clear(warm: Weak<WarmWorkers>) {
    loop {
        let next = {
            let Some(warm) = warm.upgrade() else { return };
            let shelf = warm.lock();
            let Some(next) = shelf.idle.first() else {
                return;
            };
            next.until
        };
        sleep_until(next).await;
        let Some(warm) = warm.upgrade() else { return };
        let now = Instant::now();
        let expired: Vec<Idle> =
            warm.lock().idle.extract_if(.., |idle| idle.until <= now).collect();
        for Idle { worker, .. } in expired {
            warm.retire(worker);
        }
    }
}

async fn retire_all(idle: Vec<Idle>) {
    let retiring: JoinSet<()> = idle.into_iter().map(|idle| idle.worker.retire()).collect();
    retiring.join_all().await;
}
