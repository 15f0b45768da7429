//! The result of a call: one shape for every tool and every outcome.

use std::borrow::Cow;

use haft_bounds::parse_error::describe;
use haft_config::Remedy;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use crate::content::Content;
use crate::error::{CallError, Code, MCP_ERROR, RpcFailure, Stage};
use crate::memory::Held;

/// The result of one call. `execution_id` is also the id of its log entry.
///
/// ```
/// let json = r#"{"execution_id": "1", "tool": "add", "status": "success", "data": {"sum": 5}, "content": [],
///                "message": null, "error": null, "queued_ms": 0, "duration_ms": 1}"#;
/// let envelope: haft::Envelope = serde_json::from_str(json)?;
/// assert_eq!(envelope.parse::<serde_json::Value>()?["sum"], 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Envelope {
    /// Identifies this execution; its log entry carries the same id.
    pub execution_id: String,
    /// The requested tool.
    pub tool: String,
    /// Success or error.
    pub status: Status,
    /// The structured output, unmodified.
    pub data: Option<Box<RawValue>>,
    /// The output as content blocks for a model.
    pub content: Vec<Content>,
    /// One sentence for people: the reason of a failure, or a note besides the output.
    pub message: Option<String>,
    /// The error and its remedy, if the call failed. JSON has `docs` beside them: the page about the error's code.
    #[serde(serialize_with = "with_docs")]
    pub error: Option<ErrorBody>,
    /// Time the call waited for a slot.
    pub queued_ms: u64,
    /// Time from request to answer, without the wait for a slot.
    pub duration_ms: u64,
    /// The text that a Python tool printed, for programs in this process; the log entry holds it too.
    #[serde(skip)]
    pub stdout: Option<String>,
    /// The memory reservation for a long answer.
    #[serde(skip)]
    pub memory: Held,
}

/// Success or error; `error` holds the kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The tool ran and its output is valid.
    Success,
    /// Anything else.
    Error,
}

/// An error for three readers: a program (`code`), a person (`message`, `remedy`), a model (both).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorBody {
    /// One of a fixed set.
    pub code: Code,
    /// The failure, the item it concerns, and the cause.
    pub message: String,
    /// The remedy.
    pub remedy: Option<Remedy>,
    /// Facts to show: JSON pointers, an exit code, the tail of stderr. Nothing is decided by them.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
    /// The stage that the call reached, for programs in this process. An error that was read from a log has the default.
    #[serde(skip)]
    pub stage: Stage,
    /// The error that the MCP server answered with, for programs in this process.
    #[serde(skip)]
    pub rpc: Option<RpcFailure>,
}

impl Envelope {
    /// The envelope of a successful call, or the error.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// use haft::{Code, ConfigBuilder, Runtime, ToolCall};
    ///
    /// let config = ConfigBuilder::new().folder(folder.path()).build()?;
    /// let runtime = Runtime::start(config).await?;
    /// let error = runtime.call(ToolCall::new("missing", &())).await.into_result().unwrap_err();
    /// assert_eq!(error.code, Code::UnknownTool);
    /// if let Some(remedy) = &error.remedy {
    ///     println!("{error}; {remedy}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[expect(clippy::result_large_err, reason = "the error is the answer, not the exception")]
    pub fn into_result(mut self) -> Result<Self, ErrorBody> {
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }

    /// Rewrites the note of a result that was cut for its reader: `render` writes [`Remedy::ReadExecution`].
    pub fn render_cuts(&mut self, render: impl Fn(&Remedy) -> String) {
        let blocks = self.content.iter_mut().filter_map(|block| match block {
            Content::Text { text } | Content::Resource { text: Some(text), .. } => Some(text),
            Content::Image { .. }
            | Content::Audio { .. }
            | Content::Resource { text: None, .. } => None,
        });
        let error = self.error.as_mut().map(|error| &mut error.message);
        for text in blocks.chain(error).filter(|text| text.ends_with("`]")) {
            let remedy = Remedy::ReadExecution { id: self.execution_id.clone() };
            let end = format!("{remedy}]");
            if text.ends_with(&end) {
                text.truncate(text.len() - end.len());
                text.push_str(&render(&remedy));
                text.push(']');
            }
        }
    }

    /// The result as a Rust type: from `data`, or from the text if there is no structured data. Text that is not JSON
    /// of that type is taken as a string.
    ///
    /// ```
    /// # fn parse(envelope: haft::Envelope) -> Result<(), haft::ErrorBody> {
    /// #[derive(serde::Deserialize)]
    /// struct Weather {
    ///     temp: f64,
    /// }
    ///
    /// let weather: Weather = envelope.parse()?;
    /// println!("{} degrees", weather.temp);
    /// # Ok(())
    /// # }
    /// ```
    #[expect(clippy::result_large_err, reason = "the error is the answer, not the exception")]
    pub fn parse<T: DeserializeOwned>(self) -> Result<T, ErrorBody> {
        let envelope = self.into_result()?;
        let parsed = match &envelope.data {
            Some(data) => serde_json::from_str(data.get()),
            None => from_text(envelope.model_text()),
        };
        parsed.map_err(|error| ErrorBody {
            code: Code::OutputValidationError,
            message: format!(
                "the result of `{}` has another form: {}",
                envelope.tool,
                describe(&error)
            ),
            remedy: Some(Remedy::ReadExecution { id: envelope.execution_id }),
            details: Value::Null,
            stage: Stage::Failed,
            rpc: None,
        })
    }

    /// The answer as one string, for text-only models. Never empty, because models treat an empty
    /// answer as a lost one.
    pub fn model_text(&self) -> String {
        if let Some(error) = &self.error {
            // A tool that reports its own failure wrote that text for the model: it stays
            // unmodified.
            let is_own_text = !self.content.is_empty();
            return if is_own_text { error.message.clone() } else { error.model_text() };
        }
        let texts: Vec<Cow<'_, str>> = self.content.iter().map(Content::as_text).collect();
        let text = texts.join("\n");
        if text.is_empty() { "(no content)".to_owned() } else { text }
    }
}

impl Envelope {
    /// Sets `message` from the error, if present, and a note of the caller.
    pub fn set_message(&mut self, note: Option<String>) {
        self.message = match (&self.error, note) {
            (Some(error), Some(note)) => Some(format!("{}; {note}", error.message)),
            (Some(error), None) => Some(error.message.clone()),
            (None, note) => note,
        };
    }
}

/// An error with the page about its code. The log has the code alone.
#[expect(clippy::ref_option, reason = "serde passes the field")]
fn with_docs<S: Serializer>(error: &Option<ErrorBody>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Documented<'a> {
        code: Code,
        message: &'a str,
        remedy: Option<&'a Remedy>,
        docs: String,
        #[serde(skip_serializing_if = "Value::is_null")]
        details: &'a Value,
    }
    let documented = error.as_ref().map(|error| Documented {
        code: error.code,
        message: &error.message,
        remedy: error.remedy.as_ref(),
        docs: error.code.docs(),
        details: &error.details,
    });
    documented.serialize(serializer)
}

fn from_text<T: DeserializeOwned>(text: String) -> serde_json::Result<T> {
    serde_json::from_str(&text)
        .or_else(|error| serde_json::from_value(Value::String(text)).map_err(|_| error))
}

impl ErrorBody {
    /// The error for a model, starting with the code, so that the model can distinguish kinds of
    /// failure. Failures of an MCP server keep the prefix that models know.
    pub fn model_text(&self) -> String {
        let Self { code, message, .. } = self;
        if message.starts_with(MCP_ERROR) {
            return message.clone();
        }
        format!("{}: {message}", code.as_str())
    }
}

impl std::fmt::Display for ErrorBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ErrorBody {}

impl From<&CallError> for ErrorBody {
    fn from(error: &CallError) -> Self {
        Self {
            code: error.code(),
            message: error.to_string(),
            remedy: error.remedy(),
            details: error.details(),
            stage: error.stage(),
            rpc: error.rpc().cloned(),
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
            stdout: None,
            memory: Held::default(),
        };
        envelope.model_text()
    }

    /// Proves S3-EC-1, S3-US3-5 for models.
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
