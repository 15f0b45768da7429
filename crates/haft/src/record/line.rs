//! The text of one entry: always exactly one line, redacted, with its newline.

use std::borrow::Cow;
use std::cell::Cell;

use jiff::civil::Date;

use super::compact::one_line;
use super::entry::Entry;
use super::files::utc_date;
use super::format;
use super::lines::LINE_BYTES_MAX;
use super::shorten::shorten;
use super::{REFUSED_ENTRY_BYTES_MAX, REFUSED_FIELD_BYTES_MAX};
use crate::memory::Reservation;
use haft_config::redact::Redactor;

/// A larger buffer is not kept for the next line.
const SCRATCH_BYTES_MAX: usize = 16 << 10;

/// Number of bytes kept of a field of an entry that is too long.
pub(super) const FIELD_BYTES_MAX: usize = 64 << 10;

/// A finished line and the date whose file it belongs to.
#[derive(Debug)]
pub(crate) struct Line {
    pub(super) date: Date,
    /// Ends with its only newline.
    pub(super) text: String,
    /// The memory it takes until it is written.
    pub(super) memory: Option<Reservation>,
}

/// The maximum length of a line, and the bytes kept of each field of a longer one.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineLimit {
    pub(super) bytes_max: usize,
    pub(super) field_bytes_max: usize,
}

impl LineLimit {
    /// The limit of an entry in a log whose files have at most `part_bytes_max`. Readers accept
    /// lines of at most [`LINE_BYTES_MAX`].
    pub(super) fn of_part(part_bytes_max: u64) -> Self {
        let part = usize::try_from(part_bytes_max).unwrap_or(usize::MAX);
        let bytes_max = LINE_BYTES_MAX.min(part);
        // A cut entry has fewer than 16 fields that may be long.
        Self { bytes_max, field_bytes_max: FIELD_BYTES_MAX.min(bytes_max / 16) }
    }

    /// The limit of an entry for a call whose tool was not started. Any caller may make those, in
    /// any number and size.
    pub(super) fn of_refused(self) -> Self {
        Self {
            bytes_max: self.bytes_max.min(REFUSED_ENTRY_BYTES_MAX),
            field_bytes_max: self.field_bytes_max.min(REFUSED_FIELD_BYTES_MAX),
        }
    }
}

impl Line {
    /// Truncates long fields if the line exceeds `limit`.
    pub(super) fn new(entry: &Entry<'_>, redactor: &Redactor, limit: LineLimit) -> Self {
        let limit = if entry.started { limit } else { limit.of_refused() };
        // Names, ids and JSON always serialize; if that ever changes, the log still holds an entry
        // that names the missing call.
        let mut text = SCRATCH.take();
        text.clear();
        let payload = match format::push_entry(&mut text, entry) {
            Ok(payload) => payload,
            Err(error) => {
                text = unrecordable(entry, &error);
                0..text.len()
            }
        };
        if let Some(compacted) = one_line(&text) {
            text = redacted(redactor, compacted);
        } else if redactor.is_suspicious(&text[payload]) {
            text = redacted(redactor, text);
        }
        if text.len() > limit.bytes_max {
            text = shorten(&text, limit.field_bytes_max)
                .unwrap_or_else(|error| unrecordable(entry, &error));
        }
        text.push('\n');
        Self { date: utc_date(entry.timestamp), text, memory: None }
    }

    /// Its length.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Keeps the buffer for this thread's next line, unless it is large.
    pub(crate) fn recycle(self) {
        if self.text.capacity() <= SCRATCH_BYTES_MAX {
            SCRATCH.set(self.text);
        }
    }
}

thread_local! {
    /// The buffer of the last line that this thread wrote.
    static SCRATCH: Cell<String> = const { Cell::new(String::new()) };
}

fn redacted(redactor: &Redactor, text: String) -> String {
    match redactor.json(&text) {
        Cow::Owned(redacted) => redacted,
        Cow::Borrowed(_) => text,
    }
}

fn unrecordable(entry: &Entry<'_>, error: &serde_json::Error) -> String {
    let stub = serde_json::json!({
        "execution_id": entry.execution_id,
        "tool": entry.tool,
        "unrecordable": error.to_string(),
    });
    stub.to_string()
}

/// RFC 3339 in UTC with milliseconds.
pub mod rfc3339 {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes a timestamp with milliseconds.
    pub fn serialize<S: Serializer>(
        timestamp: &Timestamp,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{timestamp:.3}"))
    }

    /// Reads a timestamp.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        std::borrow::Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
