//! Formatting of times, ratios and goals.

use std::time::Duration;

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Microseconds, or milliseconds where there are many of them.
pub(crate) fn shown(duration: Duration) -> String {
    let us = duration.as_secs_f64() * 1e6;
    if us < 10_000.0 { format!("{us:.1} us") } else { format!("{:.1} ms", us / 1e3) }
}

/// Returns true if a ratio meets its goal.
pub(crate) fn verdict(ratio: f64, goal: f64) -> String {
    if ratio <= goal {
        format!("{ratio:.2}x (goal: at most {goal}x): ok")
    } else {
        format!("{ratio:.2}x (goal: at most {goal}x): MISSED")
    }
}
