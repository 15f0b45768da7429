//! The execution log: one JSON line for each call, in `DIR/tools-YYYY-MM-DD.jsonl`. A day that is too
//! long for one file continues in `tools-YYYY-MM-DD.2.jsonl`.
//!
//! # Who writes
//! A caller formats and redacts its own entry and appends the line to one buffer. If no thread is
//! writing, it wakes the flusher, a task that writes the whole buffer; entries that arrive meanwhile go
//! out with the same or the next write. The worker that wakes the flusher runs it next, so no other
//! thread is woken. If several calls are in flight, the flusher first lets the tasks run that are ready,
//! so that their entries share its write. The alternative, a thread that writes for all callers, was
//! measured beside it: waking the thread and then the caller costs 40 to 100 µs for a write that takes
//! 1 to 2 µs, and the whole path of a call has 20 µs.
//!
//! A disk that hangs holds the worker that writes, and only that one: at most one thread ever
//! writes, and the call is a task of its own. A watch notices after `WATCH_EVERY` and wakes another
//! worker; after `STALL_AFTER` it reports the failure and releases all waiting calls. The only
//! worker of a runtime never writes: it leaves that to a thread of the log, as do a thread in
//! `block_on` and callers that need [`Durability::Disk`], for an fsync takes milliseconds.
//!
//! # What can be relied on
//! - An entry is in the queue when [`ExecutionLog::append`] returns its future, not when that is
//!   awaited: dropping the future loses nothing.
//! - A batch is one `write(2)` of whole lines to a file opened with `O_APPEND`, so several
//!   processes can share a directory.
//! - A deleted file is noticed before each write, a file that was moved away within `PATH_CHECK_EVERY`:
//!   its lines are where it was moved to.
//! - What could not be written is kept, in order and within `BACKLOG_ENTRIES_MAX` and
//!   `BACKLOG_BYTES_MAX`, and written when the disk recovers. What did not fit is counted.

mod batch;
mod clock;
mod compact;
mod entry;
mod error;
mod files;
mod flusher;
mod follow;
mod format;
mod health;
mod line;
mod lines;
mod notice;
mod number;
mod open_file;
mod query;
mod queue;
mod replay;
mod reverse;
mod room;
mod shorten;
mod sink;
mod space;
mod spool;
#[cfg(test)]
mod tests;
mod writer;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use clock::{Clock, ManualClock, SystemClock};
pub use entry::{Entry, LoggedCall, Outcome, Outcomes, RecordSource};
pub use error::LogError;
pub use follow::Follow;
pub use haft_config::redact::Redactor;
pub use health::{LogHealth, LowSpace};
// For the crates of this workspace that write such times too.
#[doc(hidden)]
pub use line::rfc3339;
pub use query::{CallIter, Filter, read};
pub use replay::{Fact, Replay, ReplayFacts, replay};
pub use space::KeepFree;
use space::MAX_BYTES_DEFAULT;
// For the crates of this workspace that ship the log: it becomes public with a second sink.
#[doc(hidden)]
pub use spool::{
    COLUMN_BYTES_MAX, FileCursor, LogDir, LogSink, ShipBatch, ShipProblem, ShipRow, ShipStatus,
    Shipped, ShippedFiles, Shipper, SinkError, SpoolId, column,
};

use tokio::sync::oneshot;

use crate::memory::MemoryBudget;
pub(crate) use line::Line;
use line::LineLimit;
use shorten::ContentNotes;
use space::part_bytes_max;
use writer::Writer;

/// Lines up to this size are not counted as memory in flight.
const FREE_BYTES: usize = 64 * 1024;

/// Default number of days of files to keep.
pub(crate) const RETAIN_DAYS_DEFAULT: u32 = 30;

/// The largest entry of a call whose tool was not started: refused, unknown, or with invalid arguments.
pub const REFUSED_ENTRY_BYTES_MAX: usize = 8 << 10;

/// Number of bytes kept of each field of a larger one.
pub(crate) const REFUSED_FIELD_BYTES_MAX: usize = 1 << 10;

/// Interval of checks of the free space while nothing is written.
pub(crate) const SPACE_CHECK_EVERY: Duration = Duration::from_secs(10);

/// Maximum number of entries kept in memory while the log cannot be written.
pub(crate) const BACKLOG_ENTRIES_MAX: usize = 10_000;

/// Maximum size of entries kept in memory while the log cannot be written.
pub(crate) const BACKLOG_BYTES_MAX: usize = 16 << 20;

/// A write that takes longer counts as a failure of the log. Half a second, so that a call ends within
/// a second of its timeout even if the log hangs.
pub(crate) const STALL_AFTER: Duration = Duration::from_millis(500);

/// Interval at which the watch checks the write in progress. A runtime lacks the worker that writes
/// for at most twice as long before another one replaces it.
pub(crate) const WATCH_EVERY: Duration = Duration::from_millis(20);

/// Interval of retries of a failing log without calls.
pub(crate) const RETRY_EVERY: Duration = Duration::from_secs(1);

/// Interval of checks for a moved or deleted file. A check costs as much as a write.
pub(crate) const PATH_CHECK_EVERY: Duration = Duration::from_millis(100);

/// The log. Clones share one file; the last one to go lets its threads end.
#[derive(Debug, Clone)]
pub struct ExecutionLog {
    redactor: Redactor,
    line_limit: LineLimit,
    handle: Arc<Handle>,
    memory: Option<MemoryBudget>,
}

/// The location and behaviour of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// The directory of the files. It is created if needed.
    pub dir: PathBuf,
    /// Files with a date more than this many days before the newest are deleted.
    pub retain_days: u32,
    /// The most that all files may have together. The oldest are deleted first. At least
    /// 1 MiB.
    pub max_bytes: Option<u64>,
    /// Disk space to keep free.
    pub keep_free: KeepFree,
    /// The handling of calls that cannot be recorded.
    pub on_failure: LogFailurePolicy,
    /// The time at which an entry counts as written.
    pub durability: Durability,
    /// If present, the files are a spool: a [`Shipper`] sends them elsewhere, and only shipped files are deleted.
    /// `retain_days` and `max_bytes` have no effect then.
    #[doc(hidden)]
    pub spool: Option<SpoolOptions>,
}

/// The limit of a log that is shipped.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpoolOptions {
    /// The most that all files may have together. Shipped files are deleted first; if the others reach it, the log
    /// fails as on a full disk.
    pub bytes_max: u64,
    /// The files that were shipped. The shipper of the same process notes them.
    pub shipped: ShippedFiles,
}

impl LogOptions {
    /// The defaults, in `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            retain_days: RETAIN_DAYS_DEFAULT,
            max_bytes: Some(MAX_BYTES_DEFAULT),
            keep_free: KeepFree::default(),
            on_failure: LogFailurePolicy::default(),
            durability: Durability::default(),
            spool: None,
        }
    }

    /// The most that all files may have together.
    fn bytes_max(&self) -> Option<u64> {
        self.spool.as_ref().map_or(self.max_bytes, |spool| Some(spool.bytes_max))
    }
}

/// The handling of calls that cannot be recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFailurePolicy {
    /// They are refused: no tool runs without a record.
    #[default]
    Refuse,
    /// They run. Their entries are kept in memory as long as there is room.
    Degrade,
}

/// The time at which an entry counts as written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// Once the operating system has it: it survives the end of the process.
    #[default]
    Os,
    /// Once the disk has it: it survives a power cut. Each batch then waits for an fsync.
    Disk,
}

impl ExecutionLog {
    /// Creates the directory if needed, opens today's file, makes sure that it can take an entry
    /// and deletes expired ones.
    ///
    /// Fails only with [`LogFailurePolicy::Refuse`]. With [`LogFailurePolicy::Degrade`] a failing
    /// log reports the failure, keeps entries in memory within limits and retries.
    pub fn open(
        options: LogOptions,
        redactor: Redactor,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, LogError> {
        Self::open_with(options, Limits::default(), redactor, clock)
    }

    fn open_with(
        options: LogOptions,
        limits: Limits,
        redactor: Redactor,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, LogError> {
        let line_limit = LineLimit::of_part(part_bytes_max(options.bytes_max()));
        let writer = Writer::start(options, limits, clock)?;
        Ok(Self { redactor, line_limit, handle: Arc::new(Handle(writer)), memory: None })
    }

    /// Counts what waits to be written as memory in flight. It is never refused: every call leaves its entry.
    #[must_use]
    pub fn charged_to(mut self, memory: MemoryBudget) -> Self {
        self.memory = Some(memory);
        self
    }

    /// The line of an entry.
    pub(crate) fn line(&self, entry: &Entry<'_>) -> Line {
        self.charged(Line::new(entry, &self.redactor, self.line_limit))
    }

    /// The line of an entry without arguments and answer, which has the reason in their place.
    pub(crate) fn line_without_content(&self, entry: &Entry<'_>, reason: &str) -> Line {
        let notes = ContentNotes::new(entry, reason);
        let limit = self.line_limit.of_refused();
        self.charged(Line::new(&notes.replace(entry), &self.redactor, limit))
    }

    fn charged(&self, mut line: Line) -> Line {
        let is_long = line.text.len() > FREE_BYTES;
        line.memory =
            self.memory.as_ref().filter(|_| is_long).map(|it| it.charge(line.text.len(), None));
        line
    }

    /// Records `entry`. The future resolves once the line has reached the operating system, or
    /// the disk with [`Durability::Disk`]; the entry is recorded even if the future is dropped.
    ///
    /// Fails only with [`LogFailurePolicy::Refuse`]. The entry is then kept in memory all the same and
    /// written once the log recovers, so it must not be handed in again.
    pub fn append(
        &self,
        entry: &Entry<'_>,
    ) -> impl Future<Output = Result<(), LogError>> + Send + use<> {
        self.append_among(self.line(entry), 1)
    }

    /// The same, with the number of calls in flight. If there are several, their entries share a write.
    pub(crate) fn append_among(
        &self,
        mut line: Line,
        calls_in_flight: usize,
    ) -> impl Future<Output = Result<(), LogError>> + Send + use<> {
        let answer = self.handle.0.submit(&mut line, calls_in_flight);
        line.recycle();
        settled(answer, Arc::clone(&self.handle))
    }

    /// Records `entry` without waiting and without touching the disk: for a guard's `Drop`.
    pub fn append_detached(&self, entry: &Entry<'_>) {
        self.append_line_detached(self.line(entry));
    }

    /// The same with a finished line.
    pub(crate) fn append_line_detached(&self, mut line: Line) {
        self.handle.0.submit_detached(&mut line);
        line.recycle();
    }

    /// Returns an error if no call may run: with [`LogFailurePolicy::Refuse`], if the last write failed
    /// and another attempt, made now, fails too. Costs one atomic load while the log works.
    pub async fn ready(&self) -> Result<(), LogError> {
        match self.handle.0.retry_if_failing() {
            None => Ok(()),
            Some(attempt) => settled(attempt, Arc::clone(&self.handle)).await,
        }
    }

    /// The location and behaviour of the log.
    pub fn options(&self) -> &LogOptions {
        self.handle.0.options()
    }

    /// The redactor of the log, for other output.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The health of the log.
    pub fn health(&self) -> LogHealth {
        self.handle.0.health()
    }

    /// Waits until everything queued is written. Fails if entries are left that cannot be: if the
    /// process ends now, they are lost. The log stays usable.
    pub async fn close(&self) -> Result<(), LogError> {
        settled(self.handle.0.flush(), Arc::clone(&self.handle)).await
    }
}

/// Stops the threads when the last clone of the log is gone.
#[derive(Debug)]
struct Handle(Arc<Writer>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The limits in force. Tests use smaller ones.
#[derive(Debug, Clone, Copy)]
struct Limits {
    stall_after: Duration,
    watch_every: Duration,
    retry_every: Duration,
    path_check_every: Duration,
    space_check_every: Duration,
    backlog_entries_max: usize,
    backlog_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            stall_after: STALL_AFTER,
            watch_every: WATCH_EVERY,
            retry_every: RETRY_EVERY,
            path_check_every: PATH_CHECK_EVERY,
            space_check_every: SPACE_CHECK_EVERY,
            backlog_entries_max: BACKLOG_ENTRIES_MAX,
            backlog_bytes_max: BACKLOG_BYTES_MAX,
        }
    }
}

/// Waits for the writer's answer. Holds the log open until then, so that its threads still run.
async fn settled(
    answer: oneshot::Receiver<Result<(), LogError>>,
    handle: Arc<Handle>,
) -> Result<(), LogError> {
    match answer.await {
        Ok(answer) => answer,
        // Only a panic inside the writer can lose an answer.
        Err(_) => Err(handle.0.gone()),
    }
}
