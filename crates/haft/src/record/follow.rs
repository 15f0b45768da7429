//! Follows the log as it grows.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use jiff::civil::Date;

use super::entry::LoggedCall;
use super::error::LogError;
use super::files::{list, open_to_read};
use super::lines::{NextLine, next_line};
use super::open_file::identity;
use super::query::{Filter, Parsed, parse};

/// Returns what is appended to the log from now on. `limit` of the filter means nothing here.
///
/// The two newest files are followed: a call that began before midnight is recorded under the
/// date it began on.
#[derive(Debug)]
pub struct Follow {
    dir: PathBuf,
    filter: Filter,
    tails: BTreeMap<Date, Tail>,
    /// Older files were there before and are not new, even if they become the newest ones left.
    oldest: Date,
    malformed: u64,
}

/// How many of the newest files are followed.
const FILES_FOLLOWED: usize = 2;

/// How many calls of one file a poll returns at most; the rest comes with the next one. Whoever reads
/// slowly must not make all that was written meanwhile wait in memory.
const POLL_CALLS_MAX: usize = 256;

/// A file and how far it was read.
#[derive(Debug)]
struct Tail {
    path: PathBuf,
    /// Held open, so that the inode's number cannot be given to the file that replaces it.
    file: File,
    offset: u64,
    /// Whether the last reading came to the end.
    is_read: bool,
}

impl Follow {
    /// Starts at the present end of the log. The directory need not exist yet.
    pub fn new(dir: impl Into<PathBuf>, filter: Filter) -> Result<Self, LogError> {
        let mut follow = Self {
            dir: dir.into(),
            filter,
            tails: BTreeMap::new(),
            oldest: Date::MIN,
            malformed: 0,
        };
        for (date, path) in follow.newest_files()? {
            if let Some(mut tail) = Tail::open(&path)? {
                tail.each_line(|_| Next::Line)?;
                follow.tails.insert(date, tail);
            }
        }
        follow.forget_older();
        Ok(follow)
    }

    /// What was appended since the last time. Only complete lines are taken; the rest of a line
    /// that is being written comes with a later poll.
    pub fn poll(&mut self) -> Result<Vec<LoggedCall>, LogError> {
        let mut calls = Vec::new();
        let listed = self.newest_files()?;
        // First to the end of what is known, whether or not it was moved away or deleted since.
        for tail in self.tails.values_mut() {
            self.malformed += tail.read(&self.filter, &mut calls)?;
        }
        self.tails.retain(|_, tail| !tail.is_read || tail.is_at_its_path());
        for (date, path) in listed.into_iter().rev() {
            if let Entry::Vacant(place) = self.tails.entry(date)
                && let Some(tail) = Tail::open(&path)?
            {
                self.malformed += place.insert(tail).read(&self.filter, &mut calls)?;
            }
        }
        self.forget_older();
        Ok(calls)
    }

    /// How many lines so far were no entries.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    fn forget_older(&mut self) {
        while self.tails.len() > FILES_FOLLOWED {
            self.tails.pop_first();
        }
        if self.tails.len() == FILES_FOLLOWED {
            self.oldest = self.tails.keys().next().copied().unwrap_or(self.oldest);
        }
    }

    /// The newest first.
    fn newest_files(&self) -> Result<Vec<(Date, PathBuf)>, LogError> {
        match list(&self.dir) {
            Ok(files) => {
                let files = files.into_iter().rev().take_while(|(date, _)| *date >= self.oldest);
                // What cannot be read must not take the place of what can.
                let files = files.filter(|(_, path)| open_to_read(path).is_ok());
                Ok(files.take(FILES_FOLLOWED).collect())
            }
            Err(LogError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether to go on reading.
enum Next {
    Line,
    Later,
}

impl Tail {
    fn open(path: &Path) -> Result<Option<Self>, LogError> {
        match open_to_read(path) {
            Ok(file) => Ok(Some(Self { path: path.to_owned(), file, offset: 0, is_read: false })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LogError::read(path, error)),
        }
    }

    /// Reads the complete lines after `offset` and answers how many were malformed.
    fn read(&mut self, filter: &Filter, calls: &mut Vec<LoggedCall>) -> Result<u64, LogError> {
        let mut malformed = 0;
        let mut room = POLL_CALLS_MAX;
        self.each_line(|line| {
            match line.map(parse) {
                Some(Parsed::Call(call)) if filter.matches(&call) => {
                    calls.push(*call);
                    room -= 1;
                }
                Some(Parsed::Call(_) | Parsed::Blank) => {}
                Some(Parsed::Malformed) | None => malformed += 1,
            }
            if room == 0 { Next::Later } else { Next::Line }
        })?;
        Ok(malformed)
    }

    /// Hands each complete line to `take` (nothing in place of one that is too long) and moves on.
    fn each_line(&mut self, mut take: impl FnMut(Option<&[u8]>) -> Next) -> Result<(), LogError> {
        let broken = |error| LogError::read(&self.path, error);
        self.is_read = true;
        let length = self.file.metadata().map_err(broken)?.len();
        if length < self.offset {
            self.offset = 0; // Somebody emptied the file.
        }
        if length == self.offset {
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(self.offset)).map_err(broken)?;
        let mut reader = BufReader::new(&self.file);
        let mut line = Vec::new();
        loop {
            let (found, count) = next_line(&mut reader, &mut line).map_err(broken)?;
            self.offset += count;
            let next = match found {
                NextLine::Complete => take(Some(&line)),
                NextLine::TooLong => take(None),
                NextLine::Unfinished => return Ok(()),
            };
            match next {
                Next::Line => {}
                Next::Later => {
                    self.is_read = false;
                    return Ok(());
                }
            }
        }
    }

    fn is_at_its_path(&self) -> bool {
        let held = self.file.metadata().map(|metadata| identity(&metadata));
        let found = fs::metadata(&self.path).map(|metadata| identity(&metadata));
        matches!((held, found), (Ok(held), Ok(found)) if held == found)
    }
}
