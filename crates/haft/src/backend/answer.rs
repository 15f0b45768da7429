//! Converts the output bytes of a local tool to content for a model.

use serde_json::value::RawValue;

use crate::content::{Content, ToolOutput};

/// Creates a structured output. A JSON string is shown as its text, without quotes and escapes.
pub(super) fn from_raw(data: Box<RawValue>) -> ToolOutput {
    match serde_json::from_str::<String>(data.get()) {
        Ok(text) => ToolOutput {
            content: vec![Content::text(text)],
            data: Some(data),
            ..ToolOutput::default()
        },
        Err(_) => ToolOutput::from_raw(data),
    }
}

/// Converts a program's standard output: JSON is structured data, anything else is text. As in a
/// shell's `$(...)`, the final newline is not part of the text.
pub(super) fn from_stdout(stdout: &[u8]) -> ToolOutput {
    let text = String::from_utf8_lossy(stdout);
    if let Ok(data) = serde_json::from_str::<Box<RawValue>>(text.trim()) {
        return from_raw(data);
    }
    match text.trim_end_matches(['\r', '\n']) {
        "" => ToolOutput::default(),
        text => ToolOutput::from_text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(stdout: &str) -> (Vec<Content>, Option<String>) {
        let output = from_stdout(stdout.as_bytes());
        (output.content, output.data.map(|data| data.get().to_owned()))
    }

    #[test]
    fn json_is_data_and_anything_else_is_text() {
        let text = |text: &str| vec![Content::text(text)];
        assert_eq!(shown("{\"b\": 1, \"a\": 2}\n").1.as_deref(), Some("{\"b\": 1, \"a\": 2}"));
        assert_eq!(shown("\"a\\nb\"\n"), (text("a\nb"), Some("\"a\\nb\"".into())));
        assert_eq!(shown("two words\n\n"), (text("two words"), None));
        assert_eq!(shown("{} {}"), (text("{} {}"), None));
        assert_eq!(shown("\n"), (vec![], None));
    }
}
