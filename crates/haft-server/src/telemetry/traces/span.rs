//! The span of one call, as OpenTelemetry's conventions for tools and MCP name its parts.

use std::time::Duration;

use haft::record::RecordSource;
use haft::{CallSummary, Code, TraceContext};
use jiff::Timestamp;

/// Longest unknown name that is kept: callers can send any name.
const UNKNOWN_NAME_BYTES_MAX: usize = 128;

/// Data of a call until its span is sent.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) trace: TraceContext,
    pub(super) started: Timestamp,
    pub(super) duration: Duration,
    pub(super) code: Option<Code>,
    is_known: bool,
    execution_id: Box<str>,
    tool: Box<str>,
    source: RecordSource,
    server: Option<Box<str>>,
    caller: Option<Box<str>>,
    session: Option<Box<str>>,
    queued: Duration,
}

/// The value of an attribute.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attribute<'a> {
    Text(&'a str),
    Number(u64),
}

/// OpenTelemetry's kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The work is done here.
    Internal,
    /// Another service is asked to do it.
    Client,
}

impl Span {
    pub(super) fn new(trace: TraceContext, call: &CallSummary<'_>) -> Self {
        let end = call.tool.floor_char_boundary(UNKNOWN_NAME_BYTES_MAX);
        let tool = if call.is_known { call.tool } else { &call.tool[..end] };
        Self {
            trace,
            started: call.started,
            // A span lasts from the request to the answer; `haft.queued_ms` is its part that was spent waiting.
            duration: call.queued + call.duration,
            code: call.code,
            is_known: call.is_known,
            execution_id: call.execution_id.into(),
            tool: tool.into(),
            source: call.source,
            server: call.server.map(Into::into),
            caller: call.caller.map(Into::into),
            session: call.session.map(Into::into),
            queued: call.queued,
        }
    }

    /// An unknown name is left out: collectors group by this one.
    pub(super) fn name(&self) -> String {
        if self.is_known {
            format!("execute_tool {}", self.tool)
        } else {
            "execute_tool".to_owned()
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self.source {
            RecordSource::Mcp => Kind::Client,
            RecordSource::Local
            | RecordSource::Builtin
            | RecordSource::Function
            | RecordSource::Unknown => Kind::Internal,
        }
    }

    /// Why the call failed, as a program reads it.
    pub(super) fn failure(&self) -> Option<String> {
        self.code.map(|code| format!("{code:?}"))
    }

    pub(super) fn attributes<'a>(
        &'a self,
        failure: Option<&'a str>,
    ) -> Vec<(&'static str, Attribute<'a>)> {
        use Attribute::{Number, Text};
        let queued_ms = u64::try_from(self.queued.as_millis()).unwrap_or(u64::MAX);
        let (source, kind) = match self.source {
            RecordSource::Local => ("local", "function"),
            RecordSource::Mcp => ("mcp", "extension"),
            RecordSource::Builtin => ("builtin", "function"),
            RecordSource::Function => ("function", "function"),
            RecordSource::Unknown => ("unknown", "function"),
        };
        let mut all = vec![
            ("gen_ai.operation.name", Text("execute_tool")),
            ("gen_ai.tool.name", Text(&self.tool)),
            ("gen_ai.tool.type", Text(kind)),
            ("haft.execution_id", Text(&self.execution_id)),
            ("haft.source", Text(source)),
            ("haft.outcome", Text(failure.unwrap_or("success"))),
            ("haft.queued_ms", Number(queued_ms)),
        ];
        if let Some(server) = &self.server {
            all.push(("mcp.method.name", Text("tools/call")));
            all.push(("haft.server", Text(server)));
        }
        let optional = [
            ("haft.caller", self.caller.as_deref()),
            ("session.id", self.session.as_deref()),
            ("error.type", failure),
        ];
        let given = optional.into_iter().filter_map(|(name, value)| Some((name, Text(value?))));
        all.extend(given);
        all
    }
}
