//! What an embedding program hears of every call when it is over: for metrics and traces.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::envelope::Status;
use crate::error::Code;
use crate::record::Source;
use crate::trace::TraceContext;

/// Hears of every call that is over.
pub(crate) type Observer = Arc<dyn Fn(&CallSummary<'_>) + Send + Sync>;

/// One call that is over, in short. Holds nothing of its arguments and its answer.
#[derive(Debug, Clone, Copy)]
pub struct CallSummary<'a> {
    /// The id of its answer and its log entry.
    pub execution_id: &'a str,
    /// The tool that was asked for. Callers can ask for anything; see [`is_known`](Self::is_known).
    pub tool: &'a str,
    /// Whether there is such a tool.
    pub is_known: bool,
    /// What kind of tool it is.
    pub source: Source,
    /// The MCP server that offers it.
    pub server: Option<&'a str>,
    /// Who asked.
    pub caller: Option<&'a str>,
    /// The session or run it belonged to.
    pub session: Option<&'a str>,
    /// When it was asked for.
    pub started: Timestamp,
    /// How long it waited for its turn.
    pub queued: Duration,
    /// How long it took, without the wait for its turn.
    pub duration: Duration,
    /// How it ended.
    pub status: Status,
    /// Why it failed.
    pub code: Option<Code>,
    /// The trace it belonged to.
    pub trace: Option<&'a TraceContext>,
}
