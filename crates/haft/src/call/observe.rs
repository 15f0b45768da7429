//! Summaries of finished calls for an embedding program: for metrics and traces.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::envelope::Status;
use crate::error::Code;
use crate::record::RecordSource;
use crate::trace::TraceContext;

/// Receives every finished call.
pub(crate) type Observer = Arc<dyn Fn(&CallSummary<'_>) + Send + Sync>;

/// One call that is over, in short. Holds nothing of its arguments and its answer.
#[derive(Debug, Clone, Copy)]
pub struct CallSummary<'a> {
    /// The id of its answer and its log entry.
    pub execution_id: &'a str,
    /// The requested tool. Callers can request any name; see [`is_known`](Self::is_known).
    pub tool: &'a str,
    /// True if the tool exists.
    pub is_known: bool,
    /// The kind of the tool.
    pub source: RecordSource,
    /// The MCP server that offers it.
    pub server: Option<&'a str>,
    /// The caller's name.
    pub caller: Option<&'a str>,
    /// The session or run it belonged to.
    pub session: Option<&'a str>,
    /// The time of the request.
    pub started: Timestamp,
    /// Time it waited for a slot.
    pub queued: Duration,
    /// Duration, without the wait for a slot.
    pub duration: Duration,
    /// Success or error.
    pub status: Status,
    /// The error code, if it failed.
    pub code: Option<Code>,
    /// The trace it belonged to.
    pub trace: Option<&'a TraceContext>,
}
