//! The guard around one call that leaves exactly one log entry, however the call ends.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_bounds::heavy;
use jiff::Timestamp;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::ClosedCall;
use super::observe::{CallSummary, Observer};
use super::outcome::{outcomes, said_error};
use super::running::RunningCallGuard;
use super::{Calls, ToolCall, Toolbox};
use crate::call_limit::LimitTable;
use crate::content::ToolOutput;
use crate::context::{CallContext, PrintedText};
use crate::envelope::{ErrorBody, Status};
use crate::error::{CallError, Code, MCP_ERROR, mask, millis};
use crate::outputs::OutputStore;
use crate::policy::PolicyDecision;
use crate::progress::told;
use crate::record::{Entry, ExecutionLog, Line, RecordSource};
use crate::registry::{self, ActiveTool};
use crate::trace::TraceContext;
use haft_text::name;

/// One call in flight. Dropped before it is closed, it records that the caller cancelled.
pub(crate) struct CallRecord<'a> {
    log: Option<&'a ExecutionLog>,
    /// The calls in flight.
    tasks: &'a TaskTracker,
    /// True if the log keeps the user's request.
    keeps_request: bool,
    observer: Option<&'a Observer>,
    /// The log quotas of callers.
    limits: &'a LimitTable,
    pub(super) call: &'a ToolCall,
    /// The requested name, truncated if it is too long.
    pub(super) tool: Cow<'a, str>,
    pub(super) context: Arc<CallContext>,
    /// The call's entry among those in flight.
    underway: Option<RunningCallGuard<'a>>,
    /// The arguments as they came; what is not JSON is kept as a JSON string.
    input: Cow<'a, RawValue>,
    started: Instant,
    timestamp: Timestamp,
    source: RecordSource,
    server: Option<String>,
    pub(super) queued: Duration,
    /// The time since which it waits for its slots.
    waiting_since: Option<Instant>,
    /// True if the tool was started.
    is_started: bool,
    output: Option<ToolOutput>,
    /// The text that the tool printed.
    pub(super) stdout: Option<String>,
    /// The decision of a rule.
    decision: Option<PolicyDecision>,
    is_closed: bool,
}

impl<'a> CallRecord<'a> {
    /// Opens the record; the time starts here.
    pub(crate) fn open(calls: &'a Calls, toolbox: &'a Toolbox, call: &'a Arc<ToolCall>) -> Self {
        let id = calls.replica.new_id();
        let timestamp = calls.clock.now();
        let context = CallContext {
            execution_id: id.to_string(),
            caller: call.caller.clone(),
            owner: call.owner.clone(),
            session: call.session.clone(),
            state: calls.sessions.state(call.session.as_deref()),
            trace: call.trace.clone(),
            reporter: call.listeners.reporter(),
            caller_handle: call.caller_handle.clone(),
            printed: PrintedText::default(),
            reader: call.reader.clone(),
        };
        Self {
            log: toolbox.log.as_ref(),
            tasks: &calls.tasks,
            keeps_request: toolbox.config.log.requests.value,
            observer: calls.observer.as_ref(),
            limits: &calls.limits,
            call,
            tool: name::shown(&call.tool),
            context: Arc::new(context),
            underway: Some(calls.running.enter(id, call, timestamp)),
            input: heavy::in_place(call.arguments.as_str().len(), || call.arguments.as_json()),
            started: Instant::now(),
            timestamp,
            source: RecordSource::Unknown,
            server: None,
            queued: Duration::ZERO,
            waiting_since: None,
            is_started: false,
            output: None,
            stdout: None,
            decision: None,
            is_closed: false,
        }
    }

    /// Notifies the listener that the call is in flight. Returns its cancellation token.
    pub(crate) fn announced(&self) -> CancellationToken {
        self.call.listeners.started(&self.context.execution_id);
        self.underway.as_ref().map(RunningCallGuard::cancel).unwrap_or_default()
    }

    /// The context of the call.
    pub(crate) fn context(&self) -> Arc<CallContext> {
        Arc::clone(&self.context)
    }

    /// The tool is known now.
    pub(crate) fn resolved(&mut self, tool: &ActiveTool) {
        self.source = tool.kind;
        if let registry::ToolSource::Mcp { mcp_name, .. } = &tool.registered.source {
            self.server = Some(mcp_name.clone());
        }
    }

    /// A rule decided on the call.
    pub(crate) fn decided(&mut self, decision: PolicyDecision) {
        self.decision = Some(decision);
    }

    /// The call waits for its slots from now on.
    pub(crate) fn waiting(&mut self) {
        self.waiting_since = Some(Instant::now());
    }

    /// The call got its slots.
    pub(crate) fn admitted(&mut self, waited: Duration) {
        self.waiting_since = None;
        self.queued = waited;
        self.is_started = true;
        if let Some(underway) = &self.underway {
            underway.admitted();
        }
    }

    /// The tool answered. The log keeps the answer even if its schema refuses it.
    pub(crate) fn answered(&mut self, output: ToolOutput) -> &ToolOutput {
        self.output.insert(output)
    }

    /// Writes the entry and waits until it has reached the operating system.
    pub(super) async fn close(
        mut self,
        outcome: Result<(), CallError>,
        output_bytes_max: usize,
        outputs: &'a OutputStore,
    ) -> ClosedCall<'a> {
        self.leave();
        self.stdout = self.context.printed.take();
        let failed = self.output.as_ref().filter(|output| output.is_error);
        let error = match &outcome {
            Ok(()) => failed.map(said_error),
            Err(error) => Some(ErrorBody::from(error)),
        };
        let error = error.map(|error| self.without_secrets(self.for_a_model(error)));
        let duration = self.duration();
        let written = self.log.map(|log| {
            let entry = self.entry(error.as_ref(), duration);
            let line = heavy::in_place(self.bytes(), || self.line(log, &entry));
            log.append_among(line, self.tasks.len())
        });
        self.is_closed = true;
        self.observed(error.as_ref(), duration);
        let unlogged = match written {
            Some(written) => written.await.err().map(|error| {
                format!("this call is not in the execution log yet: {}", error.problem())
            }),
            None => None,
        };
        // An answer that was refused stays in the log.
        let output = self.output.take().filter(|_| outcome.is_ok()).unwrap_or_default();
        ClosedCall { record: self, output, error, unlogged, duration, output_bytes_max, outputs }
    }

    /// The line of the entry, without arguments and answer if the caller's log quota has no room for them.
    fn line(&self, log: &ExecutionLog, entry: &Entry<'_>) -> Line {
        let line = log.line(entry);
        let (owner, caller) = (self.call.owner.as_deref(), &self.call.tool_filter.caller);
        match self.limits.count_log_entry(owner, caller, line.bytes()) {
            Ok(()) => line,
            Err(reason) => {
                line.recycle();
                log.line_without_content(entry, &reason)
            }
        }
    }

    /// A text without known secrets.
    pub(super) fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.log.map_or(Cow::Borrowed(text), |log| log.redactor().text(text))
    }

    /// About how much the log entry holds.
    fn bytes(&self) -> usize {
        let output = self.output.as_ref().map_or(0, |output| {
            let raw = |raw: &Option<Box<RawValue>>| raw.as_ref().map_or(0, |raw| raw.get().len());
            // The content is a part of what a server answered.
            raw(&output.raw) + raw(&output.data)
        });
        self.input.get().len() + output
    }

    /// Duration of the call, without the time it waited for its slots. A call that ended while it
    /// waited has waited until now.
    fn duration(&mut self) -> Duration {
        if let Some(since) = self.waiting_since.take() {
            self.queued = since.elapsed();
        }
        self.started.elapsed().saturating_sub(self.queued)
    }

    /// The call is over: it can no longer be cancelled, and its progress is no longer reported.
    fn leave(&mut self) {
        self.underway = None;
        self.context.reporter.close();
    }

    fn observed(&self, error: Option<&ErrorBody>, duration: Duration) {
        let Some(observer) = self.observer else { return };
        // The caller wrote these; names of known tools are the toolbox's own.
        let masked = |text| self.log.map_or(Cow::Borrowed(text), |it| it.redactor().text(text));
        let is_known = self.source != RecordSource::Unknown;
        let tool = &*self.tool;
        let tool = if is_known { Cow::Borrowed(tool) } else { masked(tool) };
        let session = self.call.session.as_deref().map(masked);
        let summary = CallSummary {
            execution_id: &self.context.execution_id,
            tool: &tool,
            is_known,
            source: self.source,
            server: self.server.as_deref(),
            caller: self.call.caller.as_deref(),
            session: session.as_deref(),
            started: self.timestamp,
            queued: self.queued,
            duration,
            status: status(error),
            code: error.map(|error| error.code),
            trace: self.call.trace.as_ref(),
        };
        told("the observer of calls", || observer(&summary));
    }

    /// Marks a failure of an MCP server, to distinguish it from a failure of its tool.
    fn for_a_model(&self, error: ErrorBody) -> ErrorBody {
        match (self.source, error.code) {
            (RecordSource::Mcp, Code::Timeout) => {
                ErrorBody { message: format!("{MCP_ERROR}{}", error.message), ..error }
            }
            _ => error,
        }
    }

    /// An error goes to the caller and on to a model, and may quote a command or what it printed.
    fn without_secrets(&self, error: ErrorBody) -> ErrorBody {
        let Some(redactor) = self.log.map(ExecutionLog::redactor) else { return error };
        let ErrorBody { code, message, remedy, mut details, stage, mut rpc } = error;
        mask(&mut details, redactor);
        if let Some(rpc) = &mut rpc {
            rpc.mask(redactor);
        }
        ErrorBody {
            code,
            message: redactor.text(&message).into_owned(),
            remedy: remedy.map(|remedy| remedy.without_secrets(redactor)),
            details,
            stage,
            rpc,
        }
    }

    fn entry<'e>(&'e self, error: Option<&'e ErrorBody>, duration: Duration) -> Entry<'e> {
        let output = self.output.as_ref();
        Entry {
            execution_id: &self.context.execution_id,
            timestamp: self.timestamp,
            tool: &self.tool,
            source: self.source,
            server: self.server.as_deref(),
            caller: self.call.caller.as_deref(),
            session: self.call.session.as_deref(),
            request: self.call.user_request.as_deref().filter(|_| self.keeps_request),
            trace_id: self.call.trace.as_ref().map(TraceContext::trace_id),
            input: &self.input,
            started: self.is_started,
            data: output.and_then(|output| output.data.as_deref()),
            content: output.map_or(&[], |output| &output.content),
            raw: output.filter(|output| output.is_partial).and_then(|it| it.raw.as_deref()),
            stdout: self.stdout.as_deref(),
            error,
            policy: self.decision.as_ref(),
            status: status(error),
            outcome: outcomes(error, self.source, output.is_some()),
            queued_ms: millis(self.queued),
            duration_ms: millis(duration),
        }
    }
}

impl Drop for CallRecord<'_> {
    fn drop(&mut self) {
        if self.is_closed {
            return;
        }
        self.leave();
        let error = ErrorBody::from(&CallError::Cancelled { tool: self.call.tool.clone() });
        let duration = self.duration();
        if let Some(log) = self.log {
            let entry = self.entry(Some(&error), duration);
            log.append_line_detached(heavy::in_place(self.bytes(), || self.line(log, &entry)));
        }
        self.observed(Some(&error), duration);
    }
}

pub(super) fn status(error: Option<&ErrorBody>) -> Status {
    if error.is_some() { Status::Error } else { Status::Success }
}
