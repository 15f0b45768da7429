//! The text of one entry: always exactly one line, redacted, with its newline.

use std::borrow::Cow;

use jiff::civil::Date;
use serde::Serialize;
use serde::ser::Error as _;
use serde_json::value::RawValue;

use super::compact::one_line;
use super::entry::{Entry, Outcomes, Source};
use super::files::utc_date;
use super::lines::LINE_BYTES_MAX;
use super::shorten::shorten;
use super::{REFUSED_ENTRY_BYTES_MAX, REFUSED_FIELD_BYTES_MAX};
use crate::content::Content;
use crate::envelope::{ErrorBody, Status};
use crate::memory::Reservation;
use crate::redact::Redactor;

/// What an ordinary line has beside its payload, so that it is not moved while it grows.
const FRAME_BYTES_USUAL: usize = 640;

/// How much is kept of a field of an entry that is too long.
pub(super) const FIELD_BYTES_MAX: usize = 64 << 10;

/// A finished line and the date whose file it belongs to.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) date: Date,
    /// Ends with its only newline.
    pub(super) text: String,
    /// The memory it takes until it is written.
    pub(super) memory: Option<Reservation>,
}

/// How long a line may be, and how much of each field is kept of a longer one.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineLimit {
    pub(super) bytes_max: usize,
    pub(super) field_bytes_max: usize,
}

impl LineLimit {
    /// The limit of an entry in a log whose files have at most `part_bytes_max`. Readers take no
    /// longer lines than [`LINE_BYTES_MAX`].
    pub(super) fn of_part(part_bytes_max: u64) -> Self {
        let part = usize::try_from(part_bytes_max).unwrap_or(usize::MAX);
        let bytes_max = LINE_BYTES_MAX.min(part);
        // A cut entry has fewer than 16 fields that may be long.
        Self { bytes_max, field_bytes_max: FIELD_BYTES_MAX.min(bytes_max / 16) }
    }

    /// The limit of an entry for a call whose tool was not started. Anyone may make those, as many
    /// and as large as they like.
    fn of_refused(self) -> Self {
        Self {
            bytes_max: self.bytes_max.min(REFUSED_ENTRY_BYTES_MAX),
            field_bytes_max: self.field_bytes_max.min(REFUSED_FIELD_BYTES_MAX),
        }
    }
}

impl Line {
    /// What is long in the entry is cut if the line exceeds `limit`.
    pub(super) fn new(entry: &Entry<'_>, redactor: &Redactor, limit: LineLimit) -> Self {
        let limit = if entry.started { limit } else { limit.of_refused() };
        // Names, ids and JSON always serialize; were that ever to change, the log would still
        // hold an entry that says which call is missing.
        let text = serialized(entry).unwrap_or_else(|error| unrecordable(entry, &error));
        let text = one_line(text);
        let redacted = match redactor.json(&text) {
            Cow::Owned(redacted) => Some(redacted),
            Cow::Borrowed(_) => None,
        };
        let mut text = redacted.unwrap_or(text);
        if text.len() > limit.bytes_max {
            text = shorten(&text, limit.field_bytes_max)
                .unwrap_or_else(|error| unrecordable(entry, &error));
        }
        text.push('\n');
        Self { date: utc_date(entry.timestamp), text, memory: None }
    }
}

fn serialized(entry: &Entry<'_>) -> Result<String, serde_json::Error> {
    let raw = [Some(entry.input), entry.data, entry.raw];
    let raw: usize = raw.into_iter().flatten().map(|it| it.get().len()).sum();
    let content: usize = entry.content.iter().map(payload).sum();
    let mut line = Vec::with_capacity(FRAME_BYTES_USUAL + raw + content);
    serde_json::to_writer(&mut line, &Wire::from(entry))?;
    String::from_utf8(line).map_err(serde_json::Error::custom)
}

/// The bytes of a block that may be long. Escapes take more, which is rare enough to grow for.
fn payload(block: &Content) -> usize {
    match block {
        Content::Text { text } => text.len(),
        Content::Image { data, .. } | Content::Audio { data, .. } => data.len(),
        Content::Resource { text, data, .. } => {
            text.as_ref().map_or(0, String::len) + data.as_ref().map_or(0, String::len)
        }
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

/// The fields of a line, in their order.
#[derive(Serialize)]
struct Wire<'a> {
    execution_id: &'a str,
    #[serde(with = "rfc3339")]
    timestamp: jiff::Timestamp,
    tool: &'a str,
    source: Source,
    server: Option<&'a str>,
    caller: Option<&'a str>,
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<&'a str>,
    input: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Output<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a [Content]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ErrorBody>,
    status: Status,
    outcome: Outcomes,
    queued_ms: u64,
    duration_ms: u64,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Data(&'a RawValue),
    Content(&'a [Content]),
}

impl<'a> From<&Entry<'a>> for Wire<'a> {
    fn from(entry: &Entry<'a>) -> Self {
        let (output, content) = match (entry.data, entry.content) {
            (None, []) => (None, None),
            (None, content) => (Some(Output::Content(content)), None),
            (Some(data), content) if repeats(content, data) => (Some(Output::Data(data)), None),
            (Some(data), content) => (Some(Output::Data(data)), Some(content)),
        };
        Self {
            execution_id: entry.execution_id,
            timestamp: entry.timestamp,
            tool: entry.tool,
            source: entry.source,
            server: entry.server,
            caller: entry.caller,
            session: entry.session,
            request: entry.request,
            trace_id: entry.trace_id,
            input: entry.input,
            output,
            content,
            raw: entry.raw,
            error: entry.error,
            status: entry.status,
            outcome: entry.outcome,
            queued_ms: entry.queued_ms,
            duration_ms: entry.duration_ms,
        }
    }
}

/// Whether the blocks are only the structured answer once more, as text.
fn repeats(content: &[Content], data: &RawValue) -> bool {
    match content {
        [] => true,
        [Content::Text { text }] => text == data.get(),
        _ => false,
    }
}

/// RFC 3339 in UTC with milliseconds.
pub(crate) mod rfc3339 {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(
        timestamp: &Timestamp,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{timestamp:.3}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Timestamp, D::Error> {
        std::borrow::Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
