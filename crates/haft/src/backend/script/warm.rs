//! The shelf of idle workers that all Python tools share.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::worker::Worker;
use crate::backend::process::Household;

/// How long a worker stays warm without a call.
pub const IDLE_MAX: Duration = Duration::from_mins(5);
/// How long after a spare was taken the next one is started: what has only one call to make ends
/// before that and starts no process for nothing.
const REFILL_AFTER: Duration = Duration::from_secs(1);
/// How long the workers' own tasks may take to end when everything stops.
const STOP_WAIT_MAX: Duration = Duration::from_secs(2);
/// How many workers stay warm, all tools together; beyond that the one idle for longest goes.
pub const IDLE_WORKERS_MAX: usize = 32;

/// Workers that wait for the next call of their tool. One for the whole runtime, so that many tools
/// do not mean many idle processes.
pub struct WarmWorkers {
    idle_max: Duration,
    workers_max: usize,
    shelf: Mutex<Shelf>,
    tasks: TaskTracker,
    household: Household,
}

/// The tool a worker belongs to.
pub(super) struct Owner {
    id: u64,
    stopped: AtomicBool,
}

#[derive(Default)]
struct Shelf {
    /// The one idle for longest first.
    idle: Vec<Idle>,
    /// Wakes when the first one has been idle for too long.
    clearing: Option<AbortOnDropHandle<()>>,
    /// A process without a tool, so that a tool's first call need not wait for Python.
    spare: Option<Spare>,
    /// Wakes when it is time for the next spare.
    refilling: Option<AbortOnDropHandle<()>>,
    /// Nothing is kept any more.
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
    /// An empty shelf with the usual limits.
    pub fn new() -> Arc<Self> {
        Self::with_limits(IDLE_MAX, IDLE_WORKERS_MAX)
    }

    /// An empty shelf that keeps `workers_max` workers, each for `idle_max`.
    pub fn with_limits(idle_max: Duration, workers_max: usize) -> Arc<Self> {
        let shelf = Mutex::default();
        let (tasks, household) = (TaskTracker::new(), Household::new());
        Arc::new(Self { idle_max, workers_max, shelf, tasks, household })
    }

    /// Starts a process that waits for whichever tool is called first. A Python that cannot be
    /// started is reported by the call that needs it.
    pub fn prepare(&self, python: &str) {
        let Ok(worker) = self.start(python) else { return };
        let mut kept = self.lock();
        // Asked under the lock: a spare that `stop` did not see would never end, and `stop` would
        // wait for it.
        if !kept.is_stopped {
            kept.spare = Some(Spare { python: python.to_owned(), worker });
        }
    }

    /// Stops every idle worker and waits until they are gone. To be called when no call is under
    /// way any more.
    pub async fn stop(&self) {
        let (idle, spare) = {
            let mut kept = self.lock();
            kept.is_stopped = true;
            kept.clearing = None;
            kept.refilling = None;
            (std::mem::take(&mut kept.idle), kept.spare.take())
        };
        // It has loaded nothing, so there is nothing to end in order.
        drop(spare);
        retire_all(idle).await;
        self.tasks.close();
        // Every task ends with its process. Were one to hang, the shutdown must not: what is left
        // of the processes is killed after this.
        let _ = timeout(STOP_WAIT_MAX, self.tasks.wait()).await;
    }

    /// Whose processes the workers are.
    pub fn household(&self) -> Household {
        self.household
    }

    /// A new process without a tool.
    pub(super) fn start(&self, python: &str) -> io::Result<Worker> {
        Worker::start(python, &self.tasks, self.household)
    }

    /// The worker of `owner` that was used last. One whose files have changed is replaced.
    pub(super) fn take(&self, owner: &Owner, script: &Path) -> Option<Worker> {
        loop {
            let mut worker = {
                let mut kept = self.lock();
                let last = kept.idle.iter().rposition(|idle| idle.owner == owner.id)?;
                kept.idle.remove(last).worker
            };
            if worker.is_current(script) {
                return Some(worker);
            }
            self.retire(worker);
        }
    }

    /// The waiting process, if it runs this Python; another one takes its place a little later.
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
            // Asked under the lock: `stop_all_of` sets it before it looks at the kept.
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

    /// Ends a worker that is not used again.
    pub(super) fn retire(&self, worker: Worker) {
        self.tasks.spawn(worker.retire());
    }

    /// Stops the workers of one tool, now and whenever one comes back.
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
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Retires workers that were idle for too long, until the shelf is empty.
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
