//! The open file: finds the right one for a date, appends whole lines, and notices when the file
//! was moved away or deleted under it. Knows nothing of callers or policies.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::civil::Date;

use super::batch::Batch;
use super::error::LogError;
use super::files::{LogFile, delete_expired, list};
use super::health::LowSpace;
use super::open_file::OpenFile;
use super::room::{ROOM_BYTES, prove_room};
use super::space::{Space, part_bytes_max};
use super::{Durability, Limits, LogOptions};

/// Maximum number of attempts at one batch after a short write or a deleted file, before it counts
/// as a failure.
const ATTEMPTS_MAX: u32 = 4;

/// Writes lines to the file of their date.
#[derive(Debug)]
pub(super) struct Sink {
    dir: PathBuf,
    /// `None` if files are deleted only after they were shipped.
    retain_days: Option<u32>,
    durability: Durability,
    path_check_every: Duration,
    /// A larger file is continued in the next part.
    part_bytes_max: u64,
    space: Space,
    /// The newest date seen so far. Only a newer one deletes expired files.
    newest: Date,
    open: Option<OpenFile>,
}

/// The result of a batch.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Number of lines, from the first, that are in the file and must not be written again.
    pub(super) stored: usize,
    /// Number of lines that are as durable as requested.
    pub(super) safe: usize,
    /// The reason why it was not all of them.
    pub(super) problem: Option<LogError>,
}

impl Sink {
    /// Touches nothing yet.
    pub(super) fn new(options: &LogOptions, limits: Limits, today: Date) -> Self {
        Self {
            dir: options.dir.clone(),
            retain_days: options.spool.is_none().then_some(options.retain_days),
            durability: options.durability,
            path_check_every: limits.path_check_every,
            part_bytes_max: part_bytes_max(options.bytes_max()),
            space: Space::new(options),
            newest: today,
            open: None,
        }
    }

    /// Opens the file of the newest date, proves that it takes entries, and deletes expired ones.
    /// The proof is for a process that makes one call: it has no earlier write to judge by.
    pub(super) fn open(&mut self) -> Result<(), LogError> {
        let open = self.file_of(self.newest, Instant::now())?;
        prove_room(&open.file).map_err(|error| LogError::write(&open.name.path, error))?;
        self.delete_expired();
        let space = self.inspect_space();
        // The first entry may come much later.
        self.open.iter_mut().for_each(OpenFile::expire_check);
        space
    }

    fn delete_expired(&self) {
        if let Some(retain_days) = self.retain_days {
            delete_expired(&self.dir, self.newest, retain_days);
        }
    }

    /// Checks if the next entry may be written, and deletes old files if not.
    pub(super) fn inspect_space(&mut self) -> Result<(), LogError> {
        self.make_room(self.newest, ROOM_BYTES, Instant::now())
    }

    /// Present if the disk is nearly full.
    pub(super) fn low_space(&self) -> Option<LowSpace> {
        self.space.low
    }

    /// Appends the lines of `batch`, each to the file of its date: one write for each run of equal dates.
    pub(super) fn write(&mut self, batch: &Batch, now: Instant) -> Written {
        let mut written = Written::default();
        let (mut first, mut start) = (0, 0);
        while let Some(date) = batch.date(first) {
            let lines = batch.run_of_date(first, date);
            let bytes: usize = batch.lengths(lines.clone()).sum();
            let text = batch.text(start..start + bytes);
            (first, start) = (lines.end, start + bytes);
            let part = self.write_run(date, text, batch.lengths(lines), now);
            written.stored += part.stored;
            written.safe += part.safe;
            written.problem = part.problem;
            if written.problem.is_some() {
                break;
            }
        }
        written
    }

    /// Finds out whether the file can be written, by an empty line, which readers skip.
    pub(super) fn probe(&mut self, now: Instant) -> Result<(), LogError> {
        let written = self.write_run(self.newest, b"\n", std::iter::once(1), now);
        written.problem.map_or(Ok(()), Err)
    }

    /// Appends lines of one date. `lengths` has the length of each.
    fn write_run(
        &mut self,
        date: Date,
        mut text: &[u8],
        mut lengths: impl Iterator<Item = usize> + Clone,
        now: Instant,
    ) -> Written {
        let bytes = text.len() as u64;
        if self.space.is_due(bytes, now)
            && let Err(problem) = self.make_room(date, bytes, now)
        {
            return Written { problem: Some(problem), ..Written::default() };
        }
        self.space.count(bytes);
        let mut stored = 0;
        for _ in 0..ATTEMPTS_MAX {
            let count = match self.write_once(date, text, now) {
                Ok(count) => count,
                Err(problem) => {
                    return Written { stored, safe: stored, problem: Some(problem) };
                }
            };
            let complete = complete_lines(lengths.clone(), count);
            stored += complete;
            let bytes: usize = lengths.by_ref().take(complete).sum();
            text = &text[bytes..];
            if text.is_empty() {
                return self.make_safe(stored);
            }
        }
        let path = LogFile::new(&self.dir, date, 1).path;
        let problem = LogError::write(&path, io::ErrorKind::WriteZero.into());
        Written { stored, safe: stored, problem: Some(problem) }
    }

    /// One write(2). Returns how many bytes of `text` the file now holds.
    fn write_once(&mut self, date: Date, text: &[u8], now: Instant) -> Result<usize, LogError> {
        let open = self.file_of(date, now)?;
        let written = if open.torn {
            let repaired = [b"\n", text].concat();
            retry_interrupted(|| open.file.write(&repaired))
        } else {
            retry_interrupted(|| open.file.write(text))
        };
        let count = match written {
            Ok(count) => count,
            Err(error) => {
                let problem = LogError::write(&open.name.path, error);
                self.open = None; // The next attempt looks at the path afresh.
                return Err(problem);
            }
        };
        let count = if open.torn && count > 0 {
            open.torn = false;
            count - 1
        } else {
            count
        };
        open.bytes += count as u64;
        open.torn = text[..count].last().map_or(open.torn, |last| *last != b'\n');
        Ok(count)
    }

    fn make_safe(&mut self, stored: usize) -> Written {
        let (Durability::Disk, Some(open)) = (self.durability, &self.open) else {
            return Written { stored, safe: stored, problem: None };
        };
        match open.file.sync_data() {
            Ok(()) => Written { stored, safe: stored, problem: None },
            Err(error) => {
                let problem = Some(LogError::write(&open.name.path, error));
                Written { stored, safe: 0, problem }
            }
        }
    }

    fn make_room(&mut self, date: Date, incoming: u64, now: Instant) -> Result<(), LogError> {
        let current = self.file_of(date, now)?.name.clone();
        self.space.make_room(&self.dir, &current, incoming)
    }

    /// The file of `date`, opened again if it is full or the path no longer leads to it.
    fn file_of(&mut self, date: Date, now: Instant) -> Result<&mut OpenFile, LogError> {
        self.leave_if_gone(now);
        let is_right = |open: &OpenFile| open.name.date == date && open.bytes < self.part_bytes_max;
        let open = match self.open.take() {
            Some(open) if is_right(&open) => open,
            Some(_) | None => self.open_last_part(date)?,
        };
        if date > self.newest {
            self.newest = date;
            self.delete_expired();
        }
        Ok(self.open.insert(open))
    }

    /// Closes the file if its path no longer leads to it.
    fn leave_if_gone(&mut self, now: Instant) {
        let every = self.path_check_every;
        if self.open.as_mut().is_some_and(|open| !open.is_in_place(every, now)) {
            self.open = None;
        }
    }

    /// The newest part of a day that is not full. Other processes that share the directory write to it
    /// too, and leave it when it is full, as this one does.
    fn open_last_part(&self, date: Date) -> Result<OpenFile, LogError> {
        create_dir(&self.dir, self.durability)
            .map_err(|error| LogError::write(&self.dir, error))?;
        let parts = list(&self.dir)?.into_iter().filter(|file| file.date == date);
        let mut part = parts.map(|file| file.part).max().unwrap_or(1);
        loop {
            let name = LogFile::new(&self.dir, date, part);
            let path = name.path.clone();
            let failed = |error| LogError::write(&path, error);
            let is_new = !path.exists();
            let open = OpenFile::open(name).map_err(failed)?;
            if open.bytes >= self.part_bytes_max {
                part += 1;
                continue;
            }
            if is_new {
                sync_dir(&self.dir, self.durability).map_err(failed)?;
            }
            return Ok(open);
        }
    }
}

/// Creates the directory and those above it. With [`Durability::Disk`] each new one is in its parent's
/// list on the disk.
fn create_dir(dir: &Path, durability: Durability) -> io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|it| !it.exists()).collect();
    fs::create_dir_all(dir)?;
    for created in missing {
        match created.parent() {
            Some(parent) if parent.as_os_str().is_empty() => sync_dir(Path::new("."), durability)?,
            Some(parent) => sync_dir(parent, durability)?,
            None => {}
        }
    }
    Ok(())
}

/// Makes sure that a new name in `dir` survives a power cut: without that, the file that was synced
/// could not be found.
fn sync_dir(dir: &Path, durability: Durability) -> io::Result<()> {
    match durability {
        Durability::Os => Ok(()),
        Durability::Disk => File::open(dir)?.sync_all(),
    }
}

/// Number of lines of these lengths within the first `count` bytes. The last one may lack its newline: the
/// next write supplies it.
fn complete_lines(lengths: impl Iterator<Item = usize>, count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let mut end = 0;
    lengths
        .take_while(|length| {
            end += length;
            end <= count + 1
        })
        .count()
}

fn retry_interrupted<T>(mut step: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match step() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::complete_lines;

    #[test]
    fn a_line_cut_short_is_written_again_unless_only_its_newline_is_missing() {
        let lines = ["{1}\n", "{22}\n"].map(str::len);
        let complete: Vec<usize> =
            (0..=9).map(|count| complete_lines(lines.into_iter(), count)).collect();
        assert_eq!(complete, [0, 0, 0, 1, 1, 1, 1, 1, 2, 2]);
    }
}
