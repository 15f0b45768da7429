//! Process trees that end together.

use std::sync::atomic::{AtomicU64, Ordering};

/// The process trees of one runtime. Two runtimes in one process do not kill each other's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessScope(u64);

impl ProcessScope {
    /// Creates a scope without processes.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }

    pub(super) fn with_number(number: u64) -> Self {
        Self(number)
    }
}
