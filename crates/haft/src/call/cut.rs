//! Cuts text that is too long for its reader, with a note on how to get the rest.

use haft_config::Remedy;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::content::{Content, ToolOutput};
use crate::outputs::{OutputStore, note};

/// The limit on the text of one result.
pub(super) struct Cut<'a> {
    pub(super) bytes_max: usize,
    pub(super) execution_id: &'a str,
    /// True if the reader can call `read_output`; otherwise a person reads the log.
    pub(super) reads_on: bool,
}

impl Cut<'_> {
    /// Cuts the text of a result. A reader that can read on gets one text, so that an offset leads into it.
    pub(super) fn content(
        &self,
        mut content: Vec<Content>,
        outputs: &OutputStore,
        reader: Option<&str>,
    ) -> Vec<Content> {
        let texts: Vec<&str> = content.iter().filter_map(text_of).collect();
        let total: usize = texts.iter().map(|text| text.len() + 1).sum::<usize>().saturating_sub(1);
        if total <= self.bytes_max {
            return content;
        }
        if self.reads_on {
            let mut whole = texts.join("\n");
            self.text(&mut whole, outputs, reader);
            content.retain(|block| text_of(block).is_none());
            content.insert(0, Content::text(whole));
            return content;
        }
        let mut left = self.bytes_max;
        for block in &mut content {
            if let Content::Text { text } | Content::Resource { text: Some(text), .. } = block {
                let whole = text.len();
                self.shorten(text, left);
                left = left.saturating_sub(whole);
            }
        }
        content
    }

    /// Cuts one text and keeps the whole for its reader.
    pub(super) fn text(&self, text: &mut String, outputs: &OutputStore, reader: Option<&str>) {
        if text.len() <= self.bytes_max {
            return;
        }
        if !self.reads_on {
            self.shorten(text, self.bytes_max);
            return;
        }
        outputs.keep(self.execution_id, reader.map(ToOwned::to_owned), text);
        let total = text.len();
        let end = text.floor_char_boundary(self.bytes_max);
        text.truncate(end);
        text.push_str(&note(self.execution_id, total - end, total, end));
    }

    /// Keeps a long result out of the parts that cannot be cut: the structured data and the server's own
    /// answer. Data that the text does not repeat becomes the text.
    pub(super) fn whole(&self, output: &mut ToolOutput) {
        let text: usize = output.content.iter().filter_map(text_of).map(str::len).sum();
        let data = output.data.as_ref().map_or(0, |data| data.get().len());
        let raw = output.raw.as_ref().map_or(0, |raw| raw.get().len());
        if text.max(data) <= self.bytes_max && raw <= self.bytes_max.saturating_mul(2) {
            return;
        }
        if let Some(data) = output.data.take().filter(|data| content_bytes(data) > text) {
            output.content.retain(|block| text_of(block).is_none());
            output.content.insert(0, Content::text(data.get()));
        }
        output.raw = None;
    }

    fn shorten(&self, text: &mut String, bytes_max: usize) {
        if text.len() <= bytes_max {
            return;
        }
        let total = text.len();
        text.truncate(text.floor_char_boundary(bytes_max));
        let gone = total - text.len();
        let rest = Remedy::ReadExecution { id: self.execution_id.to_owned() };
        let note = format!("\n[{gone} of {total} bytes cut here; {rest}]");
        text.push_str(&note);
    }
}

/// The size of the strings and numbers in a value: what its text has to repeat. Keys and escapes do not count.
fn content_bytes(data: &RawValue) -> usize {
    fn sum(value: &Value) -> usize {
        match value {
            Value::Null | Value::Bool(_) => 0,
            Value::Number(number) => number.to_string().len(),
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(sum).sum(),
            Value::Object(fields) => fields.values().map(sum).sum(),
        }
    }
    serde_json::from_str(data.get()).map_or(data.get().len(), |value| sum(&value))
}

fn text_of(block: &Content) -> Option<&str> {
    match block {
        Content::Text { text } | Content::Resource { text: Some(text), .. } => Some(text),
        Content::Image { .. } | Content::Audio { .. } | Content::Resource { text: None, .. } => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::*;

    fn shown(data: &Value, text: &str) -> String {
        let mut output = ToolOutput::from_text(text);
        output.data = Some(to_raw_value(data).unwrap());
        let cut = Cut { bytes_max: 100, execution_id: "1", reads_on: true };
        cut.whole(&mut output);
        assert!(output.data.is_none(), "{data}");
        text_of(&output.content[0]).unwrap_or_default().to_owned()
    }

    #[test]
    fn text_that_repeats_the_data_stays_and_is_not_escaped() {
        let text = "line\n".repeat(100);
        assert_eq!(shown(&json!({ "content": text }), &text), text);
        assert_eq!(shown(&json!(text), &text), text);
    }

    #[test]
    fn data_that_the_text_only_sums_up_becomes_the_text() {
        let data = json!({"names": vec!["Ada"; 100]});
        assert_eq!(shown(&data, "100 names"), data.to_string());
        let numbers = json!(vec![1_000_000; 100]);
        assert_eq!(shown(&numbers, "100 numbers"), numbers.to_string());
    }
}
