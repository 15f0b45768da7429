//! The path of one call, read from the top:
//! `resolve -> authorize -> validate input -> approve -> admit -> execute -> validate output -> record`.

use haft_bounds::parse_error::describe;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use haft_bounds::heavy::{self, LARGE_BYTES};
use haft_bounds::json::Budget;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::content::ToolOutput;
use crate::envelope::Envelope;
use crate::error::{CallError, ToolFailure, Violation};
use crate::json::Arguments;
use crate::memory::{self, Held, OverBudget, Owner, Reservation, parsed_bytes};
use crate::name::{self, NAME_BYTES_MAX};
use crate::policy::{Admitted, Permission, Policy};
use crate::progress::{Listeners, Progress};
use crate::requester::{Behind, Requester};
use crate::runtime::{CallRecord, Inner, Offered, Snapshot};
use crate::sight::Sight;
use crate::tool::BoxFuture;
#[cfg(feature = "agent")]
use crate::tool::Tool;
use crate::trace::TraceContext;

/// How to agree at a terminal, where most calls without an agreement are made.
pub(crate) const HOW_TO_AGREE: &str = "agree to it (`haft call --yes`)";

/// Arguments are there as they came and as they are handed on, beside their parsed form.
const ARGUMENT_COPIES: usize = 2;
/// An answer is there as blocks and in the log's queue.
const ANSWER_COPIES: usize = 2;
/// Answers up to this size are not counted.
const FREE_BYTES: usize = 64 * 1024;

/// A request to run a tool.
#[derive(Debug, Clone)]
pub struct ToolCall {
    pub(crate) tool: String,
    pub(crate) arguments: String,
    pub(crate) caller: Option<String>,
    pub(crate) owner: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) request: Option<String>,
    pub(crate) approval: CallApproval,
    /// What to do where that is missing.
    pub(crate) how_to_agree: &'static str,
    /// Nothing where nobody outside may end the call.
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) listeners: Listeners,
    pub(crate) requester: Behind,
    pub(crate) sight: Sight,
    /// The memory of the arguments, where whoever read them has reserved it.
    pub(crate) memory: Held,
    /// A tool that comes with the call.
    #[cfg(feature = "agent")]
    pub(crate) brought: Brought,
}

/// Whether a person agreed to the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CallApproval {
    /// Nobody did.
    #[default]
    Missing,
    /// Nobody did; who can be asked is asked.
    AskPeople,
    /// Somebody did.
    Given,
}

impl ToolCall {
    /// Calls `tool` with anything that serializes to a JSON object.
    pub fn new(tool: impl Into<String>, arguments: &impl Serialize) -> Self {
        // What does not serialize becomes text that is refused, with its reason, on the call path.
        let text = serde_json::to_string(arguments).unwrap_or_else(|error| error.to_string());
        Self::from_text(tool, text)
    }

    /// Calls `tool` with arguments that are JSON text already, which reach the tool as they are.
    pub fn from_text(tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            tool: tool.into(),
            arguments: arguments.into(),
            caller: None,
            owner: None,
            session: None,
            request: None,
            approval: CallApproval::default(),
            how_to_agree: HOW_TO_AGREE,
            cancel: None,
            trace: None,
            listeners: Listeners::default(),
            requester: Behind::default(),
            sight: Sight::default(),
            memory: Held::default(),
            #[cfg(feature = "agent")]
            brought: Brought::default(),
        }
    }

    /// Says who calls; the log keeps it.
    #[must_use]
    pub fn caller(mut self, caller: impl Into<String>) -> Self {
        self.caller = Some(caller.into());
        self
    }

    /// Says whose the call is, where a caller's name may pass on to somebody else. An agreement for good holds for
    /// them.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Says which session or run the call belongs to; the log keeps it.
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Says what a person asked for, in their words. The log keeps it only where `log.requests` is on.
    #[must_use]
    pub fn request(mut self, request: impl Into<String>) -> Self {
        self.request = Some(request.into());
        self
    }

    /// Says that a person agreed, for a tool with `approval: ask`.
    #[must_use]
    pub fn approved(mut self) -> Self {
        self.approval = CallApproval::Given;
        self
    }

    /// Asks a person in the [inbox](crate::inbox) to agree, where the tool has `approval: ask` and nobody said
    /// that they did. The call waits for the answer before anything else, and takes no slot meanwhile.
    #[must_use]
    pub fn asking_people(mut self) -> Self {
        if self.approval == CallApproval::Missing {
            self.approval = CallApproval::AskPeople;
        }
        self
    }

    /// Says how this caller can have a tool with `approval: ask` run, for the remedy where nobody agreed.
    #[must_use]
    pub fn how_to_agree(mut self, how: &'static str) -> Self {
        self.how_to_agree = how;
        self
    }

    /// Lets `cancel` end the call, also while it waits. Dropping the call's future does the same.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: CancellationToken) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Says which trace the call belongs to. It travels with the call, to MCP servers too, and the
    /// log keeps its id.
    #[must_use]
    pub fn trace_context(mut self, trace: TraceContext) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Hides every tool from the caller that `shows` does not let through, by its server (none for a
    /// local one) and its name. A call of a hidden one ends and is recorded as that of an unknown tool.
    #[must_use]
    pub fn seeing(
        mut self,
        shows: impl Fn(Option<&str>, &str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.sight = Sight(Some(Arc::new(shows)));
        self
    }

    /// Brings the memory of the arguments, reserved before they were read. Without it the call reserves its own.
    #[must_use]
    pub fn with_memory(mut self, memory: Held) -> Self {
        self.memory = memory;
        self
    }

    /// Whose share of the memory the call takes.
    fn memory_owner(&self) -> Owner<'_> {
        Owner::Caller(self.caller.as_deref())
    }

    /// Runs a tool that is not in the toolbox, under the name the call has, with the limits, checks and log
    /// entry of every other.
    #[cfg(feature = "agent")]
    #[must_use]
    pub(crate) fn running(mut self, tool: Arc<dyn Tool>) -> Self {
        self.brought = Brought(Some(tool));
        self
    }

    /// Says who can be asked and told something by the tool's server while it works on the call.
    #[must_use]
    pub fn on_behalf_of(mut self, requester: Arc<dyn Requester>) -> Self {
        self.requester = Behind(Some(requester));
        self
    }

    /// Tells the call's execution id as soon as there is one, before anything else happens. From
    /// then on [`Runtime::cancel`](crate::Runtime::cancel) knows it. `listener` must return at once.
    #[must_use]
    pub fn on_start(mut self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.listeners.start = Some(Arc::new(listener));
        self
    }

    /// Tells how far the call is, as often as its tool says so: in order, and never after the call
    /// has ended. `listener` must return at once.
    #[must_use]
    pub fn on_progress(mut self, listener: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.listeners.progress = Some(Arc::new(listener));
        self
    }
}

/// A tool that comes with its call.
#[cfg(feature = "agent")]
#[derive(Clone, Default)]
pub(crate) struct Brought(Option<Arc<dyn Tool>>);

#[cfg(feature = "agent")]
impl std::fmt::Debug for Brought {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Brought").field(&self.0.is_some()).finish()
    }
}

impl Inner {
    /// Runs one call to its end and records it, however it ends.
    pub(crate) async fn call(&self, call: ToolCall) -> Envelope {
        self.call_raw(call).await.0
    }

    /// The same, with what an MCP server answered as it wrote it.
    pub(crate) async fn call_raw(&self, call: ToolCall) -> (Envelope, Option<Box<RawValue>>) {
        // Token first, then the check: the other way round, `shutdown` could return between them.
        let _running = self.tasks.token();
        let snapshot = self.snapshot.load_full();
        let call = Arc::new(call);
        let mut record = CallRecord::open(self, &snapshot, &call);
        let cancel = record.announced();
        // Held while the call waits for its turn and runs.
        let memory = self.reserve_arguments(&call);
        let outcome = match &memory {
            _ if self.tasks.is_closed() => Err(CallError::Stopping { tool: call.tool.clone() }),
            Err(over) => Err(no_memory(&call, over)),
            Ok(_) => tokio::select! {
                biased;
                outcome = self.path(&snapshot, &call, &mut record) => outcome,
                () = cancel.cancelled() => Err(CallError::Cancelled { tool: call.tool.clone() }),
                () = self.stop.cancelled() => Err(CallError::Stopping { tool: call.tool.clone() }),
            },
        };
        record.close(outcome, snapshot.output_bytes_max).await
    }

    async fn path(
        &self,
        snapshot: &Snapshot,
        call: &Arc<ToolCall>,
        record: &mut CallRecord<'_>,
    ) -> Result<(), CallError> {
        check_name(call)?;
        snapshot.require_log(&call.tool).await?;
        let tool = &*self.resolve(snapshot, call).await?;
        record.resolved(tool);
        let permission = Policy::authorize(&tool.registered, call)?;
        let arguments = read_arguments(call, snapshot.nodes_max).await?;
        check_input(tool, &arguments).await?;
        let context = record.context();
        if permission == Permission::AskPeople {
            // Rare, and large: other calls need not carry it.
            Box::pin(self.inbox().approve(&tool.registered, &arguments, &context)).await?;
        }
        record.waiting();
        let admitted = snapshot.policy.admit(tool, &arguments, &context).await?;
        record.admitted(admitted.waited());
        let deadline = Deadline::new(tool);
        let output = invoke(tool, &admitted, deadline).await?;
        let output = self.with_memory(call, output)?;
        let output = record.answered(output);
        let _parsed = self.memory_to_check(tool, call, output)?;
        check_output(tool, output, deadline, snapshot).await
    }

    fn reserve_arguments(&self, call: &ToolCall) -> Result<Option<Reservation>, OverBudget> {
        if !call.memory.is_empty() {
            return Ok(None);
        }
        self.memory().reserve(argument_bytes(call), call.memory_owner()).map(Some)
    }

    /// Reserves the memory of a long answer, unless its backend has.
    fn with_memory(&self, call: &ToolCall, output: ToolOutput) -> Result<ToolOutput, CallError> {
        let bytes = output.bytes();
        if bytes <= FREE_BYTES || !output.memory.is_empty() {
            return Ok(output);
        }
        let bytes = bytes.saturating_mul(ANSWER_COPIES);
        let reserved = self.memory().reserve(bytes, call.memory_owner());
        let memory = reserved.map_err(|over| no_memory_for_answer(call, &over))?.into();
        Ok(ToolOutput { memory, ..output })
    }

    /// Reserves the memory that a structured answer takes while it is checked against its schema.
    fn memory_to_check(
        &self,
        tool: &Offered,
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
        let reserved = self.memory().reserve(bytes, call.memory_owner());
        reserved.map(Some).map_err(|over| no_memory_for_answer(call, &over))
    }

    /// The tool of a name. A server that starts late may be the one that has it; it is waited for, and
    /// not the others.
    async fn resolve(
        &self,
        snapshot: &Snapshot,
        call: &ToolCall,
    ) -> Result<Arc<Offered>, CallError> {
        #[cfg(feature = "agent")]
        if let Some(tool) = call.brought.0.as_ref().and_then(|tool| snapshot.adopt(tool)) {
            return Ok(tool);
        }
        if let Some(tool) = snapshot.resolve(&call.tool) {
            return call.sight.of(tool);
        }
        let mut changes = self.changes.subscribe();
        let mut discovering = std::pin::pin!(self.discover());
        loop {
            let is_done = tokio::select! {
                _ = &mut discovering => true,
                replaced = changes.changed() => replaced.is_err(),
            };
            let snapshot = self.snapshot.load();
            match snapshot.resolve(&call.tool) {
                Some(tool) => return call.sight.of(tool),
                None if is_done => return Err(snapshot.missing(&call.tool, &call.sight)),
                None => {}
            }
        }
    }
}

/// The memory that the arguments of a call take: as they came, as they are handed on, and parsed.
fn argument_bytes(call: &ToolCall) -> usize {
    let text = call.arguments.as_bytes();
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
        remedy: Some(format!("ask for less at once, or raise `{}`", memory::SETTING)),
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
    let parsed = if call.arguments.len() <= LARGE_BYTES {
        Arguments::parse_within(&call.arguments, nodes_max)
    } else {
        let owned = Arc::clone(call);
        let parse = move || Arguments::parse_within(&owned.arguments, nodes_max);
        heavy::run(call.arguments.len(), parse).await
    };
    parsed.map_err(|problem| CallError::UnreadableInput { tool: call.tool.clone(), problem })
}

async fn check_input(tool: &Offered, arguments: &Arguments) -> Result<(), CallError> {
    let schema = &tool.registered.input;
    let check = schema.check_bounded(arguments.value(), arguments.raw().get().len()).await;
    check.map_err(|violations| CallError::InvalidInput { tool: tool.name().to_owned(), violations })
}

/// When a call must be over: its timeout, counted from when it got its slot.
#[derive(Clone, Copy)]
struct Deadline {
    after: Duration,
    started: Instant,
    at: tokio::time::Instant,
}

impl Deadline {
    fn new(tool: &Offered) -> Self {
        let after = tool.registered.effective.timeout.value;
        let now = tokio::time::Instant::now();
        // A timeout of very many years is none.
        let at = now.checked_add(after).unwrap_or(now + Duration::from_hours(24 * 365));
        Self { after, started: Instant::now(), at }
    }
}

/// Runs the tool under its timeout. Dropping its future, as the timeout does, ends its work.
async fn invoke(
    tool: &Offered,
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

fn timed_out(tool: &Offered, deadline: Deadline) -> CallError {
    let server = tool.registered.source.server().map(ToOwned::to_owned);
    // A tool of an embedding program may panic here as well.
    let diagnosis = catch_unwind(AssertUnwindSafe(|| tool.backend.diagnose(deadline.started)));
    let diagnosis = diagnosis.unwrap_or(None);
    CallError::Timeout { tool: tool.name().to_owned(), after: deadline.after, server, diagnosis }
}

/// A tool's future. One that panics, when it starts, runs or is dropped, fails its own call only.
struct Work<'a>(Option<BoxFuture<'a, Result<ToolOutput, ToolFailure>>>);

impl<'a> Work<'a> {
    fn start(tool: &'a Offered, admitted: &'a Admitted<'_>) -> Self {
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

/// A tool that promises a structured answer keeps to it, unless it says that it failed. Checking it counts as a part of
/// the call, so its timeout holds.
async fn check_output(
    tool: &Offered,
    output: &ToolOutput,
    deadline: Deadline,
    snapshot: &Snapshot,
) -> Result<(), CallError> {
    let Some(schema) = tool.registered.output.as_ref().filter(|_| !output.is_error) else {
        return Ok(());
    };
    let violation = |problem: String| vec![Violation { pointer: String::new(), problem }];
    let nodes_max = snapshot.nodes_max;
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
