//! The clock of the log, replaceable so that a test can change the day.

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

/// A source of the current time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that only moves when it is set.
#[derive(Debug)]
pub struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    /// A clock that stands at `start`.
    pub fn new(start: Timestamp) -> Self {
        Self(Mutex::new(start))
    }

    /// Sets the time, forward or backward.
    pub fn set(&self, time: Timestamp) {
        *self.0.lock() = time;
    }

    /// Moves by `step`, forward or backward, and stops at the ends of time.
    pub fn advance(&self, step: SignedDuration) {
        let mut now = self.0.lock();
        let end = if step.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
        *now = now.checked_add(step).unwrap_or(end);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock()
    }
}
