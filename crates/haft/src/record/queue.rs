//! What waits to be written, who waits for it, and how the log is doing. Bookkeeping only: it
//! writes nothing, and one lock guards it all.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::error::LogError;
use super::health::{LogHealth, LowSpace};
use super::line::Line;
use super::notice::Notice;
use super::sink::Written;
use super::space::part_bytes_max;
use super::{Limits, LogOptions, OnLogFailure};

/// The most that goes out in one write, unless a single line is longer. Files with a smaller limit get
/// smaller batches.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Somebody who waits for a line or for the whole queue.
pub(super) type Waiter = oneshot::Sender<Result<(), LogError>>;

/// Lines in the order they came, and the state of the log.
#[derive(Debug)]
pub(super) struct Queue {
    on_failure: OnLogFailure,
    limits: Limits,
    batch_bytes_max: usize,
    /// Present if the disk is nearly full.
    pub(super) low_space: Option<LowSpace>,
    pending: VecDeque<(Line, Option<Waiter>)>,
    pending_bytes: usize,
    /// Who waits for the lines that are being written.
    in_flight: Vec<Option<Waiter>>,
    /// Who waits for the queue to be empty.
    flushes: Vec<Waiter>,
    /// Who waits for the outcome of the next attempt, while the log fails.
    retries: Vec<Waiter>,
    trouble: Option<Trouble>,
    /// Copies whether there is trouble, for those who look without the lock.
    failing: Arc<AtomicBool>,
    entries_lost: u64,
    notices: Vec<Notice>,
    /// At most one thread writes at a time.
    pub(super) turn: Turn,
    claims: u64,
    /// The runtime whose worker writes.
    pub(super) runtime: Option<Handle>,
    /// The writer thread is asked to write.
    pub(super) wanted: bool,
    /// The watch thread is awake and looks at `turn`.
    pub(super) watched: bool,
    /// The last handle is gone.
    pub(super) stopped: bool,
}

/// The right to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// No thread has it.
    Free,
    /// A task of a runtime has it and has not started to write.
    Claimed { claim: u64, since: Instant },
    /// A thread is writing.
    Writing { since: Instant },
}

#[derive(Debug)]
struct Trouble {
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
            pending: VecDeque::new(),
            pending_bytes: 0,
            in_flight: Vec::new(),
            flushes: Vec::new(),
            retries: Vec::new(),
            trouble: None,
            failing,
            entries_lost: 0,
            notices: Vec::new(),
            turn: Turn::Free,
            claims: 0,
            runtime: None,
            wanted: false,
            watched: false,
            stopped: false,
        }
    }

    /// Adds a line. While the log works there is no limit, because every line is on its way out;
    /// while it fails the backlog is bounded and the newest line is the one that is lost, so that
    /// what is kept has no gaps.
    pub(super) fn push(&mut self, line: Line, waiter: Option<Waiter>) {
        self.pending_bytes += line.text.len();
        self.pending.push_back((line, waiter));
        if self.is_stalled()
            && let Some(trouble) = &self.trouble
            && let Some((_, waiter)) = self.pending.back_mut()
        {
            // The one who could write is stuck, so there is nothing to wait for.
            let answer = on_trouble(self.on_failure, &trouble.error);
            waiter.take().map(|waiter| waiter.send(answer));
        }
        self.trim();
    }

    /// Asks to be told when everything is written. A log that hangs answers at once.
    pub(super) fn flush(&mut self, waiter: Waiter) {
        match &self.trouble {
            Some(trouble) if self.is_stalled() => drop(waiter.send(Err(trouble.error.clone()))),
            _ => self.flushes.push(waiter),
        }
    }

    /// Registers a waiter for the outcome of the next attempt to write. A log that works, or
    /// hangs, answers at once.
    pub(super) fn retry(&mut self, waiter: Waiter) {
        match &self.trouble {
            None => drop(waiter.send(Ok(()))),
            Some(trouble) if self.is_stalled() => drop(waiter.send(Err(trouble.error.clone()))),
            Some(_) => self.retries.push(waiter),
        }
    }

    /// Gives the turn to a task of `runtime`, which [starts](Self::start_writing) it.
    pub(super) fn claim(&mut self, runtime: Handle) -> u64 {
        self.claims += 1;
        self.turn = Turn::Claimed { claim: self.claims, since: Instant::now() };
        self.runtime = Some(runtime);
        self.claims
    }

    /// Whether the turn still belongs to this claim. The watch takes it from a task that does not
    /// start.
    pub(super) fn holds(&self, number: u64) -> bool {
        matches!(self.turn, Turn::Claimed { claim, .. } if claim == number)
    }

    /// Marks the start of a write.
    pub(super) fn start_writing(&mut self) {
        self.turn = Turn::Writing { since: Instant::now() };
    }

    /// Takes the turn from a task that has not started, for the writer thread.
    pub(super) fn revoke_claim(&mut self) {
        self.turn = Turn::Free;
        self.runtime = None;
        self.wanted = true;
    }

    /// Takes the lines of the next write. Those who wait for them stay here, so that they can be
    /// answered even if the write hangs.
    pub(super) fn take_batch(&mut self) -> Vec<Line> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while let Some((line, _)) = self.pending.front() {
            bytes += line.text.len();
            if bytes > self.batch_bytes_max && !batch.is_empty() {
                break;
            }
            if let Some((line, waiter)) = self.pending.pop_front() {
                self.pending_bytes -= line.text.len();
                self.in_flight.push(waiter);
                batch.push(line);
            }
        }
        batch
    }

    /// Takes note of what became of a batch. Lines that were not stored are kept in their place.
    pub(super) fn settle(&mut self, batch: Vec<Line>, written: Written, now: Timestamp) {
        let Written { stored, safe, problem } = written;
        let waiters = std::mem::take(&mut self.in_flight);
        for line in batch.into_iter().skip(stored).rev() {
            self.pending_bytes += line.text.len();
            self.pending.push_front((line, None));
        }
        // The state changes before anybody is answered: who learns of a failure and then asks
        // whether the log is ready must not be told that it is.
        match &problem {
            Some(error) => self.fail(error, now),
            None => self.recover(),
        }
        self.trim();
        for (index, waiter) in waiters.into_iter().enumerate() {
            let answer = match &problem {
                Some(error) if index >= safe => on_trouble(self.on_failure, error),
                _ => Ok(()),
            };
            waiter.map(|waiter| waiter.send(answer));
        }
    }

    /// Takes note that the write under way hangs, and lets go everyone who waits.
    pub(super) fn stall(&mut self, error: &LogError, now: Timestamp) {
        self.fail(error, now);
        let pending = self.pending.iter_mut().filter_map(|(_, waiter)| waiter.take());
        let in_flight = self.in_flight.iter_mut().filter_map(Option::take);
        for waiter in pending.chain(in_flight) {
            let _ = waiter.send(on_trouble(self.on_failure, error));
        }
        for waiter in self.flushes.drain(..).chain(self.retries.drain(..)) {
            let _ = waiter.send(Err(error.clone()));
        }
    }

    /// Ends a turn of writing. Whoever waits for an empty queue is told if it is, or if it will
    /// not be soon.
    pub(super) fn finish(&mut self) {
        self.turn = Turn::Free;
        self.runtime = None;
        for waiter in self.retries.drain(..) {
            let _ = waiter.send(self.trouble.as_ref().map_or(Ok(()), |it| Err(it.error.clone())));
        }
        let answer = match &self.trouble {
            _ if self.pending.is_empty() => Ok(()),
            Some(trouble) => Err(trouble.error.clone()),
            None => return self.wanted = true,
        };
        for waiter in self.flushes.drain(..) {
            let _ = waiter.send(answer.clone());
        }
    }

    /// What there is to report. It is taken under the lock and reported without it, because
    /// whoever listens may be slow.
    pub(super) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Why the log fails, if it does.
    pub(super) fn problem(&self) -> Option<&LogError> {
        self.trouble.as_ref().map(|trouble| &trouble.error)
    }

    /// Whether everything is written.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.turn == Turn::Free
    }

    /// Whether lines wait.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// How the log is doing.
    pub(super) fn health(&self) -> LogHealth {
        let entries_lost = self.entries_lost;
        match &self.trouble {
            None => LogHealth::Working { entries_lost, low_space: self.low_space },
            Some(trouble) => LogHealth::Failing {
                since: trouble.since,
                problem: trouble.error.clone(),
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
    pub(super) fn fail(&mut self, error: &LogError, now: Timestamp) {
        self.failing.store(true, Ordering::Release);
        if let Some(trouble) = &mut self.trouble {
            trouble.error = error.clone();
            return;
        }
        self.trouble = Some(Trouble { since: now, error: error.clone(), loss_reported: false });
        self.notices.push(Notice::Failing(error.clone()));
    }

    fn recover(&mut self) {
        if self.trouble.take().is_some() {
            self.failing.store(false, Ordering::Release);
            self.notices.push(Notice::Recovered { entries_lost: self.entries_lost });
        }
    }

    /// Drops the newest lines until the backlog is within its limits, if the log fails.
    fn trim(&mut self) {
        let Limits { backlog_entries_max, backlog_bytes_max, .. } = self.limits;
        let Some(trouble) = &mut self.trouble else {
            return;
        };
        while (self.pending.len() > backlog_entries_max || self.pending_bytes > backlog_bytes_max)
            && let Some((line, waiter)) = self.pending.pop_back()
        {
            self.pending_bytes -= line.text.len();
            self.entries_lost += 1;
            let answer = on_trouble(self.on_failure, &trouble.error);
            waiter.map(|waiter| waiter.send(answer));
            if !std::mem::replace(&mut trouble.loss_reported, true) {
                self.notices.push(Notice::Losing { entries_kept: self.pending.len() });
            }
        }
    }
}

/// What the caller of a line that is not in the file is told.
fn on_trouble(on_failure: OnLogFailure, error: &LogError) -> Result<(), LogError> {
    match on_failure {
        OnLogFailure::Refuse => Err(error.clone()),
        OnLogFailure::Degrade => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trouble, loss and recovery are each reported once, however many entries they meet.
    #[test]
    fn changes_are_reported_once() {
        let limits = Limits { backlog_entries_max: 1, ..Limits::default() };
        let options = LogOptions { on_failure: OnLogFailure::Degrade, ..LogOptions::new("unused") };
        let mut queue = Queue::new(&options, limits, Arc::default());
        let error = || LogError::write("log".as_ref(), std::io::ErrorKind::StorageFull.into());
        for full in [true, true, true, false, false] {
            let date = jiff::civil::date(2026, 7, 15);
            queue.push(Line { date, text: "{}\n".into(), memory: None }, None);
            let batch = queue.take_batch();
            let stored = if full { 0 } else { batch.len() };
            let written = Written { stored, safe: stored, problem: full.then(error) };
            queue.settle(batch, written, Timestamp::UNIX_EPOCH);
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
