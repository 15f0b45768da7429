//! Counts the bytes of JSON that are parsed and copied on the path of a call, in debug builds: a test compares them with
//! the size of the arguments. Release builds count nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

static PARSED: AtomicUsize = AtomicUsize::new(0);
static COPIED: AtomicUsize = AtomicUsize::new(0);

/// The bytes that this process has parsed and copied so far. Zero in release builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Bytes of JSON that a parser or the scanner has read.
    pub parsed: usize,
    /// Bytes of JSON that were copied.
    pub copied: usize,
}

/// Counts a string that is about to be parsed.
#[inline]
pub fn parsing(text: &[u8]) {
    if cfg!(debug_assertions) {
        PARSED.fetch_add(text.len(), Ordering::Relaxed);
    }
}

/// Counts a string that is about to be copied.
#[inline]
pub fn copying(text: &str) {
    if cfg!(debug_assertions) {
        COPIED.fetch_add(text.len(), Ordering::Relaxed);
    }
}

/// The effort so far.
pub fn so_far() -> Effort {
    Effort { parsed: PARSED.load(Ordering::Relaxed), copied: COPIED.load(Ordering::Relaxed) }
}
