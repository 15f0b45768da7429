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
    /// The actions that fit, newest first. Lines that cannot be read are skipped.
    pub(crate) fn read(&self, filter: &AuditFilter) -> io::Result<Vec<AuditEntry>> {
        let first = filter.since.map(|since| since.to_zoned(TimeZone::UTC).date());
        let files = self.files.list()?;
        let files = files.into_iter().filter(|(date, _)| first.is_none_or(|first| *date >= first));
        let mut entries: Vec<AuditEntry> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for (_, path) in files {
            for entry in lines(File::open(path)?)? {
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
        Ok(entries)
    }
}

/// Adds the end of an action to its beginning.
fn complete(entry: &mut AuditEntry, end: AuditEntry) {
    entry.outcome = end.outcome;
    entry.status = end.status;
    entry.after = end.after;
    entry.target = end.target.or_else(|| entry.target.take());
}

fn lines(file: File) -> io::Result<Vec<AuditEntry>> {
    let mut reader = BufReader::new(file);
    let mut entries = Vec::new();
    loop {
        let mut line = Vec::new();
        let read = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(entries);
        }
        entries.extend(serde_json::from_slice::<AuditEntry>(&line).ok());
    }
}
