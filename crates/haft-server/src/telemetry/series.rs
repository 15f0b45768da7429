//! The last hour in steps of five seconds: calls, errors, durations, load. Kept in memory, for charts.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use haft::Runtime;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

/// The length of a step.
pub(crate) const STEP: Duration = Duration::from_secs(5);
/// The number of steps that are kept: an hour.
const POINTS_MAX: usize = 720;
/// The number of duration buckets. Four for each doubling, from 1/64 ms to beyond an hour.
const BUCKETS: usize = 120;
const BUCKETS_PER_DOUBLING: f64 = 4.0;
/// The position of 1 ms among the buckets.
const ONE_MS_AT: f64 = 24.0;

/// Counts of the current step, and the steps before it.
#[derive(Debug)]
pub(crate) struct Series {
    calls: AtomicU32,
    errors: AtomicU32,
    durations: Box<[AtomicU32]>,
    points: Mutex<VecDeque<Point>>,
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// The end of the step.
    pub(crate) at: Timestamp,
    pub(crate) calls: u32,
    pub(crate) errors: u32,
    /// The median duration. `None` if no call ended.
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    /// Running calls at the end of the step.
    pub(crate) in_flight: u32,
    /// Waiting calls at the end of the step.
    pub(crate) waiting: u32,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            calls: AtomicU32::new(0),
            errors: AtomicU32::new(0),
            durations: (0..BUCKETS).map(|_| AtomicU32::new(0)).collect(),
            points: Mutex::default(),
        }
    }
}

impl Series {
    /// Counts a call that ended. On the path of every call, so it takes no lock.
    pub(super) fn count(&self, duration: Duration, is_error: bool) {
        self.calls.fetch_add(1, Relaxed);
        if is_error {
            self.errors.fetch_add(1, Relaxed);
        }
        self.durations[bucket(duration)].fetch_add(1, Relaxed);
    }

    /// The steps so far, the oldest first.
    pub(crate) fn points(&self) -> Vec<Point> {
        let points = self.points.lock();
        points.iter().copied().collect()
    }

    /// Ends a step every five seconds until `stop`.
    pub(crate) async fn record(&self, runtime: &Runtime, stop: &CancellationToken) {
        let mut steps = interval(STEP);
        steps.set_missed_tick_behavior(MissedTickBehavior::Skip);
        steps.tick().await;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = steps.tick() => {
                    let load = runtime.load_stats();
                    self.end_step(Timestamp::now(), load.in_flight, load.waiting);
                }
            }
        }
    }

    fn end_step(&self, at: Timestamp, in_flight: u32, waiting: u32) {
        let counts: Vec<u32> = self.durations.iter().map(|count| count.swap(0, Relaxed)).collect();
        let point = Point {
            at,
            calls: self.calls.swap(0, Relaxed),
            errors: self.errors.swap(0, Relaxed),
            p50_ms: quantile(&counts, 0.5),
            p95_ms: quantile(&counts, 0.95),
            in_flight,
            waiting,
        };
        let mut points = self.points.lock();
        if points.len() == POINTS_MAX {
            points.pop_front();
        }
        points.push_back(point);
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the number of buckets"
)]
fn bucket(duration: Duration) -> usize {
    let ms = (duration.as_secs_f64() * 1000.0).max(f64::MIN_POSITIVE);
    let at = (ms.log2() * BUCKETS_PER_DOUBLING).floor() + ONE_MS_AT;
    (at.max(0.0) as usize).min(BUCKETS - 1)
}

/// The duration below which a share of the counts lies: the middle of its bucket.
fn quantile(counts: &[u32], share: f64) -> Option<f64> {
    let all: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    if all == 0 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of five seconds are small")]
    let rank = share * all as f64;
    let mut sum = 0.0;
    let at = counts.iter().position(|count| {
        sum += f64::from(*count);
        sum >= rank
    })?;
    #[expect(clippy::cast_precision_loss, reason = "at most 120")]
    let middle = (at as f64 + 0.5 - ONE_MS_AT) / BUCKETS_PER_DOUBLING;
    Some((middle.exp2() * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_counts_and_quantiles_and_the_next_one_starts_at_zero() {
        let series = Series::default();
        for ms in [1, 1, 1, 1, 1, 1, 1, 1, 1, 400] {
            series.count(Duration::from_millis(ms), ms > 100);
        }
        series.end_step(Timestamp::UNIX_EPOCH, 3, 4);
        series.end_step(Timestamp::UNIX_EPOCH, 0, 0);
        let points = series.points();
        let first = points[0];
        assert_eq!((first.calls, first.errors, first.in_flight, first.waiting), (10, 1, 3, 4));
        assert!(first.p50_ms.is_some_and(|ms| (0.8..1.5).contains(&ms)), "{first:?}");
        assert!(first.p95_ms.is_some_and(|ms| (330.0..480.0).contains(&ms)), "{first:?}");
        assert_eq!((points[1].calls, points[1].p50_ms), (0, None));
    }

    #[test]
    fn the_oldest_step_makes_room_and_extreme_durations_have_a_bucket() {
        let series = Series::default();
        series.count(Duration::ZERO, false);
        series.count(Duration::from_hours(1000), false);
        for _ in 0..=POINTS_MAX {
            series.end_step(Timestamp::UNIX_EPOCH, 0, 0);
        }
        assert_eq!(series.points().len(), POINTS_MAX);
        assert_eq!(series.points()[0].calls, 0);
    }
}
