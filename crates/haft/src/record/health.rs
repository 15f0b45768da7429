//! The health of the log, for health checks and metrics.

use jiff::Timestamp;

use super::error::LogError;

/// The health of the log.
#[derive(Debug, Clone)]
pub enum LogHealth {
    /// The last write worked.
    Working {
        /// Number of entries lost in earlier failures, since the log was opened.
        entries_lost: u64,
        /// Present if the disk is nearly full.
        low_space: Option<LowSpace>,
    },
    /// The last write failed or hangs.
    Failing {
        /// The start of the failure.
        since: Timestamp,
        /// The error.
        problem: LogError,
        /// Number of entries kept in memory until the disk recovers.
        entries_kept: usize,
        /// Number of entries that did not fit there, since the log was opened.
        entries_lost: u64,
    },
}

impl LogHealth {
    /// Returns true if the last write succeeded.
    pub fn is_working(&self) -> bool {
        match self {
            Self::Working { .. } => true,
            Self::Failing { .. } => false,
        }
    }
}

/// A disk that is nearly full: it has less than twice `log.keep_free` left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LowSpace {
    /// The free space of the disk.
    pub free_bytes: u64,
    /// `log.keep_free`, in bytes.
    pub keep_free_bytes: u64,
}

impl std::fmt::Display for LowSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { free_bytes, keep_free_bytes } = self;
        write!(
            f,
            "the disk of the execution log is nearly full: {free_bytes} bytes are free, and \
             `log.keep_free` is {keep_free_bytes}"
        )
    }
}
