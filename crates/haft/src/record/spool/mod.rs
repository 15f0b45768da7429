//! Ships the log: follows the local files and sends their lines to a [`LogSink`].
//!
//! The files are the spool. A call never waits for a sink: its entry goes to the local file, and a task reads it from
//! there. The sink keeps the cursor of each file and moves it together with the rows, both or neither. So a batch that
//! is sent twice, that arrives late, or whose outcome is unknown has no effect, and after a crash shipping resumes where
//! the sink has the cursor. Nothing about shipping is stored on the local disk, except the [id](SpoolId) of the spool.

mod backoff;
mod file;
mod folder;
mod id;
mod row;
mod shipped;
mod shipper;
mod status;

use crate::tool::BoxFuture;

pub use id::SpoolId;
pub use row::{COLUMN_BYTES_MAX, ShipRow, column};
pub use shipped::ShippedFiles;
pub use shipper::{LogDir, Shipper};
pub use status::{ShipProblem, ShipStatus};

pub(super) use shipped::FileIdentity;

/// Receives the lines of the log.
pub trait LogSink: Send + Sync + 'static {
    /// Returns how far each file of a spool was shipped.
    fn cursor<'a>(
        &'a self,
        spool: &'a SpoolId,
    ) -> BoxFuture<'a, Result<Vec<FileCursor>, SinkError>>;

    /// Stores the rows of `batch` and moves the cursor of their file from `from` to `batch.to`: both or neither. Rows
    /// that are stored already stay as they are.
    fn ship<'a>(
        &'a self,
        spool: &'a SpoolId,
        from: &'a FileCursor,
        batch: &'a ShipBatch,
    ) -> BoxFuture<'a, Result<Shipped, SinkError>>;

    /// Removes the cursor of a file that was shipped completely and is deleted.
    fn forget<'a>(
        &'a self,
        spool: &'a SpoolId,
        file: &'a FileCursor,
    ) -> BoxFuture<'a, Result<(), SinkError>>;
}

/// A position in a file of a spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCursor {
    /// The file: its name, and a hash that distinguishes it from an earlier or later one of its name.
    pub file: String,
    /// Every line before this offset was shipped.
    pub at: u64,
}

/// Consecutive lines of one file.
#[derive(Debug, Clone, Default)]
pub struct ShipBatch {
    /// The offset after the last line.
    pub to: u64,
    /// The entries, in the order of the file. Blank and invalid lines are left out.
    pub rows: Vec<ShipRow>,
}

/// The outcome of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shipped {
    /// The rows are stored, and the cursor moved.
    Moved,
    /// The cursor is elsewhere, so nothing was stored: another process shipped the file, or the sink lost a batch.
    At(u64),
}

/// Reasons why a sink takes no lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SinkError {
    /// The sink cannot be used now, or the outcome is unknown. The shipper reads the cursor again and retries.
    #[error("{problem}")]
    Unavailable {
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// The sink refuses the content of the batch. The shipper sends its rows in smaller batches.
    #[error("{problem}")]
    Rejected {
        /// The problem.
        problem: String,
    },
}
