//! Makes a line short enough to be read back. It works on the finished line, which is redacted
//! already: half a secret at the edge of a cut would no longer be recognized. Also leaves out the content
//! of an entry as a whole.

use haft_config::Remedy;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::entry::{Entry, LoggedCall};
use super::format::content_bytes;

/// The same entry with each field cut to `kept_bytes`. Values become strings that hold their beginning.
pub(super) fn shorten(line: &str, kept_bytes: usize) -> Result<String, serde_json::Error> {
    let mut call: LoggedCall = serde_json::from_str(line)?;
    let names = [&mut call.server, &mut call.caller, &mut call.session, &mut call.request];
    let names = names.into_iter().chain([&mut call.trace_id]).flatten();
    let names = names.chain([&mut call.execution_id, &mut call.tool]);
    names.for_each(|text| cut_text(text, kept_bytes));
    cut_json(&mut call.input, kept_bytes)?;
    for json in [&mut call.output, &mut call.content, &mut call.raw].into_iter().flatten() {
        cut_json(json, kept_bytes)?;
    }
    if let Some(error) = &mut call.error {
        cut_text(&mut error.message, kept_bytes);
        if let Some(Remedy::Text(text)) = &mut error.remedy {
            cut_text(text, kept_bytes);
        }
        if let Some(beginning) = beginning(&error.details.to_string(), kept_bytes) {
            error.details = Value::String(beginning);
        }
    }
    if let Some(policy) = &mut call.policy {
        policy.reason.iter_mut().for_each(|text| cut_text(text, kept_bytes));
        policy.values.values_mut().for_each(|value| {
            if let Some(beginning) = beginning(&value.to_string(), kept_bytes) {
                *value = Value::String(beginning);
            }
        });
    }
    serde_json::to_string(&call)
}

/// Notes that stand for the arguments and the answer of an entry.
pub(super) struct ContentNotes {
    input: Box<RawValue>,
    output: Option<Box<RawValue>>,
}

impl ContentNotes {
    pub(super) fn new(entry: &Entry<'_>, reason: &str) -> Self {
        let note = |bytes: usize| {
            let note = format!("[{bytes} bytes are not in the log: {reason}]");
            to_raw_value(&note).unwrap_or_else(|_| RawValue::NULL.to_owned())
        };
        let output = content_bytes(entry);
        Self { input: note(entry.input.get().len()), output: (output > 0).then(|| note(output)) }
    }

    /// The entry with the notes instead of what the caller sent and what the tool wrote.
    pub(super) fn replace<'a>(&'a self, entry: &Entry<'a>) -> Entry<'a> {
        Entry {
            input: &self.input,
            data: self.output.as_deref(),
            content: &[],
            raw: None,
            stdout: None,
            request: None,
            ..*entry
        }
    }
}

/// The beginning of a string that is too long, with a note of its length.
fn beginning(text: &str, kept_bytes: usize) -> Option<String> {
    let kept = text.floor_char_boundary(kept_bytes);
    let gone = text.len() - kept;
    (gone > 0)
        .then(|| format!("{} [{gone} of {} bytes are not in the log]", &text[..kept], text.len()))
}

fn cut_text(text: &mut String, kept_bytes: usize) {
    if let Some(beginning) = beginning(text, kept_bytes) {
        *text = beginning;
    }
}

fn cut_json(json: &mut Box<RawValue>, kept_bytes: usize) -> Result<(), serde_json::Error> {
    if let Some(beginning) = beginning(json.get(), kept_bytes) {
        *json = to_raw_value(&beginning)?;
    }
    Ok(())
}
