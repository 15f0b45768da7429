//! How the log is doing, for health checks and metrics.

use jiff::Timestamp;

use super::error::LogError;

/// Whether entries reach the disk.
#[derive(Debug, Clone)]
pub enum LogHealth {
    /// The last write worked.
    Working {
        /// How many entries were lost in earlier trouble, since the log was opened.
        entries_lost: u64,
        /// Present if the disk is nearly full.
        low_space: Option<LowSpace>,
    },
    /// The last write failed or hangs.
    Failing {
        /// When the trouble began.
        since: Timestamp,
        /// What it is.
        problem: LogError,
        /// How many entries are kept in memory until the disk recovers.
        entries_kept: usize,
        /// How many entries did not fit there, since the log was opened.
        entries_lost: u64,
    },
}

impl LogHealth {
    /// Whether the last write worked.
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
    /// How much the disk has left.
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
