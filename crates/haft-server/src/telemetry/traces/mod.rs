//! One span for each call, sent to a collector. Whatever the collector does, no call waits for it:
//! spans go into a queue with a limit, and what does not fit is counted as lost.

mod collector;
mod counts;
mod export;
mod otlp;
mod span;

use std::sync::Arc;
use std::time::Duration;

use haft::config::service::TelemetryConfig;
use haft::{CallSummary, TraceContext};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::metrics::SpanCounts;
use collector::Collector;
use counts::Counts;
use span::Span;

/// Largest number of spans that wait for the collector.
const WAITING_MAX: usize = 4096;

/// Time that the end of the service waits for the collector.
const END_WAIT_MAX: Duration = Duration::from_secs(5);

/// Why traces cannot be exported as configured.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// A header is none.
    #[error("`telemetry.otlp_headers.{name}` is not a header of HTTP")]
    Header {
        /// Its name.
        name: String,
    },
    /// TLS cannot be set up.
    #[error("the client for `telemetry.otlp_endpoint` cannot be set up")]
    Client(#[source] reqwest::Error),
}

impl TracesError {
    /// The remedy.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Header { .. } => "headers have names such as `x-api-key` and values of one line",
            Self::Client(_) => "remove `telemetry.otlp_endpoint`, or repair the TLS of this system",
        }
    }
}

/// Sends spans to a collector.
#[derive(Debug)]
pub(super) struct Traces {
    spans: mpsc::Sender<Span>,
    counts: Arc<Counts>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Traces {
    /// Nothing where no collector is configured.
    pub(super) fn start(config: &TelemetryConfig) -> Result<Option<Self>, TracesError> {
        let Some(collector) = Collector::new(config)? else { return Ok(None) };
        let (spans, waiting) = mpsc::channel(WAITING_MAX);
        let (counts, stop, tasks) =
            (Arc::new(Counts::default()), CancellationToken::new(), TaskTracker::new());
        tasks.spawn(export::run(collector, waiting, Arc::clone(&counts), stop.clone()));
        Ok(Some(Self { spans, counts, stop, tasks }))
    }

    /// Hands on the span of a call that is over.
    pub(super) fn record(&self, call: &CallSummary<'_>) {
        // A call that came here without a span of its own gets one now.
        let own = match call.trace {
            Some(trace) if trace.is_own() => Some(trace.clone()),
            trace => begin(trace.cloned()),
        };
        let Some(own) = own.filter(|own| own.is_own() && own.is_sampled()) else { return };
        if self.spans.try_send(Span::new(own, call)).is_err() {
            self.counts.lost(1);
        }
    }

    pub(super) fn counts(&self) -> SpanCounts {
        self.counts.read()
    }

    pub(super) async fn end(&self) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(END_WAIT_MAX, self.tasks.wait()).await.is_err() {
            tracing::warn!("the collector takes too long: the last spans are lost");
        }
    }
}

/// A span for a call: below its caller's, or the first of a new trace. If the caller does not record its trace, its
/// context is passed on and there is no span.
pub(super) fn begin(caller: Option<TraceContext>) -> Option<TraceContext> {
    let (mut trace_id, mut span_id) = ([0; 16], [0; 8]);
    // Without randomness there are no ids; the call continues without a span.
    let has_ids = getrandom::fill(&mut trace_id).and(getrandom::fill(&mut span_id)).is_ok();
    match caller {
        Some(caller) if has_ids && caller.is_sampled() => caller.child(span_id).or(Some(caller)),
        Some(caller) => Some(caller),
        None => TraceContext::root(trace_id, span_id),
    }
}
