//! What waits to be written, who waits for it, and how the log is doing. Bookkeeping only: it
//! writes nothing, and one lock guards it all.

use std::collections::VecDeque;
use std::time::Instant;

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::error::LogError;
use super::health::LogHealth;
use super::line::Line;
use super::notice::Notice;
use super::sink::Written;
use super::{Limits, OnLogFailure};

/// The most that goes out in one write, unless a single line is longer.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Somebody who waits for a line or for the whole queue.
pub(super) type Waiter = oneshot::Sender<Result<(), LogError>>;

/// Lines in the order they came, and the state of the log.
#[derive(Debug)]
pub(super) struct Queue {
    on_failure: OnLogFailure,
    limits: Limits,
    pending: VecDeque<(Line, Option<Waiter>)>,
    pending_bytes: usize,
    /// Who waits for the lines that are being written.
    in_flight: Vec<Option<Waiter>>,
    /// Who waits for the queue to be empty.
    flushes: Vec<Waiter>,
    trouble: Option<Trouble>,
    entries_lost: u64,
    /// Since when somebody is writing. At most one writes at a time.
    pub(super) writing_since: Option<Instant>,
    /// The writer thread is asked to write.
    pub(super) wanted: bool,
    /// The watch thread is awake and looks at `writing_since`.
    pub(super) watched: bool,
    /// The last handle is gone.
    pub(super) stopped: bool,
}

#[derive(Debug)]
struct Trouble {
    since: Timestamp,
    error: LogError,
    loss_reported: bool,
}

impl Queue {
    pub(super) fn new(on_failure: OnLogFailure, limits: Limits) -> Self {
        Self {
            on_failure,
            limits,
            pending: VecDeque::new(),
            pending_bytes: 0,
            in_flight: Vec::new(),
            flushes: Vec::new(),
            trouble: None,
            entries_lost: 0,
            writing_since: None,
            wanted: false,
            watched: false,
            stopped: false,
        }
    }

    /// Adds a line. While the log works there is no limit, because every line is on its way out;
    /// while it fails the backlog is bounded and the newest line is the one that is lost, so that
    /// what is kept has no gaps.
    pub(super) fn push(&mut self, line: Line, waiter: Option<Waiter>) -> Option<Notice> {
        self.pending_bytes += line.text.len();
        self.pending.push_back((line, waiter));
        let stalled = self.is_stalled();
        let trouble = self.trouble.as_ref()?;
        if stalled && let Some((_, waiter)) = self.pending.back_mut() {
            // The one who could write is stuck, so there is nothing to wait for.
            let answer = on_trouble(self.on_failure, &trouble.error);
            waiter.take().map(|waiter| waiter.send(answer));
        }
        self.trim()
    }

    /// Asks to be told when everything is written. A log that hangs answers at once.
    pub(super) fn flush(&mut self, waiter: Waiter) {
        match &self.trouble {
            Some(trouble) if self.is_stalled() => drop(waiter.send(Err(trouble.error.clone()))),
            _ => self.flushes.push(waiter),
        }
    }

    /// Takes the lines of the next write. Those who wait for them stay here, so that they can be
    /// answered even if the write hangs.
    pub(super) fn take_batch(&mut self) -> Vec<Line> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while let Some((line, _)) = self.pending.front() {
            bytes += line.text.len();
            if bytes > BATCH_BYTES_MAX && !batch.is_empty() {
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
    pub(super) fn settle(
        &mut self,
        batch: Vec<Line>,
        written: Written,
        now: Timestamp,
    ) -> Option<Notice> {
        let Written {
            stored,
            safe,
            problem,
        } = written;
        for (index, waiter) in std::mem::take(&mut self.in_flight).into_iter().enumerate() {
            let answer = match &problem {
                Some(error) if index >= safe => on_trouble(self.on_failure, error),
                _ => Ok(()),
            };
            waiter.map(|waiter| waiter.send(answer));
        }
        for line in batch.into_iter().skip(stored).rev() {
            self.pending_bytes += line.text.len();
            self.pending.push_front((line, None));
        }
        let Some(error) = problem else {
            let entries_lost = self.entries_lost;
            return self
                .trouble
                .take()
                .map(|_| Notice::Recovered { entries_lost });
        };
        self.fail(error, now).or_else(|| self.trim())
    }

    /// Takes note that the write under way hangs, and lets go everyone who waits.
    pub(super) fn stall(&mut self, error: LogError, now: Timestamp) -> Option<Notice> {
        let pending = self
            .pending
            .iter_mut()
            .filter_map(|(_, waiter)| waiter.take());
        let in_flight = self.in_flight.iter_mut().filter_map(Option::take);
        for waiter in pending.chain(in_flight) {
            let _ = waiter.send(on_trouble(self.on_failure, &error));
        }
        for waiter in self.flushes.drain(..) {
            let _ = waiter.send(Err(error.clone()));
        }
        self.fail(error, now)
    }

    /// Ends a turn of writing. Whoever waits for an empty queue is told if it is, or if it will
    /// not be soon.
    pub(super) fn finish(&mut self) {
        self.writing_since = None;
        let answer = match &self.trouble {
            _ if self.pending.is_empty() => Ok(()),
            Some(trouble) => Err(trouble.error.clone()),
            None => return self.wanted = true,
        };
        for waiter in self.flushes.drain(..) {
            let _ = waiter.send(answer.clone());
        }
    }

    /// Why the log fails, if it does.
    pub(super) fn problem(&self) -> Option<&LogError> {
        self.trouble.as_ref().map(|trouble| &trouble.error)
    }

    /// Whether everything is written.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.writing_since.is_none()
    }

    /// Whether lines wait.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// How the log is doing.
    pub(super) fn health(&self) -> LogHealth {
        let entries_lost = self.entries_lost;
        match &self.trouble {
            None => LogHealth::Working { entries_lost },
            Some(trouble) => LogHealth::Failing {
                since: trouble.since,
                problem: trouble.error.clone(),
                entries_kept: self.pending.len() + self.in_flight.len(),
                entries_lost,
            },
        }
    }

    fn is_stalled(&self) -> bool {
        self.writing_since.is_some() && matches!(self.problem(), Some(LogError::Stalled { .. }))
    }

    fn fail(&mut self, error: LogError, now: Timestamp) -> Option<Notice> {
        if let Some(trouble) = &mut self.trouble {
            trouble.error = error;
            return None;
        }
        let trouble = Trouble {
            since: now,
            error: error.clone(),
            loss_reported: false,
        };
        self.trouble = Some(trouble);
        Some(Notice::Failing(error))
    }

    /// Drops the newest lines until the backlog is within its limits.
    fn trim(&mut self) -> Option<Notice> {
        let Limits {
            backlog_entries_max,
            backlog_bytes_max,
            ..
        } = self.limits;
        let trouble = self.trouble.as_mut()?;
        let lost_before = self.entries_lost;
        while self.pending.len() > backlog_entries_max || self.pending_bytes > backlog_bytes_max {
            let (line, waiter) = self.pending.pop_back()?;
            self.pending_bytes -= line.text.len();
            self.entries_lost += 1;
            let answer = on_trouble(self.on_failure, &trouble.error);
            waiter.map(|waiter| waiter.send(answer));
        }
        let report = self.entries_lost > lost_before && !trouble.loss_reported;
        trouble.loss_reported |= report;
        report.then_some(Notice::Losing {
            entries_kept: self.pending.len(),
        })
    }
}

/// What the caller of a line that is not in the file is told.
fn on_trouble(on_failure: OnLogFailure, error: &LogError) -> Result<(), LogError> {
    match on_failure {
        OnLogFailure::Refuse => Err(error.clone()),
        OnLogFailure::Degrade => Ok(()),
    }
}
