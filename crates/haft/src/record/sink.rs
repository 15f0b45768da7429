//! The open file: finds the right one for a date, appends whole lines, and notices when the file
//! was moved away or deleted under it. Knows nothing of callers or policies.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use jiff::civil::Date;

use super::error::LogError;
use super::files::{delete_expired, path_of};
use super::line::Line;
use super::open_file::{OpenFile, names_left};
use super::room::prove_room;
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
            newest: today,
            open: None,
            buffer: Vec::new(),
        }
    }

    /// Opens the file of the newest date, proves that it takes entries, and deletes expired ones.
    /// The proof is for a process that makes one call: it has no earlier write to judge by.
    pub(super) fn open(&mut self) -> Result<(), LogError> {
        let open = self.file_of(self.newest)?;
        prove_room(&open.file).map_err(|error| LogError::write(&open.path, error))?;
        delete_expired(&self.dir, self.newest, self.retain_days);
        Ok(())
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
        let line = Line { date: self.newest, text: "\n".into() };
        self.write(&[line]).problem.map_or(Ok(()), Err)
    }

    fn write_run(&mut self, date: Date, lines: &[Line]) -> Written {
        let mut stored = 0;
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
        let problem = LogError::write(&path_of(&self.dir, date), io::ErrorKind::WriteZero.into());
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
            .and_then(|count| Ok((count, names_left(&open.file)?)));
        let (count, names_left) = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                let problem = LogError::write(&open.path, error);
                self.open = None; // The next attempt looks at the path afresh.
                return Err(problem);
            }
        };
        open.torn = buffer[..count].last().map_or(open.torn, |last| *last != b'\n');
        if names_left == 0 {
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
                let problem = Some(LogError::write(&open.path, error));
                Written { stored, safe: 0, problem }
            }
        }
    }

    /// The file of `date`, opened again if the path no longer leads to the one we hold.
    fn file_of(&mut self, date: Date) -> Result<&mut OpenFile, LogError> {
        let check_every = self.path_check_every;
        let kept = self.open.take().and_then(|mut open| {
            (open.date == date && open.is_at_its_path(check_every)).then_some(open)
        });
        let open = if let Some(open) = kept {
            open
        } else {
            fs::create_dir_all(&self.dir).map_err(|error| LogError::write(&self.dir, error))?;
            let path = path_of(&self.dir, date);
            OpenFile::open(date, path.clone()).map_err(|error| LogError::write(&path, error))?
        };
        if date > self.newest {
            self.newest = date;
            delete_expired(&self.dir, date, self.retain_days);
        }
        Ok(self.open.insert(open))
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
        let lines = ["{1}\n", "{22}\n"].map(|text| Line { date, text: text.into() });
        let complete: Vec<usize> = (0..=9).map(|count| complete_lines(&lines, count)).collect();
        assert_eq!(complete, [0, 0, 0, 1, 1, 1, 1, 1, 2, 2]);
    }
}
