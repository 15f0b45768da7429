//! Looks calls up in the log.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;

use super::entry::LoggedCall;
use super::error::LogError;
use super::files::{list, open_to_read, utc_date};
use super::lines::{NextLine, next_line};
use super::reverse::{ReverseLine, ReverseLines};
use crate::envelope::Status;
use crate::error::Code;

/// Selects calls. An empty filter selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only the call with this id.
    pub execution_id: Option<String>,
    /// Only calls of this tool.
    pub tool: Option<String>,
    /// Only calls that ended so.
    pub status: Option<Status>,
    /// Only calls at this time or later.
    pub since: Option<Timestamp>,
    /// Only calls before this time.
    pub until: Option<Timestamp>,
    /// Only calls of this session.
    pub session: Option<String>,
    /// Only calls of tools of this server.
    pub server: Option<String>,
    /// Only calls of this caller.
    pub caller: Option<String>,
    /// Only calls that failed with this error code.
    pub code: Option<Code>,
    /// Only calls whose entry contains this text, in any case.
    pub text: Option<String>,
    /// Maximum number of calls; the newest ones are kept.
    pub limit: Option<usize>,
}

/// Reads the calls that `filter` lets through, in the order they were recorded, oldest first.
///
/// The files are read while the iterator is, one line at a time. With a limit, the newest files are
/// searched here first, from their end and as far back as it takes, and only the offsets of the calls are held.
/// A directory that does not exist is a log without entries.
pub fn read(dir: &Path, filter: &Filter) -> Result<CallIter, LogError> {
    let files = match list(dir) {
        Ok(files) => files,
        Err(LogError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => vec![],
        Err(error) => return Err(error),
    };
    let paths: VecDeque<PathBuf> =
        files.into_iter().filter(|file| filter.covers(file.date)).map(|file| file.path).collect();
    let calls = CallIter { filter: filter.clone(), ..CallIter::default() };
    match filter.limit {
        None => Ok(CallIter { paths, ..calls }),
        Some(limit) => Ok(newest(paths, limit, calls)),
    }
}

/// The selected calls. Yields an error for each unreadable file, and continues with the next one.
#[derive(Debug, Default)]
pub struct CallIter {
    filter: Filter,
    found: VecDeque<Found>,
    unreadable: VecDeque<LogError>,
    paths: VecDeque<PathBuf>,
    current: Option<OpenLog>,
    malformed: u64,
}

/// The location of a call. Calls may be large, and there may be many.
#[derive(Debug)]
struct Found {
    path: Arc<Path>,
    offset: u64,
}

impl CallIter {
    /// Reverses the order to newest first. Only for a query with a limit: otherwise the last one is
    /// not known yet.
    #[must_use]
    pub fn newest_first(mut self) -> Self {
        self.found.make_contiguous().reverse();
        self
    }

    /// The number of invalid lines so far: cut off by a full disk, or written by another program.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// The next call in the open file that passes the filter.
    fn next_in_current(&mut self) -> Option<Result<LoggedCall, LogError>> {
        let log = self.current.as_mut()?;
        loop {
            let (found, _) = match next_line(&mut log.reader, &mut log.line) {
                Ok(next) => next,
                Err(error) => return Some(Err(LogError::read(&log.path, error))),
            };
            match found {
                NextLine::Unfinished if log.line.is_empty() => return None,
                NextLine::TooLong => self.malformed += 1,
                // The last line may lack its newline and be whole nevertheless.
                NextLine::Complete | NextLine::Unfinished => match parse(&log.line) {
                    Parsed::Call(call) if self.filter.matches(&call) => return Some(Ok(*call)),
                    Parsed::Call(_) | Parsed::Blank => {}
                    Parsed::Malformed => self.malformed += 1,
                },
            }
        }
    }

    /// The next of the calls that were looked up. One that is gone by now expired.
    fn next_found(&mut self) -> Option<Result<LoggedCall, LogError>> {
        while let Some(Found { path, offset }) = self.found.pop_front() {
            if self.current.as_ref().is_none_or(|log| log.path != path) {
                match OpenLog::open(path) {
                    Ok(log) => self.current = log,
                    Err(error) => return Some(Err(error)),
                }
            }
            match self.current.as_mut().map(|log| log.line_at(offset)) {
                Some(Ok(Some(call))) if self.filter.matches(&call) => return Some(Ok(*call)),
                Some(Ok(_)) | None => {}
                Some(Err(error)) => return Some(Err(error)),
            }
        }
        None
    }
}

impl Iterator for CallIter {
    type Item = Result<LoggedCall, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.unreadable.pop_front() {
            return Some(Err(error));
        }
        if self.filter.limit.is_some() {
            return self.next_found();
        }
        loop {
            match self.next_in_current() {
                Some(Ok(call)) => return Some(Ok(call)),
                Some(Err(error)) => {
                    self.current = None;
                    return Some(Err(error));
                }
                None => {}
            }
            match OpenLog::open(self.paths.pop_front()?.into()) {
                Ok(log) => self.current = log,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Filter {
    /// Returns true if `call` is selected.
    pub fn matches(&self, call: &LoggedCall) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        is(&self.execution_id, Some(&call.execution_id))
            && is(&self.tool, Some(&call.tool))
            && is(&self.session, call.session.as_deref())
            && is(&self.server, call.server.as_deref())
            && is(&self.caller, call.caller.as_deref())
            && self.status.is_none_or(|status| status == call.status)
            && self.since.is_none_or(|since| call.timestamp >= since)
            && self.until.is_none_or(|until| call.timestamp < until)
            && self.code.is_none_or(|code| call.error.as_ref().is_some_and(|it| it.code == code))
            && self.text.as_deref().is_none_or(|text| call.contains(text))
    }

    /// Returns true if the file of `date` can hold such calls.
    fn covers(&self, date: Date) -> bool {
        self.since.is_none_or(|since| date >= utc_date(since))
            && self.until.is_none_or(|until| date <= utc_date(until))
    }
}

#[derive(Debug)]
struct OpenLog {
    path: Arc<Path>,
    reader: BufReader<File>,
    line: Vec<u8>,
}

impl OpenLog {
    /// A file that is gone by now expired, and is nothing to complain about.
    fn open(path: Arc<Path>) -> Result<Option<Self>, LogError> {
        match open_to_read(&path) {
            Ok(file) => {
                let (reader, line) = (BufReader::new(file), Vec::new());
                Ok(Some(Self { path, reader, line }))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LogError::read(&path, error)),
        }
    }

    /// The call at an offset; `None` if the file has changed since.
    fn line_at(&mut self, offset: u64) -> Result<Option<Box<LoggedCall>>, LogError> {
        let read = self.reader.seek(SeekFrom::Start(offset));
        let read = read.and_then(|_| next_line(&mut self.reader, &mut self.line));
        read.map_err(|error| LogError::read(&self.path, error))?;
        Ok(match parse(&self.line) {
            Parsed::Call(call) => Some(call),
            Parsed::Blank | Parsed::Malformed => None,
        })
    }
}

/// The content of one line.
pub(super) enum Parsed {
    Call(Box<LoggedCall>),
    Blank,
    Malformed,
}

pub(super) fn parse(line: &[u8]) -> Parsed {
    if line.trim_ascii().is_empty() {
        return Parsed::Blank;
    }
    serde_json::from_slice(line).map_or(Parsed::Malformed, Parsed::Call)
}

/// Fills `calls` with the newest `limit`, going back file by file and line by line until there are enough.
fn newest(paths: VecDeque<PathBuf>, limit: usize, mut calls: CallIter) -> CallIter {
    for path in paths.into_iter().rev() {
        if calls.found.len() == limit {
            break;
        }
        let path: Arc<Path> = path.into();
        if let Err(error) = newest_in(&path, limit, &mut calls) {
            calls.unreadable.push_back(LogError::read(&path, error));
        }
    }
    calls
}

/// Continues [`newest`] with one file. A file that is gone by now expired.
fn newest_in(path: &Arc<Path>, limit: usize, calls: &mut CallIter) -> io::Result<()> {
    let file = match open_to_read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut lines = ReverseLines::new(file)?;
    while calls.found.len() < limit {
        let (offset, line) = match lines.next_line()? {
            Some(ReverseLine::Line(offset, line)) => (offset, line),
            Some(ReverseLine::TooLong) => {
                calls.malformed += 1;
                continue;
            }
            None => break,
        };
        match parse(line) {
            Parsed::Call(call) if calls.filter.matches(&call) => {
                calls.found.push_front(Found { path: Arc::clone(path), offset });
            }
            Parsed::Call(_) | Parsed::Blank => {}
            Parsed::Malformed => calls.malformed += 1,
        }
    }
    Ok(())
}
