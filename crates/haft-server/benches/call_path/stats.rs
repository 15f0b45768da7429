//! Times and what to make of them.

use std::time::{Duration, Instant};

/// Sorted times.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn new(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    /// The time below which `percent` of all lie.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let at = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
        self.0.get(at).copied().unwrap_or_default()
    }
}

/// Microseconds with one digit.
pub(crate) fn us(duration: Duration) -> String {
    format!("{:.1} us", duration.as_secs_f64() * 1e6)
}

/// Milliseconds with two digits.
pub(crate) fn ms(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}

pub(crate) fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64().max(1e-12)
}

/// Runs something many times, one after the other.
pub(crate) fn repeat(count: usize, mut work: impl FnMut()) -> Times {
    let once = |_| {
        let started = Instant::now();
        work();
        started.elapsed()
    };
    Times::new((0..count).map(once).collect())
}
