//! Statistics over the times that benchmarks measure.

use std::time::Duration;

/// Sorted times.
pub struct Times(Vec<Duration>);

impl Times {
    /// Sorts them.
    pub fn new(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    /// The time below which `percent` of all lie.
    pub fn percentile(&self, percent: usize) -> Duration {
        let at = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
        self.0.get(at).copied().unwrap_or_default()
    }

    /// The one in the middle.
    pub fn median(&self) -> Duration {
        self.percentile(50)
    }
}

/// The ratio of `one` to `other`.
pub fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64().max(1e-12)
}
