//! The life of one server connection as a pure state machine: no I/O, no clock, no tasks. The supervisor feeds it
//! events and does the job that it asks for.
//!
//! At most one job is due at a time, and a job that is no longer due is dropped, so there is never a second
//! connection.

mod event;
#[cfg(test)]
mod tests;

use std::time::Duration;

use tokio::time::Instant;

use super::backoff::ReconnectPolicy;
use super::health::Reason;
use super::link::{Link, Status};
pub(super) use event::{AttemptError, Connected, Event, Job, Listed, ReadError};

/// A connection that lived this long was good: the pauses start from the beginning after its loss.
const GOOD_LIFE: Duration = Duration::from_secs(30);
/// The time between attempts for a server that failed with a transient error and that no caller needs.
const RETRY_EVERY: Duration = Duration::from_mins(1);
/// Notices of changed lists within this time lead to one refresh.
const NOTICES_WAIT: Duration = Duration::from_millis(50);
/// The longest pause that a server may ask for between two attempts.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// A pause that never ends in practice.
const FAR_FUTURE: Duration = Duration::from_hours(24 * 365 * 30);

/// The state of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A command, or the loss of the connection.
    Rest,
    /// A point in time.
    Until(Instant),
    /// The result of a job.
    Work(Job),
}

/// The attempts of one round.
#[derive(Debug, Clone, Copy)]
struct Round {
    attempts_max: u32,
    /// The step of the backoff that follows the first attempt.
    step: u32,
    retries: u32,
    /// The first attempt is not made before.
    not_before: Option<Instant>,
}

/// The state machine of one connection. `C` is the client, `L` the lists.
#[derive(Debug)]
pub(super) struct Machine<C, L> {
    policy: ReconnectPolicy,
    /// The source of the jitter.
    seed: u64,
    status: Status<C, L>,
    phase: Phase,
    is_stopping: bool,
    /// The round that is running, or the next one.
    round: Round,
    /// The attempts that were begun.
    attempts: u64,
    connected_at: Option<Instant>,
    /// Connections in a row that were lost soon.
    short_lives: u32,
    /// A list changed while the lists were read.
    is_stale: bool,
    /// The reconnect commands that arrived, and those that the current round serves.
    reconnects_asked: u64,
    reconnects_served: u64,
}

impl<C, L> Machine<C, L> {
    /// A server that no caller needed yet.
    pub(super) fn new(policy: ReconnectPolicy, seed: u64, status: Status<C, L>) -> Self {
        Self {
            policy,
            seed,
            status,
            phase: Phase::Rest,
            is_stopping: false,
            round: Round::first(&policy),
            attempts: 0,
            connected_at: None,
            short_lives: 0,
            is_stale: false,
            reconnects_asked: 0,
            reconnects_served: 0,
        }
    }

    /// The state to publish.
    pub(super) fn status(&self) -> &Status<C, L> {
        &self.status
    }

    /// The job that is due. A running job that differs from it has to be dropped.
    pub(super) fn job(&self) -> Option<Job> {
        match self.phase {
            Phase::Work(job) => Some(job),
            Phase::Rest | Phase::Until(_) => None,
        }
    }

    /// The time at which [`Event::DeadlineReached`] is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Until(deadline) => Some(deadline),
            Phase::Rest | Phase::Work(_) => None,
        }
    }

    /// The client whose end has to be reported as [`Event::Lost`], with the number of its attempt.
    pub(super) fn watched(&self) -> Option<(&C, u64)> {
        match &self.status.link {
            Link::Ready { client, .. } if !self.is_stopping && !self.is(Job::ExamineLoss) => {
                Some((client, self.attempts))
            }
            _ => None,
        }
    }

    /// Returns true if a stop was requested.
    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// Takes in one event. An event that does not fit the state changes nothing.
    pub(super) fn apply(&mut self, event: Event<C, L>, now: Instant) {
        match event {
            Event::Stop if !self.is_stopping => {
                self.is_stopping = true;
                self.phase = Phase::Work(Job::Close);
            }
            Event::Closed if self.is(Job::Close) => self.closed(now),
            _ if self.is_stopping => {}
            Event::Connect { after } => self.connect(after, now),
            Event::Reconnect { ticket } => self.reconnect(ticket),
            Event::ListsChanged => self.lists_changed(now),
            Event::Lost { attempt } => self.lost(attempt),
            Event::DeadlineReached => self.deadline_reached(now),
            Event::Attempted(outcome) if matches!(self.job(), Some(Job::Attempt { .. })) => {
                self.status.reconnects = self.reconnects_served;
                match outcome {
                    Ok(connected) => self.connected(connected, now),
                    Err(error) => self.attempt_failed(error, now),
                }
            }
            Event::LossExamined { reason, is_session_expired } if self.is(Job::ExamineLoss) => {
                self.loss_examined(reason, is_session_expired, now);
            }
            Event::ListsRead(outcome) if self.is(Job::ReadLists) => self.lists_read(outcome, now),
            Event::Stop
            | Event::Closed
            | Event::Attempted(_)
            | Event::LossExamined { .. }
            | Event::ListsRead(_) => {}
        }
    }

    fn is(&self, job: Job) -> bool {
        self.phase == Phase::Work(job)
    }

    fn connect(&mut self, after: u64, now: Instant) {
        // The round that this caller waited for is over, so the caller has its answer.
        if after < self.status.rounds {
            return;
        }
        match self.status.link {
            // `reconnect.attempts: 0`: a lost server stays lost, and the caller receives the reason.
            Link::Down { retry_at: None, .. } if self.policy.retries_max == 0 => {
                self.status.rounds += 1;
            }
            Link::Idle | Link::Down { .. } => self.begin_round(now),
            Link::Connecting { .. } | Link::Ready { .. } | Link::Stopped => {}
        }
    }

    fn reconnect(&mut self, ticket: u64) {
        self.reconnects_asked = self.reconnects_asked.max(ticket);
        self.end_list_read();
        self.status.link = Link::Connecting { attempt: 1, last_error: None };
        self.phase = Phase::Work(Job::Close);
    }

    fn lists_changed(&mut self, now: Instant) {
        match (&self.status.link, self.phase) {
            (Link::Ready { .. }, Phase::Rest) => {
                self.phase = Phase::Until(later(now, NOTICES_WAIT));
            }
            // The lists that are being read may be those from before the change.
            (_, Phase::Work(Job::ReadLists | Job::Attempt { .. })) => self.is_stale = true,
            (_, Phase::Rest | Phase::Until(_) | Phase::Work(Job::ExamineLoss | Job::Close)) => {}
        }
    }

    fn lost(&mut self, attempt: u64) {
        // A report about an earlier connection does not concern this one.
        if attempt == self.attempts && self.watched().is_some() {
            self.end_list_read();
            self.phase = Phase::Work(Job::ExamineLoss);
        }
    }

    fn deadline_reached(&mut self, now: Instant) {
        let Phase::Until(deadline) = self.phase else { return };
        if now < deadline {
            return;
        }
        match self.status.link {
            Link::Connecting { .. } => self.begin_attempt(),
            Link::Ready { .. } => {
                self.is_stale = false;
                self.phase = Phase::Work(Job::ReadLists);
            }
            Link::Down { .. } => self.begin_round(now),
            Link::Idle | Link::Stopped => self.phase = Phase::Rest,
        }
    }

    fn connected(&mut self, connected: Connected<C, L>, now: Instant) {
        let Connected { client, listed: Listed { lists, gap } } = connected;
        self.status.link = Link::Ready { client, gap };
        self.status.lists = Some(lists);
        self.status.rounds += 1;
        self.status.list_reads += 1;
        self.connected_at = Some(now);
        self.rest_or_refresh(now);
    }

    fn attempt_failed(&mut self, error: AttemptError, now: Instant) {
        let AttemptError { reason, is_transient, retry_after } = error;
        let Round { attempts_max, step, retries, .. } = self.round;
        if !is_transient || retries + 1 >= attempts_max {
            return self.give_up(reason, is_transient, now);
        }
        let pause = self.pause(step.saturating_add(retries));
        let pause = pause.max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX));
        self.round.retries += 1;
        self.status.failed_attempts += 1;
        self.status.link = Link::Connecting { attempt: retries + 2, last_error: Some(reason) };
        self.phase = Phase::Until(later(now, pause));
    }

    fn give_up(&mut self, reason: Reason, is_transient: bool, now: Instant) {
        let retries = self.round.retries;
        // The next caller starts one attempt, but no server is tried more often than this.
        let not_before = Some(later(now, self.pause(0)));
        self.round = Round { attempts_max: 1, step: 0, retries: 0, not_before };
        self.short_lives = 0;
        self.status.rounds += 1;
        let tries_again = is_transient && self.policy.retries_max > 0;
        self.down(reason, retries, tries_again.then(|| later(now, RETRY_EVERY)));
    }

    fn loss_examined(&mut self, reason: Reason, is_session_expired: bool, now: Instant) {
        let age = self.connected_at.map(|since| now.saturating_duration_since(since));
        let was_good = is_session_expired || age.is_some_and(|age| age >= GOOD_LIFE);
        self.short_lives = if was_good { 0 } else { self.short_lives + 1 };
        // An expired session is opened again at once, even with `attempts: 0`.
        if self.policy.retries_max == 0 && !is_session_expired {
            self.status.rounds += 1;
            return self.down(reason, 0, None);
        }
        self.round = match self.short_lives.checked_sub(1) {
            None => Round::first(&self.policy),
            // A server that keeps failing soon after it connected is tried after a growing pause.
            Some(step) => Round {
                attempts_max: self.policy.retries_max,
                step: step.saturating_add(1),
                retries: 0,
                not_before: Some(later(now, self.pause(step))),
            },
        };
        self.down(reason, 0, Some(now));
    }

    fn lists_read(&mut self, outcome: Result<Listed<L>, ReadError>, now: Instant) {
        self.status.list_reads += 1;
        let gap = match outcome {
            Ok(Listed { lists, gap }) => {
                self.status.lists = Some(lists);
                gap
            }
            Err(ReadError::Failed(reason)) => Some(reason),
            Err(ReadError::Ended) => return self.rest_or_refresh(now),
        };
        if let Link::Ready { gap: current, .. } = &mut self.status.link {
            *current = gap;
        }
        self.rest_or_refresh(now);
    }

    fn closed(&mut self, now: Instant) {
        if self.is_stopping {
            self.status.link = Link::Stopped;
            self.status.rounds += 1;
            self.phase = Phase::Rest;
            return;
        }
        self.reconnects_served = self.reconnects_asked;
        self.short_lives = 0;
        self.round = Round::first(&self.policy);
        self.begin_round(now);
    }

    fn begin_round(&mut self, now: Instant) {
        let wait = self.round.not_before.filter(|at| *at > now);
        let last_error = match &self.status.link {
            Link::Down { reason, .. } if wait.is_some() => Some(reason.clone()),
            _ => None,
        };
        self.status.link = Link::Connecting { attempt: 1, last_error };
        match wait {
            Some(at) => self.phase = Phase::Until(at),
            None => self.begin_attempt(),
        }
    }

    fn begin_attempt(&mut self) {
        self.attempts += 1;
        self.is_stale = false;
        let begins_round = self.round.retries == 0;
        self.phase = Phase::Work(Job::Attempt { number: self.attempts, begins_round });
    }

    fn rest_or_refresh(&mut self, now: Instant) {
        self.phase =
            if self.is_stale { Phase::Until(later(now, NOTICES_WAIT)) } else { Phase::Rest };
    }

    fn down(&mut self, reason: Reason, retries: u32, retry_at: Option<Instant>) {
        self.status.link = Link::Down { reason, retries, retry_at };
        self.phase = retry_at.map_or(Phase::Rest, Phase::Until);
    }

    /// Answers the callers that wait for lists which are not read any more.
    fn end_list_read(&mut self) {
        let is_due = matches!(self.phase, Phase::Until(_) | Phase::Work(Job::ReadLists));
        if is_due && matches!(self.status.link, Link::Ready { .. }) {
            self.status.list_reads += 1;
        }
    }

    /// The pause of a backoff step, with a jitter from a sequence that the seed determines.
    fn pause(&mut self, step: u32) -> Duration {
        // splitmix64.
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.seed ^ (self.seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        self.policy.pause(step, mixed >> 32)
    }
}

impl Round {
    fn first(policy: &ReconnectPolicy) -> Self {
        let attempts_max = policy.retries_max.saturating_add(1);
        Self { attempts_max, step: 0, retries: 0, not_before: None }
    }
}

fn later(now: Instant, pause: Duration) -> Instant {
    now.checked_add(pause).unwrap_or_else(|| now + FAR_FUTURE)
}
