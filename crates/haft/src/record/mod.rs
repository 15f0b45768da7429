//! The execution log: one JSON line for each call, in `DIR/tools-YYYY-MM-DD.jsonl`. A day that is too
//! long for one file goes on in `tools-YYYY-MM-DD.2.jsonl`.
//!
//! # Who writes
//! A caller serializes and redacts its own entry and puts the line into a queue. If no thread is
//! writing, it spawns a task that writes the whole queue; entries that arrive meanwhile go out with
//! the same or the next write. The worker that spawned the task runs it next, so no other thread is
//! woken. The alternative, a thread that writes for all callers, was measured beside it: waking the
//! thread and then the caller costs 40 to 100 µs for a write that takes 1 to 2 µs, and the whole path
//! of a call has 20 µs.
//!
//! A disk that hangs holds the worker that writes, and only that one: at most one thread ever
//! writes, and the call is a task of its own. A watch notices after [`WATCH_EVERY`] and wakes another
//! worker; after [`STALL_AFTER`] it reports the failure and releases all waiting calls. The only
//! worker of a runtime never writes: it leaves that to a thread of the log, as do a thread in
//! `block_on` and callers that need [`Durability::Disk`], for an fsync takes milliseconds.
//!
//! # What can be relied on
//! - An entry is in the queue when [`ExecutionLog::append`] returns its future, not when that is
//!   awaited: dropping the future loses nothing.
//! - A batch is one `write(2)` of whole lines to a file opened with `O_APPEND`, so several
//!   processes can share a directory.
//! - What could not be written is kept, in order and within [`BACKLOG_ENTRIES_MAX`] and
//!   [`BACKLOG_BYTES_MAX`], and written when the disk recovers. What did not fit is counted.

mod clock;
mod compact;
mod entry;
mod error;
mod files;
mod follow;
mod health;
mod line;
mod lines;
mod notice;
mod open_file;
mod query;
mod queue;
mod room;
mod shorten;
mod sink;
mod space;
#[cfg(test)]
mod tests;
mod writer;

use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use crate::redact::{MASK, Redactor, SECRET_CHARS_MIN};
pub use clock::{Clock, ManualClock, SystemClock};
pub use entry::{Entry, LoggedCall, Outcome, Outcomes, Source};
pub use error::LogError;
pub use follow::Follow;
pub use health::{LogHealth, LowSpace};
pub(crate) use line::rfc3339;
pub use query::{Calls, Filter, read};
pub use space::{
    KEEP_FREE_BYTES_DEFAULT, KEEP_FREE_PERCENT_DEFAULT, KeepFree, MAX_BYTES_DEFAULT, MAX_BYTES_MIN,
};

use tokio::sync::oneshot;

use crate::memory::MemoryBudget;
use line::{Line, LineLimit};
use space::part_bytes_max;
use writer::Writer;

/// Lines up to this size are not counted as memory in flight.
const FREE_BYTES: usize = 64 * 1024;

/// How many days of files are kept unless the configuration says otherwise.
pub const RETAIN_DAYS_DEFAULT: u32 = 30;

/// The largest entry of a call whose tool was not started: refused, unknown, or with invalid arguments.
pub const REFUSED_ENTRY_BYTES_MAX: usize = 8 << 10;

/// How much is kept of each field of a larger one.
pub const REFUSED_FIELD_BYTES_MAX: usize = 1 << 10;

/// How often the free space of the disk is looked at while nothing is written.
pub const SPACE_CHECK_EVERY: Duration = Duration::from_secs(10);

/// How many entries are kept in memory while the log cannot be written.
pub const BACKLOG_ENTRIES_MAX: usize = 10_000;

/// How many bytes of entries are kept in memory while the log cannot be written.
pub const BACKLOG_BYTES_MAX: usize = 16 << 20;

/// A write that takes longer counts as a failure of the log. Half a second, so that a call ends within
/// a second of its timeout even if the log hangs.
pub const STALL_AFTER: Duration = Duration::from_millis(500);

/// How often the watch looks at the write in progress. A runtime lacks the worker that writes for at
/// most twice as long before another one replaces it.
pub const WATCH_EVERY: Duration = Duration::from_millis(20);

/// How often a log that fails is tried again when no call does so.
pub const RETRY_EVERY: Duration = Duration::from_secs(1);

/// How often the log looks whether its file was moved away. A look costs as much as a write; a file
/// that was deleted is noticed without it.
pub const PATH_CHECK_EVERY: Duration = Duration::from_millis(100);

/// The log. Clones share one file; the last one to go lets its threads end.
#[derive(Debug, Clone)]
pub struct ExecutionLog {
    redactor: Redactor,
    line_limit: LineLimit,
    handle: Arc<Handle>,
    memory: Option<MemoryBudget>,
}

/// Where the log is and how it behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// The directory of the files. It is created if needed.
    pub dir: PathBuf,
    /// Files with a date more than this many days before the newest are deleted.
    pub retain_days: u32,
    /// The most that all files may have together. The oldest are deleted first. At least
    /// [`MAX_BYTES_MIN`].
    pub max_bytes: Option<u64>,
    /// How much of the disk is left free.
    pub keep_free: KeepFree,
    /// What becomes of calls that cannot be recorded.
    pub on_failure: OnLogFailure,
    /// When an entry counts as written.
    pub durability: Durability,
}

impl LogOptions {
    /// The defaults, in `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            retain_days: RETAIN_DAYS_DEFAULT,
            max_bytes: Some(MAX_BYTES_DEFAULT),
            keep_free: KeepFree::default(),
            on_failure: OnLogFailure::default(),
            durability: Durability::default(),
        }
    }
}

/// What becomes of calls that cannot be recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnLogFailure {
    /// They are refused: no tool runs without a record.
    #[default]
    Refuse,
    /// They run. Their entries are kept in memory as long as there is room.
    Degrade,
}

/// When an entry counts as written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the operating system has it: it survives the end of the process.
    #[default]
    Os,
    /// When the disk has it: it survives a power cut. Each batch then waits for an fsync.
    Disk,
}

impl ExecutionLog {
    /// Creates the directory if needed, opens today's file, makes sure that it can take an entry
    /// and deletes expired ones.
    ///
    /// Fails only with [`OnLogFailure::Refuse`]. With [`OnLogFailure::Degrade`] a log that cannot
    /// be written says so, keeps what it can and tries again, as it does later on.
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
        let line_limit = LineLimit::of_part(part_bytes_max(options.max_bytes));
        let writer = Writer::start(options, limits, clock)?;
        Ok(Self { redactor, line_limit, handle: Arc::new(Handle(writer)), memory: None })
    }

    /// Counts what waits to be written as memory in flight. It is never refused: every call leaves its entry.
    #[must_use]
    pub fn charged_to(mut self, memory: MemoryBudget) -> Self {
        self.memory = Some(memory);
        self
    }

    fn line(&self, entry: &Entry<'_>) -> Line {
        let mut line = Line::new(entry, &self.redactor, self.line_limit);
        let is_long = line.text.len() > FREE_BYTES;
        line.memory =
            self.memory.as_ref().filter(|_| is_long).map(|it| it.charge(line.text.len(), None));
        line
    }

    /// Records `entry`. The future resolves once the line has reached the operating system, or
    /// the disk with [`Durability::Disk`]; the entry is recorded even if the future is dropped.
    ///
    /// Fails only with [`OnLogFailure::Refuse`]. The entry is then kept in memory all the same and
    /// written once the log recovers, so it must not be handed in again.
    pub fn append(
        &self,
        entry: &Entry<'_>,
    ) -> impl Future<Output = Result<(), LogError>> + Send + use<> {
        settled(self.handle.0.submit(self.line(entry)), Arc::clone(&self.handle))
    }

    /// Records `entry` without waiting and without touching the disk: for a guard's `Drop`.
    pub fn append_detached(&self, entry: &Entry<'_>) {
        self.handle.0.submit_detached(self.line(entry));
    }

    /// Returns an error if no call may run: with [`OnLogFailure::Refuse`], if the last write failed
    /// and another attempt, made now, fails too. Costs one atomic load while the log works.
    pub async fn ready(&self) -> Result<(), LogError> {
        match self.handle.0.retry_if_failing() {
            None => Ok(()),
            Some(attempt) => settled(attempt, Arc::clone(&self.handle)).await,
        }
    }

    /// Where the log is and how it behaves.
    pub fn options(&self) -> &LogOptions {
        self.handle.0.options()
    }

    /// What masks secrets in the log, for texts that go elsewhere.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// How the log is doing.
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

/// Locks, whatever happened to an earlier holder: the state is changed in single steps that leave
/// nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
