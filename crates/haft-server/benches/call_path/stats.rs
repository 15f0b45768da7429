//! Times and what to make of them.

use std::time::{Duration, Instant};

use testkit::times::Times;

/// Microseconds with one digit.
pub(crate) fn us(duration: Duration) -> String {
    format!("{:.1} us", duration.as_secs_f64() * 1e6)
}

/// Milliseconds with two digits.
pub(crate) fn ms(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
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
