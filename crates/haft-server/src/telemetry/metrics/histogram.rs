//! Times in buckets that never change.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The upper bounds, in seconds: from what Haft itself costs to what a person waits for.
pub(super) const BOUNDS_SECS: [f64; 13] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0, 60.0];

#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// Number of values between one bound and the next; the last element counts all above.
    counts: [AtomicU64; BOUNDS_SECS.len() + 1],
    nanos: AtomicU64,
}

/// A snapshot of a histogram.
pub(super) struct Reading {
    /// Number of values at or below each bound; the last is all of them.
    pub(super) up_to: [u64; BOUNDS_SECS.len() + 1],
    pub(super) sum_secs: f64,
}

impl Histogram {
    pub(super) fn count(&self, time: Duration) {
        let secs = time.as_secs_f64();
        let at = BOUNDS_SECS.iter().take_while(|bound| secs > **bound).count();
        self.counts[at].fetch_add(1, Relaxed);
        self.nanos.fetch_add(nanos(time), Relaxed);
    }

    pub(super) fn read(&self) -> Reading {
        let mut sum = 0;
        let up_to = self.counts.each_ref().map(|count| {
            sum += count.load(Relaxed);
            sum
        });
        Reading { up_to, sum_secs: secs(self.nanos.load(Relaxed)) }
    }
}

/// In 64 bits there is room for 584 years.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn secs(nanos: u64) -> f64 {
    Duration::from_nanos(nanos).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_on_a_bound_belongs_below_it_and_buckets_add_up() {
        let histogram = Histogram::default();
        for millis in [0, 1, 1, 2, 3_600_000] {
            histogram.count(Duration::from_millis(millis));
        }
        let Reading { up_to, sum_secs } = histogram.read();
        assert_eq!(up_to, [1, 1, 1, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 5]);
        assert!((sum_secs - 3600.004).abs() < 1e-9, "{sum_secs}");
    }
}
