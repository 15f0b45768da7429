//! What is told about calls when they are over: figures at `/metrics`, and traces.
//!
//! [`Telemetry::observe`] is on the path of every call, so it only counts and hands on.

mod metrics;
mod traces;

use std::sync::Arc;

use haft::config::service::TelemetryConfig;
use haft::live::Live;
use haft::{CallSummary, TraceContext};

pub(crate) use metrics::METRICS_CONTENT_TYPE;
use metrics::Metrics;
use traces::Traces;
pub use traces::TracesError;

/// Counts calls, and traces them where a collector is configured.
#[derive(Debug)]
pub struct Telemetry {
    metrics: Metrics,
    traces: Option<Traces>,
}

impl Telemetry {
    /// Telemetry as configured. Starts what sends spans to the collector, so a runtime has to run.
    pub fn start(config: &TelemetryConfig) -> Result<Arc<Self>, TracesError> {
        let traces = Traces::start(config)?;
        Ok(Arc::new(Self { metrics: Metrics::new(), traces }))
    }

    /// Telemetry that counts and sends nothing.
    pub fn without_traces() -> Arc<Self> {
        Arc::new(Self { metrics: Metrics::new(), traces: None })
    }

    /// The trace context a call is made with: a span of its own where spans are exported, below the
    /// caller's if there is one; else the caller's own.
    pub fn begin(&self, caller: Option<TraceContext>) -> Option<TraceContext> {
        match &self.traces {
            Some(_) => traces::begin(caller),
            None => caller,
        }
    }

    /// Takes note of a call that is over; for [`RuntimeBuilder::observe`](haft::RuntimeBuilder::observe).
    pub fn observe(&self, call: &CallSummary<'_>) {
        self.metrics.count(call);
        if let Some(traces) = &self.traces {
            traces.record(call);
        }
    }

    /// What was counted and how the toolbox is now, as a page for Prometheus.
    pub fn report(&self, live: &Live) -> String {
        self.metrics.report(live, self.traces.as_ref().map(Traces::counts))
    }

    /// Sends the spans that are left, within a limit.
    pub async fn end(&self) {
        if let Some(traces) = &self.traces {
            traces.end().await;
        }
    }
}
