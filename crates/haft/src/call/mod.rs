//! The path of one call, read from the top:
//! `resolve -> authorize -> count -> validate input -> rules -> approve -> admit -> execute -> validate output -> record`.

mod answer;
mod batch;
mod cut;
mod flow;
mod inline_tool;
mod observe;
mod outcome;
mod record;
mod request;
mod rules;
mod running;
#[cfg(test)]
mod tests;
mod toolbox;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use haft_bounds::heavy::{self, LARGE_BYTES};
use haft_bounds::json::Budget;
use haft_bounds::parse_error::describe;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::call_limit::{LimitRefusal, LimitTable};
use crate::content::ToolOutput;
use crate::envelope::Envelope;
use crate::error::{CallError, ToolFailure, Violation};
use crate::human_input::HumanInbox;
use crate::json::Arguments;
use crate::memory::{self, MemoryBudget, OverBudget, Reservation, parsed_bytes};
use crate::outputs::OutputStore;
use crate::policy::{Admitted, Permission, Policy};
use crate::record::Clock;
use crate::registry::ActiveTool;
use crate::replica_number::ReplicaNumber;
use crate::session::Sessions;
use crate::tool::BoxFuture;
use crate::tool_filter::ToolFilter;
use haft_text::name::{self, NAME_BYTES_MAX};

pub use answer::CallAnswer;
use answer::ClosedCall;
pub use inline_tool::InlineTool;
pub use observe::CallSummary;
pub(crate) use observe::Observer;
use record::CallRecord;
pub use request::ToolCall;
pub(crate) use running::RunningCalls;
pub use running::{CallState, RunningCall};
pub(crate) use toolbox::{Toolbox, ToolboxParts};

/// Arguments are there as they came and as they are handed on, beside their parsed form.
const ARGUMENT_COPIES: usize = 2;
/// An answer is there as blocks and in the log's queue.
const ANSWER_COPIES: usize = 2;
/// Answers up to this size are not counted.
const FREE_BYTES: usize = 64 * 1024;

/// The state that all calls share, independent of the toolbox.
pub(crate) struct Calls {
    /// One token for each call in flight.
    pub(crate) tasks: TaskTracker,
    /// Ends every call.
    pub(crate) stop: CancellationToken,
    pub(crate) running: RunningCalls,
    pub(crate) memory: MemoryBudget,
    pub(crate) inbox: HumanInbox,
    outputs: OutputStore,
    sessions: Sessions,
    flows: flow::Flows,
    clock: Arc<dyn Clock>,
    observer: Option<Observer>,
    /// Rates and quotas.
    limits: Arc<LimitTable>,
    /// Named by the ids of calls.
    replica: ReplicaNumber,
}

/// Provides the toolbox in use, and makes it grow.
pub(crate) trait ToolboxSource: Send + Sync {
    fn current(&self) -> Arc<Toolbox>;

    /// Counts how often the toolbox was replaced.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Connects the servers whose tools are not known yet.
    fn discover(&self) -> BoxFuture<'_, ()>;

    /// Waits for the server of a tool that only an earlier run saw. `None` for other tools.
    fn confirm(&self, tool: &ActiveTool) -> Option<BoxFuture<'_, ()>>;

    /// The error of a tool that its server has and the lock file does not approve.
    fn unapproved(&self, tool: &str, tool_filter: &ToolFilter) -> Option<CallError>;

    /// Explains the absence of a tool that an earlier run saw: its server cannot be reached.
    fn unavailable(&self, tool: &str, tool_filter: &ToolFilter) -> Option<ToolFailure>;
}

impl Calls {
    pub(crate) fn new(
        memory: MemoryBudget,
        inbox: HumanInbox,
        outputs: OutputStore,
        clock: Arc<dyn Clock>,
        observer: Option<Observer>,
        limits: Arc<LimitTable>,
        replica: ReplicaNumber,
    ) -> Self {
        Self {
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            running: RunningCalls::default(),
            memory,
            inbox,
            outputs,
            sessions: Sessions::default(),
            flows: flow::Flows::default(),
            clock,
            observer,
            limits,
            replica,
        }
    }

    /// Runs one call to its end and records it, however it ends.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is not general over the lifetime of the closed call"
    )]
    pub(crate) fn run(
        &self,
        source: &dyn ToolboxSource,
        call: ToolCall,
    ) -> impl Future<Output = Envelope> {
        self.run_to(source, call, |closed| closed.envelope())
    }

    /// The same for a gateway.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is not general over the lifetime of the closed call"
    )]
    pub(crate) fn run_for_gateway(
        &self,
        source: &dyn ToolboxSource,
        call: ToolCall,
    ) -> impl Future<Output = CallAnswer> {
        self.run_to(source, call, |closed| closed.answer())
    }

    async fn run_to<T>(
        &self,
        source: &dyn ToolboxSource,
        call: ToolCall,
        answer: impl FnOnce(ClosedCall<'_>) -> T,
    ) -> T {
        // Token first, then the check: the other way round, `shutdown` could return between them.
        let _running = self.tasks.token();
        let toolbox = source.current();
        let call = Arc::new(self.restricted(call));
        let mut record = CallRecord::open(self, &toolbox, &call);
        let cancel = record.announced();
        // Held while the call waits for its turn and runs.
        let memory = self.reserve_arguments(&call);
        let outcome = match &memory {
            _ if self.tasks.is_closed() => Err(CallError::Stopping { tool: call.tool.clone() }),
            Err(over) => Err(no_memory(&call, over)),
            Ok(_) => tokio::select! {
                biased;
                outcome = self.path(source, &toolbox, &call, &mut record) => outcome,
                () = cancel.cancelled() => Err(CallError::Cancelled { tool: call.tool.clone() }),
                () = self.stop.cancelled() => Err(CallError::Stopping { tool: call.tool.clone() }),
            },
        };
        answer(record.close(outcome, toolbox.output_bytes_max, &self.outputs).await)
    }

    async fn path(
        &self,
        source: &dyn ToolboxSource,
        toolbox: &Arc<Toolbox>,
        call: &Arc<ToolCall>,
        record: &mut CallRecord<'_>,
    ) -> Result<(), CallError> {
        check_name(call)?;
        toolbox.require_log(&call.tool).await?;
        // The toolbox that has the tool also limits it: it may be newer than the one at the start.
        let (toolbox, tool) = resolve(source, toolbox, call).await?;
        let tool = &*tool;
        record.resolved(tool);
        tool.registered.check_definition()?;
        let required = tool.registered.effective.approval.value;
        let permission =
            Policy::authorize(tool.name(), required, call.approval, call.approval_hint)?;
        self.count(call, tool)?;
        let arguments = read_arguments(call, toolbox.nodes_max).await?;
        let complete = tool.registered.arguments.complete(&arguments);
        let complete = complete.map_err(|violations| invalid_input(tool, violations))?;
        check_input(tool, &complete).await?;
        let context = record.context();
        let asking =
            rules::apply(&toolbox, &self.flows, tool, call, (&arguments, &complete), record)?;
        if permission == Permission::AskPeople || asking.is_some() {
            // Rare, and large: other calls need not carry it. Fixed arguments are the operator's own and
            // may be secrets, so people see the caller's.
            let approving = self.inbox.approve(
                &tool.registered,
                &arguments,
                &context,
                asking,
                call.approval_hint,
            );
            Box::pin(approving).await?;
        }
        record.waiting();
        let admitted = toolbox.policy.admit(tool.limits(), &complete, &context).await?;
        record.admitted(admitted.waited());
        let deadline = Deadline::new(tool);
        let output = invoke(tool, &admitted, deadline).await;
        self.flows.read(&toolbox.labels, tool, call);
        let output = output?;
        let output = self.with_memory(call, output)?;
        let output = record.answered(output);
        let _parsed = self.memory_to_check(tool, call, output)?;
        check_output(tool, output, deadline, toolbox.nodes_max).await
    }

    /// The call with the limits of its owner, as they are now.
    fn restricted(&self, mut call: ToolCall) -> ToolCall {
        call.tool_filter.caller = self.limits.status(call.owner.as_deref());
        call
    }

    /// Counts the call against the rates and quotas of its caller, its server and its tool.
    fn count(&self, call: &ToolCall, tool: &ActiveTool) -> Result<(), CallError> {
        let caller = &call.tool_filter.caller;
        let counted = self.limits.count(call.owner.as_deref(), caller, &tool.call_limits);
        let tool = || tool.name().to_owned();
        counted.map_err(|refusal| match refusal {
            LimitRefusal::Reached(reached) => {
                CallError::RateLimited { tool: tool(), reached: Box::new(reached) }
            }
            LimitRefusal::Unknown(unknown) => CallError::QuotaUnknown {
                tool: tool(),
                path: unknown.path.display().to_string(),
                problem: unknown.problem,
            },
        })
    }

    fn reserve_arguments(&self, call: &ToolCall) -> Result<Option<Reservation>, OverBudget> {
        if !call.memory.is_empty() {
            return Ok(None);
        }
        self.memory.reserve(argument_bytes(call), call.memory_owner()).map(Some)
    }

    /// Reserves the memory of a long answer, unless its backend has.
    fn with_memory(&self, call: &ToolCall, output: ToolOutput) -> Result<ToolOutput, CallError> {
        let bytes = output.bytes();
        if bytes <= FREE_BYTES || !output.memory.is_empty() {
            return Ok(output);
        }
        let bytes = bytes.saturating_mul(ANSWER_COPIES);
        let reserved = self.memory.reserve(bytes, call.memory_owner());
        let memory = reserved.map_err(|over| no_memory_for_answer(call, &over))?.into();
        Ok(ToolOutput { memory, ..output })
    }

    /// Reserves the memory that a structured answer takes while it is checked against its schema.
    fn memory_to_check(
        &self,
        tool: &ActiveTool,
        call: &ToolCall,
        output: &ToolOutput,
    ) -> Result<Option<Reservation>, CallError> {
        let is_checked = tool.registered.output.is_some() && !output.is_error;
        let Some(data) =
            output.data.as_ref().filter(|data| is_checked && data.get().len() > FREE_BYTES)
        else {
            return Ok(None);
        };
        let bytes = parsed_bytes(data.get().as_bytes());
        let reserved = self.memory.reserve(bytes, call.memory_owner());
        reserved.map(Some).map_err(|over| no_memory_for_answer(call, &over))
    }
}

/// Finds the tool of a name, with the toolbox that has it. If the name is unknown, servers that start late are
/// connected, and the call waits until one of them has the tool or all have answered.
async fn resolve(
    source: &dyn ToolboxSource,
    toolbox: &Arc<Toolbox>,
    call: &ToolCall,
) -> Result<(Arc<Toolbox>, Arc<ActiveTool>), CallError> {
    if let Some(tool) = call.inline_tool.as_ref().and_then(|tool| toolbox.inline_tool(tool)) {
        return Ok((Arc::clone(toolbox), tool));
    }
    if let Some(tool) = toolbox.resolve(&call.tool) {
        let tool = call.tool_filter.check(tool)?;
        return match source.confirm(&tool) {
            Some(confirming) => confirmed(source, &tool, confirming, call).await,
            None => Ok((Arc::clone(toolbox), tool)),
        };
    }
    let mut changes = source.changes();
    let mut discovering = source.discover();
    loop {
        let is_done = tokio::select! {
            () = &mut discovering => true,
            replaced = changes.changed() => replaced.is_err(),
        };
        let toolbox = source.current();
        match toolbox.resolve(&call.tool) {
            Some(tool) => {
                let tool = call.tool_filter.check(tool)?;
                return Ok((toolbox, tool));
            }
            None if is_done => return Err(missing(source, &toolbox, call)),
            None => {}
        }
    }
}

/// Finds a tool again once its server was tried: its definition may have changed since the run that saw it, and a tool
/// that is gone is unknown.
async fn confirmed(
    source: &dyn ToolboxSource,
    tool: &ActiveTool,
    confirming: BoxFuture<'_, ()>,
    call: &ToolCall,
) -> Result<(Arc<Toolbox>, Arc<ActiveTool>), CallError> {
    let deadline = Deadline::new(tool);
    if tokio::time::timeout_at(deadline.at, confirming).await.is_err() {
        return Err(timed_out(tool, deadline));
    }
    let toolbox = source.current();
    match toolbox.resolve(&call.tool) {
        Some(tool) => {
            let tool = call.tool_filter.check(tool)?;
            Ok((toolbox, tool))
        }
        None => Err(missing(source, &toolbox, call)),
    }
}

/// A tool that earlier runs saw is unavailable, not unknown, while its server is down.
fn missing(source: &dyn ToolboxSource, toolbox: &Toolbox, call: &ToolCall) -> CallError {
    if let Some(error) = source.unapproved(&call.tool, &call.tool_filter) {
        return error;
    }
    let tool = call.tool.clone();
    match source.unavailable(&tool, &call.tool_filter) {
        Some(failure) => CallError::Failed { tool, failure: Box::new(failure) },
        None => CallError::UnknownTool { nearest: toolbox.nearest(&tool, &call.tool_filter), tool },
    }
}

/// The memory that the arguments of a call take: as they came, as they are handed on, and parsed.
fn argument_bytes(call: &ToolCall) -> usize {
    let text = call.arguments.as_str().as_bytes();
    text.len().saturating_mul(ARGUMENT_COPIES).saturating_add(parsed_bytes(text))
}

fn no_memory(call: &ToolCall, over: &OverBudget) -> CallError {
    CallError::Busy { tool: call.tool.clone(), reason: over.to_string(), setting: memory::SETTING }
}

fn no_memory_for_answer(call: &ToolCall, over: &OverBudget) -> CallError {
    let failure = ToolFailure::Unavailable {
        message: format!(
            "the answer of `{}` was dropped, though the tool has run: {over}",
            call.tool
        ),
        remedy: Some(format!("ask for less at once, or raise `{}`", memory::SETTING).into()),
        details: serde_json::json!({ "setting": memory::SETTING }),
    };
    CallError::Failed { tool: call.tool.clone(), failure: Box::new(failure) }
}

/// Refuses names that no tool has before they are compared with any.
fn check_name(call: &ToolCall) -> Result<(), CallError> {
    let bytes = call.tool.len();
    if bytes <= NAME_BYTES_MAX {
        return Ok(());
    }
    Err(CallError::LongName { tool: name::shown(&call.tool).into_owned(), bytes })
}

async fn read_arguments(call: &Arc<ToolCall>, nodes_max: usize) -> Result<Arguments, CallError> {
    let bytes = call.arguments.as_str().len();
    let parsed = if bytes <= LARGE_BYTES {
        Arguments::of_call(&call.arguments, nodes_max)
    } else {
        let owned = Arc::clone(call);
        let parse = move || Arguments::of_call(&owned.arguments, nodes_max);
        heavy::run(bytes, parse).await
    };
    parsed.map_err(|problem| CallError::UnreadableInput { tool: call.tool.clone(), problem })
}

async fn check_input(tool: &ActiveTool, arguments: &Arguments) -> Result<(), CallError> {
    let schema = &tool.registered.input;
    let check = schema.check_bounded(arguments.value(), arguments.raw().get().len()).await;
    check.map_err(|violations| invalid_input(tool, violations))
}

fn invalid_input(tool: &ActiveTool, violations: Vec<Violation>) -> CallError {
    CallError::InvalidInput { tool: tool.name().to_owned(), violations }
}

/// The deadline of a call: its timeout, counted from the time it got its slot.
#[derive(Clone, Copy)]
struct Deadline {
    after: Duration,
    started: Instant,
    at: tokio::time::Instant,
}

impl Deadline {
    fn new(tool: &ActiveTool) -> Self {
        let after = tool.registered.effective.timeout.value;
        let now = tokio::time::Instant::now();
        // A timeout of very many years is none.
        let at = now.checked_add(after).unwrap_or(now + Duration::from_hours(24 * 365));
        Self { after, started: Instant::now(), at }
    }
}

/// Runs the tool under its timeout. Dropping its future, as the timeout does, ends its work.
async fn invoke(
    tool: &ActiveTool,
    admitted: &Admitted<'_>,
    deadline: Deadline,
) -> Result<ToolOutput, CallError> {
    let Deadline { after, started, at } = deadline;
    let result = tokio::time::timeout_at(at, Work::start(tool, admitted)).await;
    let name = || tool.name().to_owned();
    match result {
        // A tool that blocks its thread answers when it likes; too late is too late.
        Ok(_) if started.elapsed() > after => Err(timed_out(tool, deadline)),
        Ok(result) => {
            result.map_err(|failure| CallError::Failed { tool: name(), failure: Box::new(failure) })
        }
        Err(_) => Err(timed_out(tool, deadline)),
    }
}

fn timed_out(tool: &ActiveTool, deadline: Deadline) -> CallError {
    let server = tool.registered.source.server().map(ToOwned::to_owned);
    // A tool of an embedding program may panic here as well.
    let diagnosis = catch_unwind(AssertUnwindSafe(|| tool.backend.diagnose(deadline.started)));
    let diagnosis = diagnosis.unwrap_or(None);
    CallError::Timeout { tool: tool.name().to_owned(), after: deadline.after, server, diagnosis }
}

/// A tool's future. One that panics, when it starts, runs or is dropped, fails its own call only.
struct Work<'a>(Option<BoxFuture<'a, Result<ToolOutput, ToolFailure>>>);

impl<'a> Work<'a> {
    fn start(tool: &'a ActiveTool, admitted: &'a Admitted<'_>) -> Self {
        Self(catch_unwind(AssertUnwindSafe(|| tool.backend.invoke(admitted))).ok())
    }
}

impl Future for Work<'_> {
    type Output = Result<ToolOutput, ToolFailure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.0 else {
            return Poll::Ready(Err(ToolFailure::execution("the tool panicked")));
        };
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
            Ok(poll) => poll,
            Err(_) => Poll::Ready(Err(ToolFailure::execution("the tool panicked"))),
        }
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        let work = self.0.take();
        if catch_unwind(AssertUnwindSafe(|| drop(work))).is_err() {
            tracing::error!("a tool panicked while its work was being ended");
        }
    }
}

/// A tool with an output schema must match it, unless it reports failure. The check is part of the
/// call, so its timeout applies.
async fn check_output(
    tool: &ActiveTool,
    output: &ToolOutput,
    deadline: Deadline,
    nodes_max: usize,
) -> Result<(), CallError> {
    let Some(schema) = tool.registered.output.as_ref().filter(|_| !output.is_error) else {
        return Ok(());
    };
    let violation = |problem: String| vec![Violation { pointer: String::new(), problem }];
    let check = async {
        let Some(data) = &output.data else {
            return Err(violation("there is no structured answer".to_owned()));
        };
        let value = read_output(data, nodes_max).await.map_err(violation)?;
        schema.check_bounded(&value, data.get().len()).await
    };
    match tokio::time::timeout_at(deadline.at, check).await {
        Ok(checked) => checked.map_err(|violations| CallError::InvalidOutput {
            tool: tool.name().to_owned(),
            violations,
        }),
        Err(_) => Err(timed_out(tool, deadline)),
    }
}

async fn read_output(data: &RawValue, nodes_max: usize) -> Result<Value, String> {
    let read = move |data: &RawValue| {
        let budget = Budget::nodes(nodes_max);
        budget.check(data.get().as_bytes()).map_err(|excess| format!("it has {excess}"))?;
        serde_json::from_str(data.get()).map_err(|error| describe(&error))
    };
    if data.get().len() <= LARGE_BYTES {
        return read(data);
    }
    let owned = data.to_owned();
    heavy::run(data.get().len(), move || read(&owned)).await
}
