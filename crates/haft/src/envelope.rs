//! The one shape every call is answered in, whatever ran and however it ended.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::content::Content;
use crate::error::{CallError, Code, MCP_ERROR};
use crate::memory::Held;

/// The answer to one call. `execution_id` is also the id of its log entry.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Envelope {
    /// Identifies this execution; its log entry carries the same id.
    pub execution_id: String,
    /// The tool that was asked for.
    pub tool: String,
    /// How the call ended.
    pub status: Status,
    /// The structured answer, as the tool wrote it.
    pub data: Option<Box<RawValue>>,
    /// The answer as blocks a model can be shown.
    pub content: Vec<Content>,
    /// One sentence for a person: why the call failed, or what there is to say beyond the answer.
    pub message: Option<String>,
    /// Why the call failed and what to do about it.
    pub error: Option<ErrorBody>,
    /// How long the call waited for its turn.
    pub queued_ms: u64,
    /// How long it took from request to answer, without the wait for its turn.
    pub duration_ms: u64,
    /// The memory of a long answer.
    #[serde(skip)]
    pub memory: Held,
}

/// Success or error; `error` says which error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The tool ran and its answer is valid.
    Success,
    /// Anything else.
    Error,
}

/// An error for three readers: a program (`code`), a person (`message`, `remedy`), a model (both).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// One of a fixed set.
    pub code: Code,
    /// What happened to which thing, and why.
    pub message: String,
    /// What to do next.
    pub remedy: Option<String>,
    /// Facts for a program: JSON pointers, an exit code, the tail of stderr.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

impl Envelope {
    /// The answer as one text, for a model that takes nothing else. It is never empty: models take
    /// an empty answer for a lost one.
    pub fn model_text(&self) -> String {
        if let Some(error) = &self.error {
            // A tool that reports its own failure wrote that text for the model: it stays unmodified.
            let is_own_text = !self.content.is_empty();
            return if is_own_text { error.message.clone() } else { error.model_text() };
        }
        let texts: Vec<Cow<'_, str>> = self.content.iter().map(Content::as_text).collect();
        let text = texts.join("\n");
        if text.is_empty() { "(no content)".to_owned() } else { text }
    }
}

impl Envelope {
    /// Sets `message`: the error, if there is one, and a note of the caller's.
    pub fn set_message(&mut self, note: Option<String>) {
        self.message = match (&self.error, note) {
            (Some(error), Some(note)) => Some(format!("{}; {note}", error.message)),
            (Some(error), None) => Some(error.message.clone()),
            (None, note) => note,
        };
    }
}

impl ErrorBody {
    /// The error as a model reads it: the code in front, so that the model can tell kinds of failure apart.
    /// Failures on the way to an MCP server keep the prefix that models know.
    pub fn model_text(&self) -> String {
        let Self { code, message, .. } = self;
        if message.starts_with(MCP_ERROR) {
            return message.clone();
        }
        format!("{}: {message}", code.as_str())
    }
}

impl From<&CallError> for ErrorBody {
    fn from(error: &CallError) -> Self {
        Self {
            code: error.code(),
            message: error.to_string(),
            remedy: error.remedy(),
            details: error.details(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: Vec<Content>) -> String {
        let envelope = Envelope {
            execution_id: String::new(),
            tool: String::new(),
            status: Status::Success,
            data: None,
            content,
            message: None,
            error: None,
            queued_ms: 0,
            duration_ms: 0,
            memory: Held::default(),
        };
        envelope.model_text()
    }

    /// Proves S3-EC-1, S3-US3-5 on the side of the model.
    #[test]
    fn a_model_always_gets_a_text() {
        assert_eq!(text(Vec::new()), "(no content)");
        let image = Content::Image { data: "QUJD".into(), mime_type: "image/png".into() };
        let resource = Content::Resource {
            uri: "a://b".into(),
            mime_type: None,
            text: Some("inside".into()),
            data: None,
            about: crate::content::ResourceAbout::default(),
        };
        assert_eq!(
            text(vec![Content::text("one"), image, resource]),
            "one\n[image/png, 3 bytes]\ninside"
        );
    }
}
