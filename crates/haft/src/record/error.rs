//! Errors of writing and reading the log.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft_text::human;

/// An error of a log file. Cheap to clone, because every waiting call receives it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LogError {
    /// The file or its directory cannot be created or written.
    #[error("the execution log `{}` cannot be written", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: Arc<io::Error>,
    },
    /// A write takes too long; the disk or the network behind it hangs.
    #[error("the execution log `{}` took no entry for {}", path.display(), human(*after))]
    Stalled {
        /// The directory.
        path: PathBuf,
        /// The limit that was in force.
        after: Duration,
    },
    /// The disk has less than `log.keep_free` left, and there are no older files to delete.
    #[error(
        "the disk of the execution log `{}` has {free_bytes} bytes left, less than `log.keep_free` \
         ({keep_free_bytes})",
        path.display()
    )]
    NoSpace {
        /// The directory.
        path: PathBuf,
        /// The free space.
        free_bytes: u64,
        /// The space to keep free.
        keep_free_bytes: u64,
    },
    /// The entries that wait to be shipped have reached `log.spool_max`.
    #[error(
        "the execution log `{}` has {waiting_bytes} bytes that wait to be shipped, and `log.spool_max` is {bytes_max}",
        path.display()
    )]
    SpoolFull {
        /// The directory.
        path: PathBuf,
        /// The size of its files.
        waiting_bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The file or its directory cannot be read.
    #[error("the execution log `{}` cannot be read", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: Arc<io::Error>,
    },
}

impl LogError {
    /// The failure with the error of the operating system, in one line.
    pub fn problem(&self) -> String {
        match self {
            Self::Write { source, .. } | Self::Read { source, .. } => format!("{self}: {source}"),
            Self::Stalled { .. } | Self::NoSpace { .. } | Self::SpoolFull { .. } => {
                self.to_string()
            }
        }
    }

    /// The remedy.
    pub fn remedy(&self) -> String {
        match self {
            Self::Write { path, .. } => format!(
                "make room and check the permissions of `{}`, or point `log.dir` elsewhere",
                path.display()
            ),
            Self::Stalled { path, .. } => {
                format!("check the disk or network mount that holds `{}`", path.display())
            }
            Self::NoSpace { path, .. } => format!(
                "make room on the disk that holds `{}`, or lower `log.keep_free`",
                path.display()
            ),
            Self::SpoolFull { .. } => {
                "see that the shared database can be reached, or raise `log.spool_max`".to_owned()
            }
            Self::Read { path, .. } => {
                format!("check that `{}` exists and may be read", path.display())
            }
        }
    }

    pub(super) fn write(path: &Path, error: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source: Arc::new(error) }
    }

    pub(super) fn read(path: &Path, error: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source: Arc::new(error) }
    }
}
