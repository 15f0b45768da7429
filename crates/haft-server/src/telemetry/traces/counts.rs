//! Counters of exported and lost spans.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::telemetry::metrics::SpanCounts;

#[derive(Debug, Default)]
pub(super) struct Counts {
    exported: AtomicU64,
    dropped: AtomicU64,
}

impl Counts {
    pub(super) fn arrived(&self, spans: u64) {
        self.exported.fetch_add(spans, Relaxed);
    }

    pub(super) fn lost(&self, spans: u64) {
        self.dropped.fetch_add(spans, Relaxed);
    }

    pub(super) fn read(&self) -> SpanCounts {
        SpanCounts { exported: self.exported.load(Relaxed), dropped: self.dropped.load(Relaxed) }
    }
}
