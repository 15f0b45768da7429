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
