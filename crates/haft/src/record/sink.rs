//! The open file: finds the right one for a date, appends whole lines, and notices when the file
//! was moved away or deleted under it. Knows nothing of callers or policies.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::civil::Date;

use super::error::LogError;
use super::files::{LogFile, delete_expired, list};
use super::health::LowSpace;
use super::line::Line;
use super::open_file::{OpenFile, look};
use super::room::{ROOM_BYTES, prove_room};
use super::space::{Space, part_bytes_max};
use super::{Durability, Limits, LogOptions};

/// How often one batch is tried again after a short write or a deleted file, before that counts
/// as a failure.
const ATTEMPTS_MAX: u32 = 4;

/// Writes lines to the file of their date.
#[derive(Debug)]
pub(super) struct Sink {
    dir: PathBuf,
    retain_days: u32,
    durability: Durability,
    path_check_every: Duration,
    /// A larger file is continued in the next part.
    part_bytes_max: u64,
    space: Space,
    /// The newest date seen so far. Only a newer one deletes expired files.
    newest: Date,
    open: Option<OpenFile>,
    buffer: Vec<u8>,
}

/// What became of a batch.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// How many lines, from the first, are in the file and must not be written again.
    pub(super) stored: usize,
    /// How many of them are as safe as was asked for.
    pub(super) safe: usize,
    /// Why it was not all of them.
    pub(super) problem: Option<LogError>,
}

impl Sink {
    /// Touches nothing yet.
    pub(super) fn new(options: &LogOptions, limits: Limits, today: Date) -> Self {
        Self {
            dir: options.dir.clone(),
            retain_days: options.retain_days,
            durability: options.durability,
            path_check_every: limits.path_check_every,
            part_bytes_max: part_bytes_max(options.max_bytes),
            space: Space::new(options.max_bytes, options.keep_free),
            newest: today,
            open: None,
            buffer: Vec::new(),
        }
    }

    /// Opens the file of the newest date, proves that it takes entries, and deletes expired ones.
    /// The proof is for a process that makes one call: it has no earlier write to judge by.
    pub(super) fn open(&mut self) -> Result<(), LogError> {
        let open = self.file_of(self.newest)?;
        prove_room(&open.file).map_err(|error| LogError::write(&open.name.path, error))?;
        delete_expired(&self.dir, self.newest, self.retain_days);
        self.inspect_space()
    }

    /// Looks whether the next entry may be written, and deletes old files if it may not.
    pub(super) fn inspect_space(&mut self) -> Result<(), LogError> {
        self.make_room(self.newest, ROOM_BYTES)
    }

    /// Present if the disk is nearly full.
    pub(super) fn low_space(&self) -> Option<LowSpace> {
        self.space.low
    }

    /// Appends `lines`, each to the file of its date: one write for each run of equal dates.
    pub(super) fn write(&mut self, lines: &[Line]) -> Written {
        let mut written = Written::default();
        for run in lines.chunk_by(|a, b| a.date == b.date) {
            let part = self.write_run(run[0].date, run);
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
    pub(super) fn probe(&mut self) -> Result<(), LogError> {
        let line = Line { date: self.newest, text: "\n".into(), memory: None };
        self.write(&[line]).problem.map_or(Ok(()), Err)
    }

    fn write_run(&mut self, date: Date, lines: &[Line]) -> Written {
        let mut stored = 0;
        let bytes: usize = lines.iter().map(|line| line.text.len()).sum();
        let bytes = bytes as u64;
        if self.space.is_due(bytes)
            && let Err(problem) = self.make_room(date, bytes)
        {
            return Written { problem: Some(problem), ..Written::default() };
        }
        self.space.count(bytes);
        for _ in 0..ATTEMPTS_MAX {
            match self.write_once(date, &lines[stored..]) {
                Ok(count) => stored += count,
                Err(problem) => {
                    return Written { stored, safe: stored, problem: Some(problem) };
                }
            }
            if stored == lines.len() {
                return self.make_safe(stored);
            }
        }
        let path = LogFile::new(&self.dir, date, 1).path;
        let problem = LogError::write(&path, io::ErrorKind::WriteZero.into());
        Written { stored, safe: stored, problem: Some(problem) }
    }

    /// One write(2). Answers how many lines the file now holds completely.
    fn write_once(&mut self, date: Date, lines: &[Line]) -> Result<usize, LogError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let open = self.file_of(date)?;
        buffer.clear();
        let mend = usize::from(open.torn);
        buffer.extend_from_slice(&b"\n"[..mend]);
        for line in lines {
            buffer.extend_from_slice(line.text.as_bytes());
        }

        let outcome = retry_interrupted(|| open.file.write(&buffer))
            .and_then(|count| Ok((count, look(&open.file)?)));
        let (count, seen) = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                let problem = LogError::write(&open.name.path, error);
                self.open = None; // The next attempt looks at the path afresh.
                return Err(problem);
            }
        };
        open.torn = buffer[..count].last().map_or(open.torn, |last| *last != b'\n');
        open.bytes = seen.bytes;
        if seen.names == 0 {
            // Deleted between the look at the path and the write: nobody can read these lines.
            self.open = None;
            return Ok(0);
        }
        self.buffer = buffer;
        Ok(complete_lines(lines, count.saturating_sub(mend)))
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

    fn make_room(&mut self, date: Date, incoming: u64) -> Result<(), LogError> {
        let current = self.file_of(date)?.name.clone();
        self.space.make_room(&self.dir, &current, incoming)
    }

    /// The file of `date`, opened again if it is full or the path no longer leads to it.
    fn file_of(&mut self, date: Date) -> Result<&mut OpenFile, LogError> {
        let (check_every, bytes_max) = (self.path_check_every, self.part_bytes_max);
        let kept = self.open.take().and_then(|mut open| {
            let is_right = open.name.date == date && open.bytes < bytes_max;
            (is_right && open.is_at_its_path(check_every)).then_some(open)
        });
        let open = match kept {
            Some(open) => open,
            None => self.open_last_part(date)?,
        };
        if date > self.newest {
            self.newest = date;
            delete_expired(&self.dir, date, self.retain_days);
        }
        Ok(self.open.insert(open))
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

/// How many of `lines` the first `count` bytes hold. The last one may lack its newline: the next
/// write supplies it.
fn complete_lines(lines: &[Line], count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let mut end = 0;
    lines
        .iter()
        .take_while(|line| {
            end += line.text.len();
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
    use super::{Line, complete_lines};

    #[test]
    fn a_line_cut_short_is_written_again_unless_only_its_newline_is_missing() {
        let date = jiff::civil::date(2026, 7, 15);
        let lines = ["{1}\n", "{22}\n"].map(|text| Line { date, text: text.into(), memory: None });
        let complete: Vec<usize> = (0..=9).map(|count| complete_lines(&lines, count)).collect();
        assert_eq!(complete, [0, 0, 0, 1, 1, 1, 1, 1, 2, 2]);
    }
}
