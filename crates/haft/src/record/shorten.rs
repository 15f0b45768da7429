//! Makes a line short enough to be read back. It works on the finished line, which is redacted
//! already: half a secret at the edge of a cut would no longer be recognized.

use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::entry::LoggedCall;

/// How much is kept of what is cut.
pub(super) const KEPT_BYTES: usize = 64 << 10;

/// The same entry with each long field cut. Values become strings that hold their beginning.
pub(super) fn shorten(line: &str) -> Result<String, serde_json::Error> {
    let mut call: LoggedCall = serde_json::from_str(line)?;
    let names = [&mut call.server, &mut call.caller, &mut call.session].into_iter().flatten();
    names.chain([&mut call.execution_id, &mut call.tool]).for_each(cut_text);
    cut_json(&mut call.input)?;
    for json in [&mut call.output, &mut call.content, &mut call.raw].into_iter().flatten() {
        cut_json(json)?;
    }
    if let Some(error) = &mut call.error {
        cut_text(&mut error.message);
        error.remedy.iter_mut().for_each(cut_text);
        if let Some(beginning) = beginning(&error.details.to_string()) {
            error.details = Value::String(beginning);
        }
    }
    serde_json::to_string(&call)
}

/// The beginning of a text that is too long, with a note of how long it was.
fn beginning(text: &str) -> Option<String> {
    let kept = text.floor_char_boundary(KEPT_BYTES);
    let gone = text.len() - kept;
    (gone > 0)
        .then(|| format!("{} [{gone} of {} bytes are not in the log]", &text[..kept], text.len()))
}

fn cut_text(text: &mut String) {
    if let Some(beginning) = beginning(text) {
        *text = beginning;
    }
}

fn cut_json(json: &mut Box<RawValue>) -> Result<(), serde_json::Error> {
    if let Some(beginning) = beginning(json.get()) {
        *json = to_raw_value(&beginning)?;
    }
    Ok(())
}
