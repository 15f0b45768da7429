//! Metrics for Prometheus: counters, and the current state of the toolbox.

mod breakdown;
mod histogram;
mod outcomes;
mod page;
mod report;
mod shipping;
mod usage;

use haft::CallSummary;
use jiff::Timestamp;

use breakdown::Breakdown;
use histogram::Histogram;
use outcomes::Outcomes;
pub(crate) use page::CONTENT_TYPE as METRICS_CONTENT_TYPE;
pub(super) use report::SpanCounts;
pub(crate) use shipping::shipping_report;
use usage::Usage;

/// Counters of calls. Counting takes only short locks.
#[derive(Debug)]
pub(super) struct Metrics {
    since: Timestamp,
    usage: Usage,
    breakdown: Breakdown,
    outcomes: Outcomes,
    durations: Histogram,
    waits: Histogram,
}

impl Metrics {
    /// Nothing counted yet.
    pub(super) fn new() -> Self {
        Self {
            since: Timestamp::now(),
            usage: Usage::default(),
            breakdown: Breakdown::default(),
            outcomes: Outcomes::default(),
            durations: Histogram::default(),
            waits: Histogram::default(),
        }
    }

    /// Counts a call that is over.
    pub(super) fn count(&self, call: &CallSummary<'_>) {
        self.usage.count(call.tool, call.server, call.is_known, call.duration, call.code);
        self.breakdown.count(call);
        self.outcomes.count(call.code);
        self.durations.count(call.duration);
        self.waits.count(call.queued);
    }
}
