//! The files of a log directory: one per day, named by date, deleted by name.

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

/// Where the records of `date` are.
pub(super) fn path_of(dir: &Path, date: Date) -> PathBuf {
    dir.join(format!("tools-{date}.jsonl"))
}

/// Every log file with its date, oldest first. Files with other names are none of our business.
pub(super) fn list(dir: &Path) -> Result<Vec<(Date, PathBuf)>, LogError> {
    let entries = fs::read_dir(dir).map_err(|error| LogError::read(dir, error))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| LogError::read(dir, error))?;
        if let Some(date) = entry.file_name().to_str().and_then(date_of) {
            files.push((date, entry.path()));
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Opens a log file for reading. Only a regular file has an end: a pipe or a device of that name
/// would be waited for, or read, for ever.
pub(super) fn open_to_read(path: &Path) -> io::Result<File> {
    // A pipe that nobody writes to would already hold up the opening.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Deletes the files whose date is at least `retain_days` before `newest`. A clock that was put
/// back makes `newest` smaller and so can only keep more. The file of `newest` itself always stays.
///
/// A file that cannot be deleted is reported and left: it must not stop the log.
pub(super) fn delete_expired(dir: &Path, newest: Date, retain_days: u32) {
    let days_kept = Span::new().try_days(i64::from(retain_days.max(1)) - 1);
    let Ok(oldest_kept) = days_kept.and_then(|days| newest.checked_sub(days)) else {
        return; // The limit lies before the first date there is, so nothing is that old.
    };
    let files = match list(dir) {
        Ok(files) => files,
        Err(error) => {
            tracing::warn!(error = error.problem(), "could not look for expired log files");
            return;
        }
    };
    for (_, path) in files.into_iter().filter(|(date, _)| *date < oldest_kept) {
        match fs::remove_file(&path) {
            Ok(()) => tracing::info!(path = %path.display(), "deleted an expired log file"),
            // Another process that shares the directory was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "could not delete an expired log file");
            }
        }
    }
}

fn date_of(name: &str) -> Option<Date> {
    let text = name.strip_prefix("tools-")?.strip_suffix(".jsonl")?;
    let date: Date = text.parse().ok()?;
    // Only the one spelling that we write: `tools-20260101.jsonl` is somebody else's file.
    (date.to_string() == text).then_some(date)
}

#[cfg(test)]
mod tests {
    use super::date_of;

    #[test]
    fn only_names_that_the_log_writes_are_its_files() {
        assert_eq!(date_of("tools-2026-02-28.jsonl"), Some(jiff::civil::date(2026, 2, 28)));
        for other in [
            "tools-2026-02-30.jsonl",
            "tools-20260228.jsonl",
            "tools-2026-02-28.jsonl.gz",
            "tools-2026-02-28T00:00.jsonl",
            "old-tools-2026-02-28.jsonl",
            "tools-.jsonl",
        ] {
            assert_eq!(date_of(other), None, "{other}");
        }
    }
}
