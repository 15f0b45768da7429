//! Figures for Prometheus: what was counted, and how the toolbox is at this moment.

mod histogram;
mod outcomes;
mod page;
mod report;
mod usage;

use haft::CallSummary;
use jiff::Timestamp;

use histogram::Histogram;
use outcomes::Outcomes;
pub(crate) use page::CONTENT_TYPE as METRICS_CONTENT_TYPE;
pub(super) use report::SpanCounts;
use usage::Usage;

/// What is counted of calls. Counting takes no lock that anybody holds for long.
#[derive(Debug)]
pub(super) struct Metrics {
    since: Timestamp,
    usage: Usage,
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
            outcomes: Outcomes::default(),
            durations: Histogram::default(),
            waits: Histogram::default(),
        }
    }

    /// Counts a call that is over.
    pub(super) fn count(&self, call: &CallSummary<'_>) {
        self.usage.count(call.tool, call.is_known, call.duration);
        self.outcomes.count(call.code);
        self.durations.count(call.duration);
        self.waits.count(call.queued);
    }
}
