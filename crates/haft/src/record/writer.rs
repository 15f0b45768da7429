//! Scheduling of writes. See the [module](super) for why a worker of the runtime writes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Waker;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::batch::Batch;
use super::clock::Clock;
use super::error::LogError;
use super::files::utc_date;
use super::flusher::flush_when_claimed;
use super::health::LogHealth;
use super::line::Line;
use super::notice::report;
use super::queue::{Answers, Flusher, Queue, Thread, Turn};
use super::sink::{Sink, Written};
use super::{Durability, Limits, LogFailurePolicy, LogOptions};

/// Number of batches that the flusher writes before the writer thread takes over.
const ROUNDS_OF_A_TASK_MAX: u32 = 4;

/// The flusher waits for the lines of other calls if at least this many are in flight. Fewer gain nothing from sharing
/// a write, and their latency is what counts.
const COMPANY_MIN: usize = 4;

/// State shared by callers, the writer thread and the watch thread.
#[derive(Debug)]
pub(super) struct Writer {
    options: LogOptions,
    limits: Limits,
    clock: Arc<dyn Clock>,
    queue: Mutex<Queue>,
    /// Only the holder of the turn locks it, so no thread ever waits for it.
    sink: Mutex<Sink>,
    /// Writes on workers of a runtime.
    tasks: TaskTracker,
    /// True while the queue fails, for the check before each call.
    failing: Arc<AtomicBool>,
    /// Wakes the writer thread.
    work: Condvar,
    /// Wakes the watch thread.
    watch: Condvar,
}

impl Writer {
    /// Starts the two threads, which end after [`stop`](Self::stop), and lets the writer thread open
    /// the file: a disk that hangs must not hold the caller.
    pub(super) fn start(
        options: LogOptions,
        limits: Limits,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, LogError> {
        let failing = Arc::<AtomicBool>::default();
        let mut queue = Queue::new(&options, limits, Arc::clone(&failing));
        let sink = Sink::new(&options, limits, utc_date(clock.now()));
        queue.turn = Turn::Writing { since: Instant::now(), by: Thread::Own };
        queue.watched = true;
        let on_failure = options.on_failure;
        let writer = Arc::new(Self {
            queue: Mutex::new(queue),
            sink: Mutex::new(sink),
            tasks: TaskTracker::new(),
            options,
            limits,
            clock,
            failing,
            work: Condvar::new(),
            watch: Condvar::new(),
        });
        let (opened, outcome) = mpsc::channel();
        writer.start_thread("haft-log-write", move |writer| {
            let _ = opened.send(writer.open_sink());
            writer.write_when_wanted();
        })?;
        writer.start_thread("haft-log-watch", Self::watch_for_stalls)?;
        let stall_after = limits.stall_after;
        let outcome = outcome.recv_timeout(stall_after);
        let outcome = outcome.unwrap_or_else(|_| Err(writer.stalled()));
        match (outcome, on_failure) {
            (Ok(()), _) | (Err(_), LogFailurePolicy::Degrade) => Ok(writer),
            (Err(error), LogFailurePolicy::Refuse) => {
                writer.stop();
                Err(error)
            }
        }
    }

    /// Opens the file, in the turn that the queue was made with.
    fn open_sink(&self) -> Result<(), LogError> {
        let mut sink = self.sink.lock();
        let opened = sink.open();
        let mut queue = self.queue.lock();
        queue.low_space = sink.low_space();
        drop(sink);
        let problem = opened.as_ref().err().cloned();
        let written = Written { problem, ..Written::default() };
        queue.settle(Batch::default(), written, &*self.clock);
        queue.finish();
        let notices = match self.options.on_failure {
            // The caller gets the error.
            LogFailurePolicy::Refuse if opened.is_err() => Vec::new(),
            LogFailurePolicy::Refuse | LogFailurePolicy::Degrade => queue.take_notices(),
        };
        drop(queue);
        report(notices);
        opened
    }

    /// Queues `line` and, if the runtime can spare a worker, lets the flusher write it there.
    pub(super) fn submit(
        self: &Arc<Self>,
        line: &mut Line,
        calls_in_flight: usize,
    ) -> oneshot::Receiver<Result<(), LogError>> {
        let (waiter, answer) = oneshot::channel();
        let may_write_here = self.may_write_here();
        let mut queue = self.queue.lock();
        queue.push(line, Some(waiter));
        if queue.turn != Turn::Free {
            // The thread that has the turn looks at the queue again before it stops.
            return answer;
        }
        if !may_write_here || queue.flusher.as_ref().is_some_and(|it| it.is_late) {
            self.call_writer(queue);
            return answer;
        }
        queue.claim();
        self.wake_watch(&mut queue);
        let in_company = calls_in_flight >= COMPANY_MIN;
        if let Some(flusher) = &mut queue.flusher {
            flusher.in_company = in_company;
            let waker = flusher.waker.clone();
            drop(queue);
            waker.inspect(Waker::wake_by_ref);
        } else {
            self.start_flusher(queue, in_company);
        }
        answer
    }

    fn start_flusher(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>, in_company: bool) {
        let Ok(runtime) = Handle::try_current() else { return self.call_writer(queue) };
        let flusher = Flusher { runtime: runtime.clone(), waker: None, in_company, is_late: false };
        queue.flusher = Some(flusher);
        drop(queue);
        self.tasks.spawn_on(flush_when_claimed(Arc::clone(self)), &runtime);
    }

    /// Queues `line` for the writer thread.
    pub(super) fn submit_detached(&self, line: &mut Line) {
        let mut queue = self.queue.lock();
        queue.push(line, None);
        self.call_writer(queue);
    }

    /// Returns `None` if calls may run, otherwise the result to wait for.
    pub(super) fn retry_if_failing(&self) -> Option<oneshot::Receiver<Result<(), LogError>>> {
        if !self.failing.load(Ordering::Acquire) {
            return None;
        }
        match self.options.on_failure {
            LogFailurePolicy::Degrade => return None,
            LogFailurePolicy::Refuse => {}
        }
        let (waiter, answer) = oneshot::channel();
        let mut queue = self.queue.lock();
        queue.retry(waiter);
        self.call_writer(queue);
        Some(answer)
    }

    pub(super) fn options(&self) -> &LogOptions {
        &self.options
    }

    pub(super) fn health(&self) -> LogHealth {
        self.queue.lock().health()
    }

    /// Asks for everything to be written; the answer comes when it is, or when it cannot be.
    pub(super) fn flush(&self) -> oneshot::Receiver<Result<(), LogError>> {
        let (waiter, answer) = oneshot::channel();
        let mut queue = self.queue.lock();
        if queue.is_idle() {
            let _ = waiter.send(Ok(()));
        } else {
            queue.flush(waiter);
            self.call_writer(queue);
        }
        answer
    }

    /// The error for a caller whose result never came.
    pub(super) fn gone(&self) -> LogError {
        LogError::write(&self.options.dir, std::io::Error::other("the log's writer is gone"))
    }

    /// Lets the threads end once the queue is written.
    pub(super) fn stop(&self) {
        let mut queue = self.queue.lock();
        queue.stopped = true;
        let flusher = queue.flusher.as_mut().and_then(|it| it.waker.take());
        drop(queue);
        flusher.inspect(Waker::wake_by_ref);
        self.work.notify_one();
        self.watch.notify_one();
    }

    /// Writes what is queued if the flusher still has the turn: the watch takes it from one that is late.
    pub(super) fn write_claimed(&self) {
        let queue = self.queue.lock();
        if matches!(queue.turn, Turn::Claimed { .. }) {
            self.lead(queue, ROUNDS_OF_A_TASK_MAX, Thread::Worker);
        }
    }

    /// The queue, for the flusher.
    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// Writes what is queued, for at most `rounds_max` batches. The caller has made sure, under
    /// this very lock, that the turn is its own.
    fn lead<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, rounds_max: u32, by: Thread) {
        self.wake_watch(&mut queue);
        let mut sink = self.sink.lock();
        let mut failed = None;
        for round in 0..rounds_max {
            let must_probe = round == 0 && queue.problem().is_some();
            if !queue.has_pending() && !must_probe {
                break;
            }
            let now = Instant::now();
            queue.turn = Turn::Writing { since: now, by };
            let batch = queue.take_batch();
            drop(queue);
            let written = if batch.is_empty() {
                Written { problem: sink.probe(now).err(), ..Written::default() }
            } else {
                sink.write(&batch, now)
            };
            queue = self.queue.lock();
            queue.low_space = sink.low_space();
            let answers = queue.settle(batch, written, &*self.clock);
            if queue.problem().is_some() {
                failed = Some(answers);
                break;
            }
            drop(queue);
            let waiters = answers.send();
            queue = self.queue.lock();
            queue.keep(waiters);
        }
        drop(sink);
        queue.finish();
        if queue.wanted || queue.problem().is_some() {
            self.work.notify_one();
        }
        let notices = queue.take_notices();
        drop(queue);
        // Not before the turn has ended: a caller that receives the failure may ask for another attempt,
        // and this one must not answer for it.
        failed.map(Answers::send);
        report(notices);
    }

    /// The watch sleeps between busy spells, so it is woken once per spell and not once per entry.
    fn wake_watch(&self, queue: &mut Queue) {
        if !queue.watched {
            queue.watched = true;
            self.watch.notify_one();
        }
    }

    fn call_writer(&self, mut queue: MutexGuard<'_, Queue>) {
        // The current writer checks the queue again before it stops.
        if queue.turn == Turn::Free {
            queue.wanted = true;
            self.work.notify_one();
        }
        let notices = queue.take_notices();
        drop(queue);
        report(notices);
    }

    /// Returns true if a worker of this runtime may write. The flusher that a worker wakes runs there next, so
    /// no thread is woken, and a disk that hangs holds the worker but not the call, which other
    /// workers continue. The only worker of a runtime is not lent: its timers would stop, and with
    /// them every timeout. Nor does a worker wait for an fsync. A thread in `block_on` is not a
    /// worker.
    fn may_write_here(&self) -> bool {
        match self.options.durability {
            Durability::Disk => false,
            Durability::Os => {
                tokio::task::try_id().is_some()
                    && Handle::try_current().is_ok_and(|it| it.metrics().num_workers() > 1)
            }
        }
    }

    /// The writer thread: writes what callers leave to it, and tries again while the log fails.
    fn write_when_wanted(&self) {
        let mut queue = self.queue.lock();
        loop {
            if queue.wanted && queue.turn == Turn::Free {
                queue.wanted = false;
                self.lead(queue, u32::MAX, Thread::Own);
                queue = self.queue.lock();
            } else if queue.stopped && (queue.is_idle() || queue.problem().is_some()) {
                return;
            } else if queue.problem().is_some() {
                let wait = self.work.wait_for(&mut queue, self.limits.retry_every);
                queue.wanted |= wait.timed_out();
            } else {
                let wait = self.work.wait_for(&mut queue, self.limits.space_check_every);
                if wait.timed_out() && queue.turn == Turn::Free && queue.problem().is_none() {
                    self.inspect_space(queue);
                    queue = self.queue.lock();
                }
            }
        }
    }

    /// Checks the disk while nothing is written, so that an alarm does not wait for a call.
    fn inspect_space<'a>(&'a self, mut queue: MutexGuard<'a, Queue>) {
        queue.turn = Turn::Writing { since: Instant::now(), by: Thread::Own };
        self.wake_watch(&mut queue);
        drop(queue);
        let mut sink = self.sink.lock();
        let problem = sink.inspect_space().err();
        let mut queue = self.queue.lock();
        queue.low_space = sink.low_space();
        drop(sink);
        let written = Written { problem, ..Written::default() };
        queue.settle(Batch::default(), written, &*self.clock);
        queue.finish();
        let notices = queue.take_notices();
        drop(queue);
        report(notices);
    }

    /// The watch thread: notices a write that hangs, releases the calls that wait for it and
    /// reports it.
    fn watch_for_stalls(&self) {
        let Limits { stall_after, watch_every, .. } = self.limits;
        let mut idle = Duration::ZERO;
        let mut queue = self.queue.lock();
        while !(queue.stopped && queue.turn == Turn::Free) {
            if !queue.watched {
                self.watch.wait(&mut queue);
                idle = Duration::ZERO;
                continue;
            }
            self.watch.wait_for(&mut queue, watch_every);
            match queue.turn {
                Turn::Free => {
                    idle += watch_every;
                    queue.watched = idle < stall_after;
                    continue;
                }
                Turn::Claimed { since } if since.elapsed() >= watch_every => {
                    // The runtime is busy or has ended.
                    queue.revoke_claim();
                    self.work.notify_one();
                }
                Turn::Writing { since, .. } if since.elapsed() >= stall_after => {
                    queue.stall(&self.stalled(), &*self.clock);
                    let notices = queue.take_notices();
                    drop(queue);
                    report(notices);
                    queue = self.queue.lock();
                }
                Turn::Writing { since, by: Thread::Worker } if since.elapsed() >= watch_every => {
                    // Once is enough.
                    queue.turn = Turn::Writing { since, by: Thread::Own };
                    if let Some(runtime) = queue.flusher.as_ref().map(|it| it.runtime.clone()) {
                        drop(queue);
                        self.replace_worker(&runtime);
                        queue = self.queue.lock();
                    }
                }
                Turn::Claimed { .. } | Turn::Writing { .. } => {}
            }
            idle = Duration::ZERO;
        }
    }

    /// Wakes another worker of a runtime whose worker is held by the disk. The held one may be the
    /// one that polls sockets and timers, and tokio wakes no other for that before there is work.
    fn replace_worker(&self, runtime: &Handle) {
        self.tasks.spawn_on(async {}, runtime);
    }

    fn stalled(&self) -> LogError {
        LogError::Stalled { path: self.options.dir.clone(), after: self.limits.stall_after }
    }

    fn start_thread(
        self: &Arc<Self>,
        name: &str,
        run: impl FnOnce(&Self) + Send + 'static,
    ) -> Result<(), LogError> {
        let writer = Arc::clone(self);
        std::thread::Builder::new()
            .name(name.into())
            .spawn(move || run(&writer))
            .map(drop)
            .map_err(|error| LogError::write(&self.options.dir, error))
    }
}
