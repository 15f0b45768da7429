//! One call as the log holds it: what the call path hands in, and what a reader gets back.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::content::Content;
use crate::envelope::{ErrorBody, Status};

/// One call, on its way into the log. It borrows, because the line is built before
/// [`append`](super::ExecutionLog::append) returns and nothing needs to be copied for it.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The id the caller was answered with.
    pub execution_id: &'a str,
    /// The record's time. Its date in UTC names the file.
    pub timestamp: Timestamp,
    /// The tool that was asked for.
    pub tool: &'a str,
    /// What kind of tool it is.
    pub source: Source,
    /// The MCP server that offers it.
    pub server: Option<&'a str>,
    /// Who asked.
    pub caller: Option<&'a str>,
    /// The session or run the call belongs to.
    pub session: Option<&'a str>,
    /// What a person asked for, where that is kept.
    pub request: Option<&'a str>,
    /// The trace it belongs to.
    pub trace_id: Option<&'a str>,
    /// The arguments as they came. Arguments that are not JSON are recorded as a JSON string.
    pub input: &'a RawValue,
    /// Whether the tool was started. The arguments of a call that was refused before are cut to
    /// [`REFUSED_FIELD_BYTES_MAX`](super::REFUSED_FIELD_BYTES_MAX) if its entry is long.
    pub started: bool,
    /// The structured answer, as the tool wrote it.
    pub data: Option<&'a RawValue>,
    /// The answer's blocks. Left out of the line where they only repeat `data`.
    pub content: &'a [Content],
    /// The whole answer as the server wrote it, where the blocks do not hold all of it.
    pub raw: Option<&'a RawValue>,
    /// Why the call failed. An answer that was refused is recorded beside it.
    pub error: Option<&'a ErrorBody>,
    /// How the call ended.
    pub status: Status,
    /// How far it came.
    pub outcome: Outcomes,
    /// How long it waited for its turn.
    pub queued_ms: u64,
    /// How long it took, without the wait for its turn.
    pub duration_ms: u64,
}

/// What kind of tool ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A script or command.
    Local,
    /// A tool of an MCP server.
    Mcp,
    /// A tool that comes with Haft.
    Builtin,
    /// A Rust function of the embedding program.
    Function,
    /// The tool was not found, so nobody knows.
    Unknown,
}

/// How each layer of a call ended, apart: a tool can fail over a healthy connection.
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

/// How one layer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It worked.
    Ok,
    /// It failed.
    Failed,
    /// The call did not come that far, or the tool has no such layer.
    #[default]
    None,
}

/// One call, read back from the log. Serializes to the same fields as its line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoggedCall {
    /// The id the caller was answered with.
    pub execution_id: String,
    /// The record's time, to the millisecond.
    #[serde(with = "super::line::rfc3339")]
    pub timestamp: Timestamp,
    /// The tool that was asked for.
    pub tool: String,
    /// What kind of tool it is.
    pub source: Source,
    /// The MCP server that offers it.
    pub server: Option<String>,
    /// Who asked.
    pub caller: Option<String>,
    /// The session or run the call belongs to.
    pub session: Option<String>,
    /// What a person asked for, where that is kept; redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// The trace it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// The arguments, redacted.
    pub input: Box<RawValue>,
    /// The structured answer, or the answer's blocks where it has no structure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
    /// The answer's blocks, where they say more than `output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Box<RawValue>>,
    /// The whole answer as the server wrote it, where the blocks do not hold all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Box<RawValue>>,
    /// Why the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// How the call ended.
    pub status: Status,
    /// How far it came.
    pub outcome: Outcomes,
    /// How long it waited for its turn.
    pub queued_ms: u64,
    /// How long it took, without the wait for its turn.
    pub duration_ms: u64,
}
