//! From the queue to the collector, in batches, again where that may help.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::collector::{Again, Collector, Refusal};
use super::counts::Counts;
use super::span::Span;

/// Largest number of spans in one request.
const BATCH_SPANS_MAX: usize = 512;

/// Longest time that a span waits for its batch.
const BATCH_WAIT_MAX: Duration = Duration::from_secs(1);

/// Number of attempts per batch.
const TRIES_MAX: u32 = 6;

/// The wait before the second try; it doubles with each.
const RETRY_WAIT_MIN: Duration = Duration::from_millis(500);

/// Sends spans until `stop`, and then the remaining ones.
pub(super) async fn run(
    collector: Collector,
    mut spans: mpsc::Receiver<Span>,
    counts: Arc<Counts>,
    stop: CancellationToken,
) {
    let mut export = Export { collector, counts, stop, dropped_before: None };
    let mut batch = Vec::with_capacity(BATCH_SPANS_MAX);
    while export.gather(&mut spans, &mut batch).await {
        export.deliver(&batch).await;
        batch.clear();
    }
}

struct Export {
    collector: Collector,
    counts: Arc<Counts>,
    stop: CancellationToken,
    /// While the collector does not take spans: how many had been lost before.
    dropped_before: Option<u64>,
}

impl Export {
    /// Fills a batch. False when there will be no more.
    async fn gather(&self, spans: &mut mpsc::Receiver<Span>, batch: &mut Vec<Span>) -> bool {
        let first = tokio::select! {
            biased;
            span = spans.recv() => span,
            () = self.stop.cancelled() => {
                // What is in the queue still comes.
                spans.close();
                spans.recv().await
            }
        };
        let Some(first) = first else { return false };
        batch.push(first);
        let filling = async {
            while batch.len() < BATCH_SPANS_MAX {
                let Some(span) = spans.recv().await else { return };
                batch.push(span);
            }
        };
        tokio::select! {
            biased;
            () = filling => {}
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(BATCH_WAIT_MAX) => {}
        }
        true
    }

    /// Sends a batch, again if need be; in the end it has arrived or is lost.
    async fn deliver(&mut self, batch: &[Span]) {
        let all = batch.len() as u64;
        let mut wait = RETRY_WAIT_MIN;
        for _ in 0..TRIES_MAX {
            match self.collector.send(batch).await {
                Ok(None) => {
                    self.counts.arrived(all);
                    return self.is_well();
                }
                Ok(Some((rejected, why))) => {
                    self.counts.arrived(all.saturating_sub(rejected));
                    self.counts.lost(rejected.min(all));
                    return self.is_in_trouble(&format!("it rejected {rejected} of {all}: {why}"));
                }
                Err(Refusal { problem, again }) => {
                    self.is_in_trouble(&problem);
                    let Again::After(wanted) = again else { break };
                    if self.stop.is_cancelled() {
                        break;
                    }
                    // At the end there is one more try, at once.
                    tokio::select! {
                        () = tokio::time::sleep(wait.max(wanted)) => {}
                        () = self.stop.cancelled() => {}
                    }
                    wait *= 2;
                }
            }
        }
        self.counts.lost(all);
    }

    /// Logs the first failure, and not again before a success.
    fn is_in_trouble(&mut self, problem: &str) {
        if self.dropped_before.is_none() {
            self.dropped_before = Some(self.counts.read().dropped);
            let collector = &self.collector.shown;
            tracing::warn!(%collector, "the collector does not take spans: {problem}");
        }
    }

    fn is_well(&mut self) {
        if let Some(before) = self.dropped_before.take() {
            let lost = self.counts.read().dropped.saturating_sub(before);
            let collector = &self.collector.shown;
            tracing::info!(%collector, lost, "the collector takes spans again");
        }
    }
}
