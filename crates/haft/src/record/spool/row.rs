//! One entry for a sink: the line, and the few fields that a sink can search by.

use serde::Deserialize;
use uuid::Uuid;

use crate::envelope::Status;

/// The longest text of a searchable field, in bytes. An index of PostgreSQL takes at most 2,700.
pub const COLUMN_BYTES_MAX: usize = 512;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShipRow {
    /// The id of the call.
    pub execution_id: Uuid,
    /// The requested tool, as [`column`] shortens it. So are the other texts.
    pub tool: String,
    /// The MCP server that offers it.
    pub server: Option<String>,
    /// The caller's name.
    pub caller: Option<String>,
    /// The session or run that the call belongs to.
    pub session: Option<String>,
    /// Success or error.
    pub status: Status,
    /// The error code, if the call failed.
    pub code: Option<String>,
    /// Time it waited for a slot.
    pub queued_ms: i64,
    /// Duration, without the wait for a slot.
    pub duration_ms: i64,
    /// The whole line, without its newline.
    pub entry: String,
    /// The offset after the line, in its file.
    pub(super) end: u64,
}

/// The text of a searchable field: at most [`COLUMN_BYTES_MAX`], and without NUL characters, which PostgreSQL refuses.
pub fn column(text: &str) -> String {
    let cut = &text[..text.floor_char_boundary(COLUMN_BYTES_MAX)];
    cut.replace('\0', "\u{fffd}")
}

/// The fields of a line that a sink can search by. Other fields are skipped unread.
#[derive(Deserialize)]
struct Columns {
    execution_id: String,
    tool: String,
    server: Option<String>,
    caller: Option<String>,
    session: Option<String>,
    status: Status,
    #[serde(default)]
    error: Option<ErrorColumns>,
    queued_ms: u64,
    duration_ms: u64,
}

#[derive(Deserialize)]
struct ErrorColumns {
    code: String,
}

impl ShipRow {
    /// Reads a line. `None` if it is not an entry of the log.
    pub(super) fn parse(line: Vec<u8>, end: u64) -> Option<Self> {
        let entry = String::from_utf8(line).ok()?;
        let columns: Columns = serde_json::from_str(&entry).ok()?;
        let optional = |text: Option<String>| text.as_deref().map(column);
        let millis = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        Some(Self {
            execution_id: Uuid::try_parse(&columns.execution_id).ok()?,
            tool: column(&columns.tool),
            server: optional(columns.server),
            caller: optional(columns.caller),
            session: optional(columns.session),
            status: columns.status,
            code: optional(columns.error.map(|error| error.code)),
            queued_ms: millis(columns.queued_ms),
            duration_ms: millis(columns.duration_ms),
            entry,
            end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{COLUMN_BYTES_MAX, ShipRow, column};

    #[test]
    fn a_field_is_cut_at_a_character_and_has_no_nul() {
        assert_eq!(column("a\0b"), "a\u{fffd}b");
        let long = "é".repeat(COLUMN_BYTES_MAX);
        assert_eq!(column(&long).len(), COLUMN_BYTES_MAX);
        assert_eq!(column(&format!("a{long}")).len(), COLUMN_BYTES_MAX - 1);
    }

    #[test]
    fn a_line_that_is_not_an_entry_is_none() {
        for line in ["{}", "\u{1}", r#"{"execution_id":"1","tool":"t"}"#, "null"] {
            assert_eq!(ShipRow::parse(line.as_bytes().to_vec(), 0), None, "{line}");
        }
        assert_eq!(ShipRow::parse(vec![0xff], 0), None);
    }
}
