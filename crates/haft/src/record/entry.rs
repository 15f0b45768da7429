//! One call as the log holds it: what the call path hands in, and what a reader gets back.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::content::Content;
use crate::envelope::{ErrorBody, Status};
use crate::policy::PolicyDecision;

/// One call, on its way into the log. It borrows, because the line is built before
/// [`append`](super::ExecutionLog::append) returns and nothing needs to be copied for it.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The id the caller was answered with.
    pub execution_id: &'a str,
    /// The record's time. Its date in UTC names the file.
    pub timestamp: Timestamp,
    /// The requested tool.
    pub tool: &'a str,
    /// The kind of the tool.
    pub source: RecordSource,
    /// The MCP server that offers it.
    pub server: Option<&'a str>,
    /// The caller's name.
    pub caller: Option<&'a str>,
    /// The session or run the call belongs to.
    pub session: Option<&'a str>,
    /// The user's request, if logged.
    pub request: Option<&'a str>,
    /// The trace it belongs to.
    pub trace_id: Option<&'a str>,
    /// The arguments as they came. Arguments that are not JSON are recorded as a JSON string.
    pub input: &'a RawValue,
    /// True if the tool was started. The arguments of a call that was refused before are cut to
    /// `REFUSED_FIELD_BYTES_MAX` if its entry is long.
    pub started: bool,
    /// The structured answer, as the tool wrote it.
    pub data: Option<&'a RawValue>,
    /// The content blocks. Omitted from the line if they only repeat `data`.
    pub content: &'a [Content],
    /// The whole answer as the server wrote it, where the blocks do not hold all of it.
    pub raw: Option<&'a RawValue>,
    /// The text that the tool printed.
    pub stdout: Option<&'a str>,
    /// The error, if the call failed. A rejected output is recorded beside it.
    pub error: Option<&'a ErrorBody>,
    /// The decision of a rule on the call.
    pub policy: Option<&'a PolicyDecision>,
    /// Success or error.
    pub status: Status,
    /// The outcome of each layer.
    pub outcome: Outcomes,
    /// Time it waited for a slot.
    pub queued_ms: u64,
    /// Duration, without the wait for a slot.
    pub duration_ms: u64,
}

/// The kind of tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordSource {
    /// A script or command.
    Local,
    /// A tool of an MCP server.
    Mcp,
    /// A tool that comes with Haft.
    Builtin,
    /// A Rust function of the embedding program.
    Function,
    /// The tool was not found, so its kind is unknown.
    Unknown,
}

/// The outcome of each layer of a call: a tool can fail over a healthy connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// The connection or process.
    pub transport: Outcome,
    /// The protocol exchange.
    pub rpc: Outcome,
    /// The tool itself.
    pub tool: Outcome,
    /// The check of arguments and answer against their schemas.
    pub schema: Outcome,
}

/// The outcome of one layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It worked.
    Ok,
    /// It failed.
    Failed,
    /// The call did not come that far, or the tool has no such layer.
    #[default]
    #[serde(rename = "none")]
    NotReached,
}

/// One call, read back from the log. Serializes to the same fields as its line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LoggedCall {
    /// The id the caller was answered with.
    pub execution_id: String,
    /// The record's time, to the millisecond.
    #[serde(with = "super::line::rfc3339")]
    pub timestamp: Timestamp,
    /// The requested tool.
    pub tool: String,
    /// The kind of the tool.
    pub source: RecordSource,
    /// The MCP server that offers it.
    pub server: Option<String>,
    /// The caller's name.
    pub caller: Option<String>,
    /// The session or run the call belongs to.
    pub session: Option<String>,
    /// The user's request, if logged; redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The trace it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The arguments, redacted.
    pub input: Box<RawValue>,
    /// The structured output, or the content blocks if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
    /// The content blocks, if they add to `output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Box<RawValue>>,
    /// The whole answer as the server wrote it, where the blocks do not hold all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Box<RawValue>>,
    /// The text that a Python tool printed, redacted; the last 64 KiB of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// The error, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// The decision of a rule on the call; its values are redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyDecision>,
    /// Success or error.
    pub status: Status,
    /// The outcome of each layer.
    pub outcome: Outcomes,
    /// Time it waited for a slot.
    pub queued_ms: u64,
    /// Duration, without the wait for a slot.
    pub duration_ms: u64,
}

impl LoggedCall {
    /// Returns true if its names, its texts or its JSON contain `text`, in any case.
    pub fn contains(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let holds = |it: &str| it.to_lowercase().contains(&text);
        let names = [&self.server, &self.caller, &self.session, &self.request, &self.trace_id];
        let json = [Some(&self.input), self.output.as_ref(), self.content.as_ref()];
        let error = self.error.as_ref();
        holds(&self.execution_id)
            || holds(&self.tool)
            || names.into_iter().flatten().any(|it| holds(it))
            || json.into_iter().flatten().any(|it| holds(it.get()))
            || error.is_some_and(|it| holds(&it.message) || holds(&format!("{:?}", it.code)))
    }
}
