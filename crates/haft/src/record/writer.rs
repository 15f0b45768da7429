//! Who writes, and when. See the [module](super) for why a caller writes itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::clock::Clock;
use super::error::LogError;
use super::files::utc_date;
use super::health::LogHealth;
use super::line::Line;
use super::notice::report;
use super::queue::Queue;
use super::sink::{Sink, Written};
use super::{Durability, Limits, LogOptions, OnLogFailure, lock};

/// How many batches a caller writes for others before the writer thread takes over.
const ROUNDS_OF_A_CALLER_MAX: u32 = 4;

/// What callers, the writer thread and the watch thread share.
#[derive(Debug)]
pub(super) struct Writer {
    options: LogOptions,
    limits: Limits,
    clock: Arc<dyn Clock>,
    queue: Mutex<Queue>,
    /// Only who set `writing_since` locks it, so nobody ever waits for it.
    sink: Mutex<Sink>,
    /// Whether the queue is in trouble, for the look before each call.
    failing: Arc<AtomicBool>,
    /// Wakes the writer thread.
    work: Condvar,
    /// Wakes the watch thread.
    watch: Condvar,
}

impl Writer {
    /// Opens the file and starts the two threads, which end after [`stop`](Self::stop).
    pub(super) fn start(
        options: LogOptions,
        limits: Limits,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Self>, LogError> {
        let now = clock.now();
        let failing = Arc::<AtomicBool>::default();
        let mut queue = Queue::new(options.on_failure, limits, Arc::clone(&failing));
        let mut sink = Sink::new(&options, limits, utc_date(now));
        if let Err(error) = sink.open() {
            match options.on_failure {
                OnLogFailure::Refuse => return Err(error),
                OnLogFailure::Degrade => queue.fail(&error, now),
            }
        }
        report(queue.take_notices());
        let writer = Arc::new(Self {
            queue: Mutex::new(queue),
            sink: Mutex::new(sink),
            options,
            limits,
            clock,
            failing,
            work: Condvar::new(),
            watch: Condvar::new(),
        });
        writer.start_thread("haft-log-write", Self::write_when_wanted)?;
        writer.start_thread("haft-log-watch", Self::watch_for_stalls)?;
        Ok(writer)
    }

    /// Queues `line` and, where the runtime can spare this thread, writes it at once.
    pub(super) fn submit(&self, line: Line) -> oneshot::Receiver<Result<(), LogError>> {
        let (waiter, answer) = oneshot::channel();
        let may_write = self.may_write_here();
        let mut queue = lock(&self.queue);
        queue.push(line, Some(waiter));
        if may_write && queue.writing_since.is_none() {
            self.lead(queue, ROUNDS_OF_A_CALLER_MAX);
        } else {
            self.call_writer(queue);
        }
        answer
    }

    /// Queues `line` for the writer thread.
    pub(super) fn submit_detached(&self, line: Line) {
        let mut queue = lock(&self.queue);
        queue.push(line, None);
        self.call_writer(queue);
    }

    /// Tries again if the last write failed and the policy cares.
    pub(super) fn ready(&self) -> Result<(), LogError> {
        if !self.failing.load(Ordering::Acquire) {
            return Ok(());
        }
        match self.options.on_failure {
            OnLogFailure::Degrade => return Ok(()),
            OnLogFailure::Refuse => {}
        }
        let queue = lock(&self.queue);
        if queue.writing_since.is_none() && queue.problem().is_some() {
            self.lead(queue, 1);
        } else {
            drop(queue);
        }
        lock(&self.queue).problem().cloned().map_or(Ok(()), Err)
    }

    pub(super) fn health(&self) -> LogHealth {
        lock(&self.queue).health()
    }

    /// Asks for everything to be written; the answer comes when it is, or when it cannot be.
    pub(super) fn flush(&self) -> oneshot::Receiver<Result<(), LogError>> {
        let (waiter, answer) = oneshot::channel();
        let mut queue = lock(&self.queue);
        if queue.is_idle() {
            let _ = waiter.send(Ok(()));
        } else {
            queue.flush(waiter);
            self.call_writer(queue);
        }
        answer
    }

    /// What a caller is told whose answer never came.
    pub(super) fn gone(&self) -> LogError {
        LogError::write(&self.options.dir, std::io::Error::other("the log's writer is gone"))
    }

    /// Lets the threads end once the queue is written.
    pub(super) fn stop(&self) {
        lock(&self.queue).stopped = true;
        self.work.notify_one();
        self.watch.notify_one();
    }

    /// Writes what is queued, for at most `rounds_max` batches. The caller has made sure, under
    /// this very lock, that nobody else is writing.
    fn lead<'a>(&'a self, mut queue: MutexGuard<'a, Queue>, rounds_max: u32) {
        self.begin(&mut queue);
        let mut sink = lock(&self.sink);
        for round in 0..rounds_max {
            let must_probe = round == 0 && queue.problem().is_some();
            if !queue.has_pending() && !must_probe {
                break;
            }
            let batch = queue.take_batch();
            drop(queue);
            let written = if batch.is_empty() {
                Written { problem: sink.probe().err(), ..Written::default() }
            } else {
                sink.write(&batch)
            };
            queue = lock(&self.queue);
            queue.settle(batch, written, self.clock.now());
            queue.writing_since = Some(Instant::now());
            if queue.problem().is_some() {
                break;
            }
        }
        drop(sink);
        queue.finish();
        if queue.wanted || queue.problem().is_some() {
            self.work.notify_one();
        }
        let notices = queue.take_notices();
        drop(queue);
        report(notices);
    }

    fn begin(&self, queue: &mut Queue) {
        queue.writing_since = Some(Instant::now());
        // The watch sleeps while nothing is written, so it is woken once per busy spell and not
        // once per entry.
        if !queue.watched {
            queue.watched = true;
            self.watch.notify_one();
        }
    }

    fn call_writer(&self, mut queue: MutexGuard<'_, Queue>) {
        // Whoever is writing looks at the queue again before it stops.
        if queue.writing_since.is_none() {
            queue.wanted = true;
            self.work.notify_one();
        }
        let notices = queue.take_notices();
        drop(queue);
        report(notices);
    }

    /// Whether this thread may be held up by a disk. The only worker of a runtime may not: its
    /// timers would stop, and with them every timeout. Nor may a worker wait for an fsync.
    fn may_write_here(&self) -> bool {
        match self.options.durability {
            Durability::Os => {
                Handle::try_current().is_ok_and(|runtime| runtime.metrics().num_workers() > 1)
            }
            Durability::Disk => false,
        }
    }

    /// The writer thread: writes what callers leave to it, and tries again while the log fails.
    fn write_when_wanted(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if queue.wanted && queue.writing_since.is_none() {
                queue.wanted = false;
                self.lead(queue, u32::MAX);
                queue = lock(&self.queue);
            } else if queue.stopped && (queue.is_idle() || queue.problem().is_some()) {
                return;
            } else if queue.problem().is_some() {
                let (woken, wait) = self
                    .work
                    .wait_timeout(queue, self.limits.retry_every)
                    .unwrap_or_else(PoisonError::into_inner);
                queue = woken;
                queue.wanted |= wait.timed_out();
            } else {
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// The watch thread: notices a write that hangs, lets go those who wait for it and says so.
    fn watch_for_stalls(&self) {
        let stall_after = self.limits.stall_after;
        let mut queue = lock(&self.queue);
        while !queue.stopped {
            let wait = match queue.writing_since {
                None if !queue.watched => None,
                None => Some(stall_after),
                Some(since) => Some(stall_after.saturating_sub(since.elapsed())),
            };
            match wait {
                None => {
                    let woken = self.watch.wait(queue);
                    queue = woken.unwrap_or_else(PoisonError::into_inner);
                }
                Some(wait) if !wait.is_zero() => {
                    let woken = self.watch.wait_timeout(queue, wait);
                    queue = woken.unwrap_or_else(PoisonError::into_inner).0;
                    queue.watched = queue.writing_since.is_some();
                }
                Some(_) => {
                    let path = self.options.dir.clone();
                    let error = LogError::Stalled { path, after: stall_after };
                    queue.stall(&error, self.clock.now());
                    let notices = queue.take_notices();
                    drop(queue);
                    report(notices);
                    queue = lock(&self.queue);
                    queue = self
                        .watch
                        .wait_timeout(queue, stall_after)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0;
                }
            }
        }
    }

    fn start_thread(self: &Arc<Self>, name: &str, run: fn(&Self)) -> Result<(), LogError> {
        let writer = Arc::clone(self);
        std::thread::Builder::new()
            .name(name.into())
            .spawn(move || run(&writer))
            .map(drop)
            .map_err(|error| LogError::write(&self.options.dir, error))
    }
}
