//! The files of the audit log: one for each UTC day, deleted after `log.retain_days`.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use parking_lot::Mutex;
use serde::Serialize;

const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

#[derive(Debug)]
pub(super) struct AuditFiles {
    dir: PathBuf,
    retain_days: u32,
    writing: Mutex<()>,
}

impl AuditFiles {
    pub(super) fn new(dir: PathBuf, retain_days: u32) -> Self {
        Self { dir, retain_days, writing: Mutex::default() }
    }

    pub(super) fn dir(&self) -> &PathBuf {
        &self.dir
    }

    /// Adds a line and waits until it is on the disk.
    pub(super) fn append(&self, line: &impl Serialize, now: Timestamp) -> io::Result<()> {
        let _writing = self.writing.lock();
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&self.dir)?;
        let today = now.to_zoned(TimeZone::UTC).date();
        let path = self.dir.join(format!("audit-{today}.jsonl"));
        let is_new = !path.exists();
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).mode(FILE_MODE).open(&path)?;
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        if !ends_with_newline(&mut file)? {
            // A crash cut the last line.
            text.insert(0, b'\n');
        }
        // One write: other processes add to the same file.
        file.write_all(&text)?;
        file.sync_data()?;
        if is_new {
            File::open(&self.dir)?.sync_all()?;
            self.delete_old(today);
        }
        Ok(())
    }

    /// The files, oldest first.
    pub(super) fn list(&self) -> io::Result<Vec<(Date, PathBuf)>> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let date = name.and_then(|name| name.strip_prefix("audit-")?.strip_suffix(".jsonl"));
            if let Some(Ok(date)) = date.map(str::parse) {
                files.push((date, path));
            }
        }
        files.sort_unstable();
        Ok(files)
    }

    fn delete_old(&self, today: Date) {
        let keep = Span::new().days(i64::from(self.retain_days.min(100_000)));
        let Ok(first) = today.checked_sub(keep) else { return };
        let old = self.list().unwrap_or_default().into_iter().filter(|(date, _)| *date < first);
        for (_, path) in old {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "could not delete an audit file");
            }
        }
    }
}

fn ends_with_newline(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
