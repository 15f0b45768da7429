//! The queue of lines, its waiters, and the health of the log. Bookkeeping only: it writes nothing,
//! and one lock guards it all.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::time::Instant;

use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::batch::Batch;
use super::clock::Clock;
use super::error::LogError;
use super::health::{LogHealth, LowSpace};
use super::line::Line;
use super::notice::Notice;
use super::sink::Written;
use super::space::part_bytes_max;
use super::{Limits, LogFailurePolicy, LogOptions};

/// The most that goes out in one write, unless a single line is longer. Files with a smaller limit get
/// smaller batches.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// A waiter for a line or for the whole queue.
pub(super) type Waiter = oneshot::Sender<Result<(), LogError>>;

/// Lines in the order they came, and the state of the log.
#[derive(Debug)]
pub(super) struct Queue {
    on_failure: LogFailurePolicy,
    limits: Limits,
    batch_bytes_max: usize,
    /// Present if the disk is nearly full.
    pub(super) low_space: Option<LowSpace>,
    pending: Batch,
    /// The waiters of the pending lines, one for each.
    waiters: VecDeque<Option<Waiter>>,
    /// The waiters of the lines that are being written.
    in_flight: VecDeque<Option<Waiter>>,
    /// An empty batch with its buffer.
    spare: Batch,
    /// Waiters for an empty queue.
    flushes: Vec<Waiter>,
    /// Waiters for the result of the next attempt, while the log fails.
    retries: Vec<Waiter>,
    failure: Option<FailureState>,
    /// A copy of the failure flag, for readers without the lock.
    failing: Arc<AtomicBool>,
    entries_lost: u64,
    notices: Vec<Notice>,
    /// At most one thread writes at a time.
    pub(super) turn: Turn,
    /// The task that writes on a worker of a runtime.
    pub(super) flusher: Option<Flusher>,
    /// A request to the writer thread.
    pub(super) wanted: bool,
    /// True while the watch thread is awake and checks `turn`.
    pub(super) watched: bool,
    /// The last handle is gone.
    pub(super) stopped: bool,
}

/// The right to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// No thread has it.
    Free,
    /// The flusher has it and has not started to write.
    Claimed { since: Instant },
    /// A thread is writing.
    Writing { since: Instant, by: Thread },
}

/// The kind of thread that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thread {
    /// A worker of a runtime. The runtime lacks it while the disk hangs.
    Worker,
    /// A thread of the log.
    Own,
}

/// The task that writes on a worker of a runtime. There is at most one.
#[derive(Debug)]
pub(super) struct Flusher {
    pub(super) runtime: Handle,
    /// None until the task was polled for the first time. It then looks at the turn unasked.
    pub(super) waker: Option<Waker>,
    /// Returns whether other calls are in flight, so that more lines are about to come.
    pub(super) in_company: bool,
    /// The task did not start to write in time. The writer thread replaces it until it does.
    pub(super) is_late: bool,
}

#[derive(Debug)]
struct FailureState {
    since: Timestamp,
    error: LogError,
    loss_reported: bool,
}

impl Queue {
    pub(super) fn new(options: &LogOptions, limits: Limits, failing: Arc<AtomicBool>) -> Self {
        let part = usize::try_from(part_bytes_max(options.max_bytes)).unwrap_or(usize::MAX);
        Self {
            on_failure: options.on_failure,
            limits,
            batch_bytes_max: BATCH_BYTES_MAX.min(part),
            low_space: None,
            pending: Batch::default(),
            waiters: VecDeque::new(),
            in_flight: VecDeque::new(),
            spare: Batch::default(),
            flushes: Vec::new(),
            retries: Vec::new(),
            failure: None,
            failing,
            entries_lost: 0,
            notices: Vec::new(),
            turn: Turn::Free,
            flusher: None,
            wanted: false,
            watched: false,
            stopped: false,
        }
    }

    /// Adds a line. While the log works there is no limit, because every line is being written;
    /// while it fails the backlog is bounded and the newest line is dropped, so that the backlog
    /// has no gaps.
    pub(super) fn push(&mut self, line: &mut Line, waiter: Option<Waiter>) {
        self.pending.push(line);
        let waiter = match &self.failure {
            // The thread that could write is stuck, so there is nothing to wait for.
            Some(failure) if self.is_stalled() => {
                let answer = on_failing_log(self.on_failure, &failure.error);
                waiter.map(|waiter| waiter.send(answer));
                None
            }
            _ => waiter,
        };
        self.waiters.push_back(waiter);
        self.trim();
    }

    /// Registers a waiter for an empty queue. A hanging log answers at once.
    pub(super) fn flush(&mut self, waiter: Waiter) {
        match &self.failure {
            Some(failure) if self.is_stalled() => drop(waiter.send(Err(failure.error.clone()))),
            _ => self.flushes.push(waiter),
        }
    }

    /// Registers a waiter for the outcome of the next attempt to write. A log that works, or
    /// hangs, answers at once.
    pub(super) fn retry(&mut self, waiter: Waiter) {
        match &self.failure {
            None => drop(waiter.send(Ok(()))),
            Some(failure) if self.is_stalled() => drop(waiter.send(Err(failure.error.clone()))),
            Some(_) => self.retries.push(waiter),
        }
    }

    /// Gives the turn to the flusher.
    pub(super) fn claim(&mut self) {
        self.turn = Turn::Claimed { since: Instant::now() };
    }

    /// Takes the turn from a flusher that has not started, for the writer thread.
    pub(super) fn revoke_claim(&mut self) {
        self.turn = Turn::Free;
        self.wanted = true;
        if let Some(flusher) = &mut self.flusher {
            flusher.is_late = true;
        }
    }

    /// Takes the lines of the next write. Their waiters stay here, so that they can be answered even if
    /// the write hangs.
    pub(super) fn take_batch(&mut self) -> Batch {
        let mut batch = std::mem::take(&mut self.spare);
        self.pending.move_front(&mut batch, self.batch_bytes_max);
        if self.pending.is_empty() {
            std::mem::swap(&mut self.in_flight, &mut self.waiters);
        } else {
            self.in_flight.extend(self.waiters.drain(..batch.len()));
        }
        batch
    }

    /// Takes note of the outcome of a batch, and returns the answers to send. Lines that were not stored are
    /// kept in their place. The state changes before any waiter is answered: one that learns of a failure
    /// and then asks whether the log is ready must not be let through.
    pub(super) fn settle(
        &mut self,
        mut batch: Batch,
        written: Written,
        clock: &dyn Clock,
    ) -> Answers {
        let Written { stored, safe, problem } = written;
        let waiters = std::mem::take(&mut self.in_flight);
        if stored < batch.len() {
            let kept = batch.len() - stored;
            self.pending.put_back(&mut batch, stored);
            (0..kept).for_each(|_| self.waiters.push_front(None));
        }
        batch.clear();
        self.spare = batch;
        match &problem {
            Some(error) => self.fail(error, clock),
            None => self.recover(),
        }
        self.trim();
        Answers { waiters, safe, problem, on_failure: self.on_failure }
    }

    /// Takes the empty list of answers back, for the next batch.
    pub(super) fn keep(&mut self, waiters: VecDeque<Option<Waiter>>) {
        if self.in_flight.is_empty() {
            self.in_flight = waiters;
        }
    }

    /// Records that the running write hangs, and releases all waiters.
    pub(super) fn stall(&mut self, error: &LogError, clock: &dyn Clock) {
        self.fail(error, clock);
        let pending = self.waiters.iter_mut().filter_map(Option::take);
        let in_flight = self.in_flight.iter_mut().filter_map(Option::take);
        for waiter in pending.chain(in_flight) {
            let _ = waiter.send(on_failing_log(self.on_failure, error));
        }
        for waiter in self.flushes.drain(..).chain(self.retries.drain(..)) {
            let _ = waiter.send(Err(error.clone()));
        }
    }

    /// Ends a turn of writing. Notifies the waiters for an empty queue if it is empty, or if it
    /// will not be soon.
    pub(super) fn finish(&mut self) {
        self.turn = Turn::Free;
        for waiter in self.retries.drain(..) {
            let _ = waiter.send(self.failure.as_ref().map_or(Ok(()), |it| Err(it.error.clone())));
        }
        let answer = match &self.failure {
            _ if self.pending.is_empty() => Ok(()),
            Some(failure) => Err(failure.error.clone()),
            None => return self.wanted = true,
        };
        for waiter in self.flushes.drain(..) {
            let _ = waiter.send(answer.clone());
        }
    }

    /// Takes the notices. They are taken under the lock and reported without it, because a
    /// subscriber may be slow.
    pub(super) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// The error of a failing log.
    pub(super) fn problem(&self) -> Option<&LogError> {
        self.failure.as_ref().map(|failure| &failure.error)
    }

    /// Returns true if everything is written.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.turn == Turn::Free
    }

    /// Returns true if lines are queued.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The health of the log.
    pub(super) fn health(&self) -> LogHealth {
        let entries_lost = self.entries_lost;
        match &self.failure {
            None => LogHealth::Working { entries_lost, low_space: self.low_space },
            Some(failure) => LogHealth::Failing {
                since: failure.since,
                problem: failure.error.clone(),
                entries_kept: self.pending.len() + self.in_flight.len(),
                entries_lost,
            },
        }
    }

    fn is_stalled(&self) -> bool {
        matches!(self.turn, Turn::Writing { .. })
            && matches!(self.problem(), Some(LogError::Stalled { .. }))
    }

    /// Takes note that the log cannot be written.
    pub(super) fn fail(&mut self, error: &LogError, clock: &dyn Clock) {
        self.failing.store(true, Ordering::Release);
        if let Some(failure) = &mut self.failure {
            failure.error = error.clone();
            return;
        }
        self.failure =
            Some(FailureState { since: clock.now(), error: error.clone(), loss_reported: false });
        self.notices.push(Notice::Failing(error.clone()));
    }

    fn recover(&mut self) {
        if self.failure.take().is_some() {
            self.failing.store(false, Ordering::Release);
            self.notices.push(Notice::Recovered { entries_lost: self.entries_lost });
        }
    }

    /// Drops the newest lines until the backlog is within its limits, if the log fails.
    fn trim(&mut self) {
        let Limits { backlog_entries_max, backlog_bytes_max, .. } = self.limits;
        let Some(failure) = &mut self.failure else {
            return;
        };
        while (self.pending.len() > backlog_entries_max || self.pending.bytes() > backlog_bytes_max)
            && self.pending.pop()
        {
            self.entries_lost += 1;
            let answer = on_failing_log(self.on_failure, &failure.error);
            self.waiters.pop_back().flatten().map(|waiter| waiter.send(answer));
            if !std::mem::replace(&mut failure.loss_reported, true) {
                self.notices.push(Notice::Losing { entries_kept: self.pending.len() });
            }
        }
    }
}

/// The answers to those who wait for the lines of a batch. They are sent without the lock, because each
/// wakes a task.
#[derive(Debug)]
pub(super) struct Answers {
    waiters: VecDeque<Option<Waiter>>,
    safe: usize,
    problem: Option<LogError>,
    on_failure: LogFailurePolicy,
}

impl Answers {
    /// Sends them all. Returns the empty list.
    pub(super) fn send(self) -> VecDeque<Option<Waiter>> {
        let Self { mut waiters, safe, problem, on_failure } = self;
        for (index, waiter) in waiters.drain(..).enumerate() {
            let Some(waiter) = waiter else { continue };
            let _ = waiter.send(match &problem {
                Some(error) if index >= safe => on_failing_log(on_failure, error),
                _ => Ok(()),
            });
        }
        waiters
    }
}

/// The result for the caller of a line that is not in the file.
fn on_failing_log(on_failure: LogFailurePolicy, error: &LogError) -> Result<(), LogError> {
    match on_failure {
        LogFailurePolicy::Refuse => Err(error.clone()),
        LogFailurePolicy::Degrade => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::SystemClock;
    use super::*;

    /// Failure, loss and recovery are each reported once, whatever the number of entries.
    #[test]
    fn changes_are_reported_once() {
        let limits = Limits { backlog_entries_max: 1, ..Limits::default() };
        let options =
            LogOptions { on_failure: LogFailurePolicy::Degrade, ..LogOptions::new("unused") };
        let mut queue = Queue::new(&options, limits, Arc::default());
        let error = || LogError::write("log".as_ref(), std::io::ErrorKind::StorageFull.into());
        for full in [true, true, true, false, false] {
            let date = jiff::civil::date(2026, 7, 15);
            queue.push(&mut Line { date, text: "{}\n".into(), memory: None }, None);
            let batch = queue.take_batch();
            let stored = if full { 0 } else { batch.len() };
            let written = Written { stored, safe: stored, problem: full.then(error) };
            queue.settle(batch, written, &SystemClock).send();
        }
        let reports = queue.take_notices();
        assert!(
            matches!(
                reports[..],
                [
                    Notice::Failing(_),
                    Notice::Losing { entries_kept: 1 },
                    Notice::Recovered { entries_lost: 3 },
                ]
            ),
            "{reports:?}"
        );
    }
}
