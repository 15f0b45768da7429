//! The fields of a line, in their order. Written by hand, because every part is a known word, a number, a
//! text to quote or JSON already; a property proves that serde would write the same.

use std::ops::Range;

use serde_json::value::RawValue;

use super::entry::{Entry, Outcome, Outcomes, RecordSource};
use super::number::{push_number, push_timestamp};
use crate::content::Content;
use crate::envelope::Status;

/// The size of an ordinary line besides its payload, so that it is not reallocated while it grows.
const FRAME_BYTES_USUAL: usize = 640;

/// Appends the line of `entry` without its newline. Returns the range that may hold secrets: all but the id,
/// the time and the outcome.
pub(super) fn push_entry(
    line: &mut String,
    entry: &Entry<'_>,
) -> Result<Range<usize>, serde_json::Error> {
    line.reserve(FRAME_BYTES_USUAL + payload_bytes(entry));
    line.push_str(r#"{"execution_id":"#);
    push_text(line, entry.execution_id);
    line.push_str(r#","timestamp":""#);
    push_timestamp(line, entry.timestamp);
    line.push('"');
    let start = line.len();
    line.push_str(r#","tool":"#);
    push_text(line, entry.tool);
    line.push_str(r#","source":""#);
    line.push_str(source(entry.source));
    line.push('"');
    push_nullable(line, r#","server":"#, entry.server);
    push_nullable(line, r#","caller":"#, entry.caller);
    push_nullable(line, r#","session":"#, entry.session);
    push_optional(line, r#","request":"#, entry.request);
    push_optional(line, r#","trace_id":"#, entry.trace_id);
    line.push_str(r#","input":"#);
    line.push_str(entry.input.get());
    push_answer(line, entry)?;
    if let Some(raw) = entry.raw {
        line.push_str(r#","raw":"#);
        line.push_str(raw.get());
    }
    push_optional(line, r#","stdout":"#, entry.stdout);
    if let Some(error) = entry.error {
        line.push_str(r#","error":"#);
        line.push_str(&serde_json::to_string(error)?);
    }
    if let Some(policy) = entry.policy {
        line.push_str(r#","policy":"#);
        line.push_str(&serde_json::to_string(policy)?);
    }
    let end = line.len();
    push_outcome(line, entry);
    Ok(start..end)
}

/// The answer's structure as `output` and its blocks as `content`. Blocks that repeat the structure are left
/// out; without a structure they are the `output`.
fn push_answer(line: &mut String, entry: &Entry<'_>) -> Result<(), serde_json::Error> {
    match (entry.data, entry.content) {
        (None, []) => Ok(()),
        (None, content) => {
            line.push_str(r#","output":"#);
            push_blocks(line, content)
        }
        (Some(data), content) => {
            line.push_str(r#","output":"#);
            line.push_str(data.get());
            if repeats(content, data) {
                return Ok(());
            }
            line.push_str(r#","content":"#);
            push_blocks(line, content)
        }
    }
}

fn push_outcome(line: &mut String, entry: &Entry<'_>) {
    line.push_str(match entry.status {
        Status::Success => r#","status":"success","outcome":"#,
        Status::Error => r#","status":"error","outcome":"#,
    });
    let Outcomes { transport, rpc, tool, schema } = entry.outcome;
    let layers = [
        (r#"{"transport":""#, transport),
        (r#"","rpc":""#, rpc),
        (r#"","tool":""#, tool),
        (r#"","schema":""#, schema),
    ];
    for (name, layer) in layers {
        line.push_str(name);
        line.push_str(outcome(layer));
    }
    line.push_str(r#""},"queued_ms":"#);
    push_number(line, entry.queued_ms);
    line.push_str(r#","duration_ms":"#);
    push_number(line, entry.duration_ms);
    line.push('}');
}

/// Returns true if the blocks only repeat the structured output as text.
fn repeats(content: &[Content], data: &RawValue) -> bool {
    match content {
        [] => true,
        [Content::Text { text }] => text == data.get(),
        _ => false,
    }
}

fn push_blocks(line: &mut String, blocks: &[Content]) -> Result<(), serde_json::Error> {
    line.push('[');
    for (index, block) in blocks.iter().enumerate() {
        if index > 0 {
            line.push(',');
        }
        match block {
            Content::Text { text } => {
                line.push_str(r#"{"type":"text","text":"#);
                push_text(line, text);
                line.push('}');
            }
            Content::Image { .. } | Content::Audio { .. } | Content::Resource { .. } => {
                line.push_str(&serde_json::to_string(block)?);
            }
        }
    }
    line.push(']');
    Ok(())
}

fn push_nullable(line: &mut String, name: &str, text: Option<&str>) {
    line.push_str(name);
    match text {
        Some(text) => push_text(line, text),
        None => line.push_str("null"),
    }
}

fn push_optional(line: &mut String, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        line.push_str(name);
        push_text(line, text);
    }
}

/// Writes a JSON string.
fn push_text(line: &mut String, text: &str) {
    line.push('"');
    let mut rest = text;
    loop {
        let at = plain_bytes(rest.as_bytes());
        line.push_str(&rest[..at]);
        if at == rest.len() {
            break;
        }
        push_escaped(line, rest.as_bytes()[at]);
        rest = &rest[at + 1..];
    }
    line.push('"');
}

/// Number of bytes from the first that need no escape. Whole chunks are compared at once.
fn plain_bytes(text: &[u8]) -> usize {
    const CHUNK: usize = 16;
    let needs_escape = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let chunks = text.chunks_exact(CHUNK);
    let is_plain =
        |chunk: &&[u8]| !chunk.iter().fold(false, |found, byte| found | needs_escape(byte));
    let plain = chunks.take_while(is_plain).count() * CHUNK;
    let rest = &text[plain..];
    plain + rest.iter().position(needs_escape).unwrap_or(rest.len())
}

fn push_escaped(line: &mut String, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' => line.push_str("\\\""),
        b'\\' => line.push_str("\\\\"),
        b'\n' => line.push_str("\\n"),
        b'\r' => line.push_str("\\r"),
        b'\t' => line.push_str("\\t"),
        8 => line.push_str("\\b"),
        12 => line.push_str("\\f"),
        byte => {
            line.push_str("\\u00");
            line.push(char::from(HEX[usize::from(byte >> 4)]));
            line.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

fn source(source: RecordSource) -> &'static str {
    match source {
        RecordSource::Local => "local",
        RecordSource::Mcp => "mcp",
        RecordSource::Builtin => "builtin",
        RecordSource::Function => "function",
        RecordSource::Unknown => "unknown",
    }
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Failed => "failed",
        Outcome::NotReached => "none",
    }
}

fn payload_bytes(entry: &Entry<'_>) -> usize {
    entry.input.get().len() + content_bytes(entry)
}

/// The bytes of what the tool wrote.
pub(super) fn content_bytes(entry: &Entry<'_>) -> usize {
    let raw = [entry.data, entry.raw];
    let raw: usize = raw.into_iter().flatten().map(|it| it.get().len()).sum();
    let blocks: usize = entry.content.iter().map(block_bytes).sum();
    raw + blocks + entry.stdout.map_or(0, str::len)
}

/// The bytes of a block that may be long. Escapes take more, which is rare enough to grow for.
fn block_bytes(block: &Content) -> usize {
    match block {
        Content::Text { text } => text.len(),
        Content::Image { data, .. } | Content::Audio { data, .. } => data.len(),
        Content::Resource { text, data, .. } => {
            text.as_ref().map_or(0, String::len) + data.as_ref().map_or(0, String::len)
        }
    }
}
