//! Follows the log as it grows.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use jiff::civil::Date;

use super::entry::LoggedCall;
use super::error::LogError;
use super::files::{LogFile, list, open_to_read};
use super::lines::{NextLine, next_line};
use super::open_file::identity;
use super::query::{Filter, Parsed, parse};

/// Returns what is appended to the log from now on. `limit` of the filter means nothing here.
///
/// The two newest days are followed: a call that began before midnight is recorded under the date it
/// began on.
#[derive(Debug)]
pub struct Follow {
    dir: PathBuf,
    filter: Filter,
    /// By date and part.
    tails: BTreeMap<(Date, u32), Tail>,
    /// The first part of each day that is followed. Earlier ones were there before and are not new.
    first_parts: BTreeMap<Date, u32>,
    /// The same for days: earlier ones are not new even if they become the newest ones left.
    oldest: Date,
    malformed: u64,
}

/// The number of newest days that are followed.
const DAYS_FOLLOWED: usize = 2;

/// The number of newest parts of a day that are followed. Another process may still write to the
/// one before the last.
const PARTS_FOLLOWED: usize = 2;

/// Maximum number of calls of one file per poll; the rest comes with the next one. A slow reader
/// must not make all entries wait in memory.
const POLL_CALLS_MAX: usize = 256;

/// A file and how far it was read.
#[derive(Debug)]
struct Tail {
    path: PathBuf,
    /// Held open, so that the inode's number cannot be given to the file that replaces it.
    file: File,
    offset: u64,
    /// True if the last read reached the end.
    is_read: bool,
}

impl Follow {
    /// Starts at the present end of the log. The directory need not exist yet.
    pub fn new(dir: impl Into<PathBuf>, filter: Filter) -> Result<Self, LogError> {
        let mut follow = Self {
            dir: dir.into(),
            filter,
            tails: BTreeMap::new(),
            first_parts: BTreeMap::new(),
            oldest: Date::MIN,
            malformed: 0,
        };
        for LogFile { date, part, path } in follow.followed_files()? {
            if let Some(mut tail) = Tail::open(&path)? {
                tail.each_line(|_| Next::Line)?;
                follow.tails.insert((date, part), tail);
            }
        }
        follow.forget_older();
        Ok(follow)
    }

    /// Returns the entries appended since the last poll. Only complete lines are read; the rest of
    /// a line that is being written comes with a later poll.
    pub fn poll(&mut self) -> Result<Vec<LoggedCall>, LogError> {
        let mut calls = Vec::new();
        let listed = self.followed_files()?;
        // First to the end of what is known, whether or not it was moved away or deleted since.
        for tail in self.tails.values_mut() {
            self.malformed += tail.read(&self.filter, &mut calls)?;
        }
        self.tails.retain(|_, tail| !tail.is_read || tail.is_at_its_path());
        for LogFile { date, part, path } in listed {
            if let Entry::Vacant(place) = self.tails.entry((date, part))
                && let Some(tail) = Tail::open(&path)?
            {
                self.malformed += place.insert(tail).read(&self.filter, &mut calls)?;
            }
        }
        self.forget_older();
        Ok(calls)
    }

    /// The number of invalid lines so far.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    fn forget_older(&mut self) {
        let mut days: Vec<Date> = self.tails.keys().map(|(date, _)| *date).collect();
        days.dedup();
        if let Some(oldest) = days.len().checked_sub(DAYS_FOLLOWED).map(|at| days[at]) {
            self.oldest = oldest;
            self.tails.retain(|(date, _), _| *date >= oldest);
            self.first_parts.retain(|date, _| *date >= oldest);
        }
        for day in days.into_iter().filter(|day| *day >= self.oldest) {
            let parts = self.tails.range((day, 0)..=(day, u32::MAX)).map(|((_, part), _)| *part);
            let Some(first) = parts.rev().take(PARTS_FOLLOWED).last() else { continue };
            // Unread parts are kept.
            self.tails.retain(|(date, part), tail| *date != day || *part >= first || !tail.is_read);
            self.first_parts.insert(day, first);
        }
    }

    /// The files of the two newest days, oldest first, without parts that are not new.
    fn followed_files(&self) -> Result<Vec<LogFile>, LogError> {
        let mut files = match list(&self.dir) {
            Ok(files) => files,
            Err(LogError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        let newest: BTreeMap<Date, u32> = files.iter().map(|file| (file.date, file.part)).collect();
        files.retain(|LogFile { date, part, path }| {
            // A day whose parts were all deleted begins again with the first one.
            let first = self.first_parts.get(date).filter(|first| newest[date] >= **first);
            let is_new = *date >= self.oldest && first.is_none_or(|first| part >= first);
            // An unreadable file must not replace a readable one.
            is_new && open_to_read(path).is_ok()
        });
        let mut days: Vec<Date> = files.iter().map(|file| file.date).collect();
        days.dedup();
        if let Some(oldest) = days.len().checked_sub(DAYS_FOLLOWED).map(|at| days[at]) {
            files.retain(|file| file.date >= oldest);
        }
        Ok(files)
    }
}

/// Decides if reading continues.
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
            self.offset = 0; // The file was emptied.
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
