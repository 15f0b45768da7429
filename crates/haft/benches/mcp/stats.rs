//! Times, ratios and goals.

use std::time::Duration;

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

    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64().max(1e-12)
}

/// Microseconds, or milliseconds where there are many of them.
pub(crate) fn shown(duration: Duration) -> String {
    let us = duration.as_secs_f64() * 1e6;
    if us < 10_000.0 { format!("{us:.1} us") } else { format!("{:.1} ms", us / 1e3) }
}

/// Whether a ratio is as low as it should be.
pub(crate) fn verdict(ratio: f64, goal: f64) -> String {
    if ratio <= goal {
        format!("{ratio:.2}x (goal: at most {goal}x): ok")
    } else {
        format!("{ratio:.2}x (goal: at most {goal}x): MISSED")
    }
}
