//! The answer of a tool as the log keeps it: complete, even if the model was shown a part.

use haft::Content;
use haft::record::LoggedCall;
use serde_json::value::RawValue;

use haft_text::json_text;

/// The text of the answer. Structured content without text is shown as JSON.
pub(super) fn text(call: &LoggedCall) -> String {
    let answer = call.content.as_ref().or(call.output.as_ref());
    answer.map(|answer| text_of(answer)).unwrap_or_default()
}

fn text_of(answer: &RawValue) -> String {
    if let Ok(blocks) = serde_json::from_str::<Vec<Content>>(answer.get()) {
        let texts: Vec<String> = blocks.iter().map(|block| block.as_text().into_owned()).collect();
        return texts.join("\n");
    }
    serde_json::from_str::<String>(answer.get())
        .unwrap_or_else(|_| format!("{}\n", json_text::pretty(answer.get())))
}
