//! Metrics at `/metrics` and traces of completed calls.
//!
//! [`Telemetry::observe`] is on the path of every call, so it only counts and hands on.

mod metrics;
pub(crate) mod series;
mod traces;

use std::sync::Arc;

use haft::config::service::TelemetryConfig;
use haft::live::Live;
use haft::{CallSummary, Runtime, TraceContext};
use haft_postgres::DatabaseHealth;
use tokio_util::sync::CancellationToken;

use metrics::Metrics;
pub(crate) use metrics::{METRICS_CONTENT_TYPE, shipping_report};
use series::Series;
use traces::Traces;
pub use traces::TracesError;

/// Counts calls, and traces them where a collector is configured.
#[derive(Debug)]
pub struct Telemetry {
    metrics: Metrics,
    series: Series,
    traces: Option<Traces>,
}

impl Telemetry {
    /// Telemetry as configured. Starts what sends spans to the collector, so a runtime has to run.
    pub fn start(config: &TelemetryConfig) -> Result<Arc<Self>, TracesError> {
        let traces = Traces::start(config)?;
        Ok(Arc::new(Self { metrics: Metrics::new(), series: Series::default(), traces }))
    }

    /// Telemetry that counts and sends nothing.
    pub fn without_traces() -> Arc<Self> {
        Arc::new(Self { metrics: Metrics::new(), series: Series::default(), traces: None })
    }

    /// The trace context of a call: a span of its own if spans are exported, below the caller's if there is one;
    /// otherwise the caller's own.
    pub fn begin(&self, caller: Option<TraceContext>) -> Option<TraceContext> {
        match &self.traces {
            Some(_) => traces::begin(caller),
            None => caller,
        }
    }

    /// Takes note of a call that is over; for [`RuntimeBuilder::observe`](haft::RuntimeBuilder::observe).
    pub fn observe(&self, call: &CallSummary<'_>) {
        self.metrics.count(call);
        self.series.count(call.duration, call.code.is_some());
        if let Some(traces) = &self.traces {
            traces.record(call);
        }
    }

    /// Counters and the current state of the toolbox and of its database, as a page for Prometheus.
    pub fn report(&self, live: &Live, shared: Option<&DatabaseHealth>) -> String {
        self.metrics.report(live, self.traces.as_ref().map(Traces::counts), shared)
    }

    /// The last hour in steps, for charts.
    pub(crate) fn series(&self) -> &Series {
        &self.series
    }

    /// Ends the steps of the series until `stop`.
    pub async fn record_series(self: Arc<Self>, runtime: Runtime, stop: CancellationToken) {
        self.series.record(&runtime, &stop).await;
    }

    /// Sends the spans that are left, within a limit.
    pub async fn end(&self) {
        if let Some(traces) = &self.traces {
            traces.end().await;
        }
    }
}
