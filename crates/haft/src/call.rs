//! The path of one call, read from the top:
//! `resolve -> authorize -> validate input -> approve -> admit -> execute -> validate output -> record`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::content::ToolOutput;
use crate::envelope::Envelope;
use crate::error::{CallError, ToolFailure, Violation};
use crate::json::Arguments;
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
        let outcome = if self.tasks.is_closed() {
            Err(CallError::Stopping { tool: call.tool.clone() })
        } else {
            tokio::select! {
                biased;
                outcome = self.path(&snapshot, &call, &mut record) => outcome,
                () = cancel.cancelled() => Err(CallError::Cancelled { tool: call.tool.clone() }),
                () = self.stop.cancelled() => Err(CallError::Stopping { tool: call.tool.clone() }),
            }
        };
        record.close(outcome, snapshot.output_bytes_max).await
    }

    async fn path(
        &self,
        snapshot: &Snapshot,
        call: &ToolCall,
        record: &mut CallRecord<'_>,
    ) -> Result<(), CallError> {
        snapshot.require_log(&call.tool)?;
        let tool = &*self.resolve(snapshot, call).await?;
        record.resolved(tool);
        let permission = Policy::authorize(&tool.registered, call)?;
        let arguments = read_arguments(call)?;
        check_input(tool, &arguments).await?;
        let context = record.context();
        if permission == Permission::AskPeople {
            // Rare, and large: other calls need not carry it.
            Box::pin(self.inbox().approve(&tool.registered, &arguments, &context)).await?;
        }
        let admitted = snapshot.policy.admit(tool, &arguments, &context).await?;
        record.admitted(admitted.waited());
        let output = invoke(tool, &admitted).await?;
        check_output(tool, record.answered(output)).await
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
        if let Ok(tool) = snapshot.resolve(&call.tool) {
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
                Ok(tool) => return call.sight.of(tool),
                Err(unknown) if is_done => {
                    return Err(snapshot.missing(&call.tool, unknown, &call.sight));
                }
                Err(_) => {}
            }
        }
    }
}

fn read_arguments(call: &ToolCall) -> Result<Arguments, CallError> {
    Arguments::parse(&call.arguments)
        .map_err(|problem| CallError::UnreadableInput { tool: call.tool.clone(), problem })
}

async fn check_input(tool: &Offered, arguments: &Arguments) -> Result<(), CallError> {
    let schema = &tool.registered.input;
    let check = schema.check_bounded(arguments.value(), arguments.raw().get().len()).await;
    check.map_err(|violations| CallError::InvalidInput { tool: tool.name().to_owned(), violations })
}

/// Runs the tool under its timeout. Dropping its future, as the timeout does, ends its work.
async fn invoke(tool: &Offered, admitted: &Admitted<'_>) -> Result<ToolOutput, CallError> {
    let after = tool.registered.effective.timeout.value;
    let started = Instant::now();
    let result = tokio::time::timeout(after, Work::start(tool, admitted)).await;
    let name = || tool.name().to_owned();
    match result {
        // A tool that blocks its thread answers when it likes; too late is too late.
        Ok(_) if started.elapsed() > after => Err(timed_out(tool, after)),
        Ok(result) => {
            result.map_err(|failure| CallError::Failed { tool: name(), failure: Box::new(failure) })
        }
        Err(_) => Err(timed_out(tool, after)),
    }
}

fn timed_out(tool: &Offered, after: Duration) -> CallError {
    let server = tool.registered.source.server().map(ToOwned::to_owned);
    CallError::Timeout { tool: tool.name().to_owned(), after, server }
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

/// A tool that promises a structured answer keeps to it, unless it says that it failed.
async fn check_output(tool: &Offered, output: &ToolOutput) -> Result<(), CallError> {
    let Some(schema) = tool.registered.output.as_ref().filter(|_| !output.is_error) else {
        return Ok(());
    };
    let violations = match &output.data {
        None => Err(vec![Violation {
            pointer: String::new(),
            problem: "there is no structured answer".into(),
        }]),
        Some(data) => match serde_json::from_str::<Value>(data.get()) {
            Ok(value) => schema.check_bounded(&value, data.get().len()).await,
            Err(error) => {
                Err(vec![Violation { pointer: String::new(), problem: error.to_string() }])
            }
        },
    };
    violations
        .map_err(|violations| CallError::InvalidOutput { tool: tool.name().to_owned(), violations })
}
