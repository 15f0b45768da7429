//! The files of a log directory: one per day, in parts if the day is long, named by date and deleted
//! by name.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use jiff::tz::Offset;
use jiff::{Span, Timestamp};
use rustix::fs::OFlags;

use super::error::LogError;

/// The date in UTC, which names the file a record goes to.
pub(super) fn utc_date(timestamp: Timestamp) -> Date {
    Offset::UTC.to_datetime(timestamp).date()
}

/// One file of the log. Files compare by age.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LogFile {
    pub(super) date: Date,
    /// Its number among the parts of that day, from 1.
    pub(super) part: u32,
    pub(super) path: PathBuf,
}

impl LogFile {
    /// The file of a part of a day: `tools-2026-07-15.jsonl`, then `tools-2026-07-15.2.jsonl`.
    pub(super) fn new(dir: &Path, date: Date, part: u32) -> Self {
        let name = match part {
            1 => format!("tools-{date}.jsonl"),
            part => format!("tools-{date}.{part}.jsonl"),
        };
        Self { date, part, path: dir.join(name) }
    }

    fn at(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let text = name.strip_prefix("tools-")?.strip_suffix(".jsonl")?;
        let (date, part) = match text.split_once('.') {
            Some((date, part)) => (date, part.parse().ok()?),
            None => (text, 1),
        };
        let file = Self::new(path.parent()?, date.parse().ok()?, part);
        // Only the one spelling that the log writes: `tools-20260101.jsonl` is another program's.
        (part > 0 && file.path == path).then_some(file)
    }

    /// Deletes the file. A failure is reported and does not stop the log.
    pub(super) fn delete(&self, why: &str) {
        match fs::remove_file(&self.path) {
            Ok(()) => tracing::info!(path = %self.path.display(), "deleted a log file: {why}"),
            // Another process that shares the directory was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%path, %error, "could not delete a log file: {why}");
            }
        }
    }
}

/// Every log file, oldest first. Files with other names belong to other programs.
pub(super) fn list(dir: &Path) -> Result<Vec<LogFile>, LogError> {
    let entries = fs::read_dir(dir).map_err(|error| LogError::read(dir, error))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| LogError::read(dir, error))?;
        files.extend(LogFile::at(&entry.path()));
    }
    files.sort_unstable();
    Ok(files)
}

/// Opens a log file for reading. Only a regular file has an end: a pipe or a device of that name
/// would block, or be read, forever.
pub(super) fn open_to_read(path: &Path) -> io::Result<File> {
    // A pipe without a writer would already block the opening.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Deletes the files whose date is more than `retain_days` before `newest`: an entry is kept for at
/// least that many whole days. A clock that was set back makes `newest` smaller and so can only
/// keep more. The files of `newest` itself always stay.
pub(super) fn delete_expired(dir: &Path, newest: Date, retain_days: u32) {
    let days_kept = Span::new().try_days(i64::from(retain_days));
    let Ok(oldest_kept) = days_kept.and_then(|days| newest.checked_sub(days)) else {
        return; // The limit lies before the first date there is, so nothing is that old.
    };
    match list(dir) {
        Ok(files) => {
            let expired = files.iter().filter(|file| file.date < oldest_kept);
            expired.for_each(|file| file.delete("it expired"));
        }
        Err(error) => {
            tracing::warn!(error = error.problem(), "could not look for expired log files");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::LogFile;

    #[test]
    fn only_names_that_the_log_writes_are_its_files() {
        let found = |name: &str| {
            let file = LogFile::at(&Path::new("logs").join(name))?;
            Some((file.date, file.part))
        };
        let date = jiff::civil::date(2026, 2, 28);
        assert_eq!(found("tools-2026-02-28.jsonl"), Some((date, 1)));
        assert_eq!(found("tools-2026-02-28.12.jsonl"), Some((date, 12)));
        for other in [
            "tools-2026-02-30.jsonl",
            "tools-20260228.jsonl",
            "tools-2026-02-28.jsonl.gz",
            "tools-2026-02-28T00:00.jsonl",
            "tools-2026-02-28.0.jsonl",
            "tools-2026-02-28.1.jsonl",
            "tools-2026-02-28.02.jsonl",
            "tools-2026-02-28.+2.jsonl",
            "tools-2026-02-28..jsonl",
            "old-tools-2026-02-28.jsonl",
            "tools-.jsonl",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
