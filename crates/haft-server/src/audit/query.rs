//! Reading the audit log.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};

use haft::config::NamePattern;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{AuditEntry, AuditLog};

/// Longest line that is read.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// Which actions to show.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditFilter {
    /// Those since then.
    pub(crate) since: Option<Timestamp>,
    /// Those of this caller, with or without `key:`.
    pub(crate) who: Option<String>,
    /// Those that match, such as `key.*`.
    pub(crate) action: Option<NamePattern>,
    /// At most this many, the newest.
    pub(crate) limit: usize,
}

/// Actions of the log.
#[derive(Debug)]
pub(crate) struct AuditPage {
    /// The newest first.
    pub(crate) actions: Vec<AuditEntry>,
    /// Number of lines that cannot be read and are left out.
    pub(crate) malformed: u64,
}

impl AuditFilter {
    fn fits(&self, entry: &AuditEntry) -> bool {
        let is_since = |since: Timestamp| entry.at.parse::<Timestamp>().is_ok_and(|at| at >= since);
        let is_who = |who: &String| {
            entry.who == *who || entry.who.strip_prefix("key:").is_some_and(|name| name == who)
        };
        self.since.is_none_or(is_since)
            && self.who.as_ref().is_none_or(is_who)
            && self.action.as_ref().is_none_or(|action| action.fits(&entry.action))
    }
}

impl AuditLog {
    /// The actions that fit. Lines that cannot be read are counted.
    pub(crate) fn read(&self, filter: &AuditFilter) -> io::Result<AuditPage> {
        let first = filter.since.map(|since| since.to_zoned(TimeZone::UTC).date());
        let files = self.files.list()?;
        let files = files.into_iter().filter(|(date, _)| first.is_none_or(|first| *date >= first));
        let mut entries: Vec<AuditEntry> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut malformed = 0;
        for (_, path) in files {
            for entry in lines(File::open(path)?, &mut malformed)? {
                match places.get(&entry.id) {
                    Some(place) => complete(&mut entries[*place], entry),
                    // The beginning of an action may be in a file that is gone.
                    None if entry.action.is_empty() => {}
                    None => {
                        places.insert(entry.id.clone(), entries.len());
                        entries.push(entry);
                    }
                }
            }
        }
        entries.retain(|entry| filter.fits(entry));
        entries.reverse();
        entries.truncate(filter.limit);
        Ok(AuditPage { actions: entries, malformed })
    }
}

/// Adds the end of an action to its beginning.
fn complete(entry: &mut AuditEntry, end: AuditEntry) {
    entry.outcome = end.outcome;
    entry.status = end.status;
    entry.after = end.after;
    entry.target = end.target.or_else(|| entry.target.take());
}

/// The entries of a file. The last line may be incomplete, because it is being written.
fn lines(file: File, malformed: &mut u64) -> io::Result<Vec<AuditEntry>> {
    let mut reader = BufReader::new(file);
    let mut entries = Vec::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.pop_if(|last| *last == b'\n').is_none() {
            if (line.len() as u64) < LINE_BYTES_MAX {
                return Ok(entries);
            }
            line.clear();
            reader.skip_until(b'\n')?;
        }
        match read_entry(&line) {
            Some(entry) => entries.push(entry),
            None => *malformed += 1,
        }
    }
}

fn read_entry(line: &[u8]) -> Option<AuditEntry> {
    let entry: AuditEntry = serde_json::from_slice(line).ok()?;
    entry.at.parse::<Timestamp>().is_ok().then_some(entry)
}
