//! A request to run a tool, and what travels with it.

use std::sync::Arc;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "agent")]
use super::InlineTool;
use crate::memory::{Held, Owner};
use crate::policy::CallApproval;
use crate::progress::{Listeners, Progress};
use crate::requester::{Behind, Requester};
use crate::sight::Sight;
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
    /// None if the call cannot be ended from outside.
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) listeners: Listeners,
    pub(crate) requester: Behind,
    pub(crate) sight: Sight,
    /// The memory of the arguments, if it was reserved when they were read.
    pub(crate) memory: Held,
    /// A tool that comes with the call.
    #[cfg(feature = "agent")]
    pub(crate) inline_tool: Option<InlineTool>,
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
            inline_tool: None,
        }
    }

    /// Says who calls; the log keeps it.
    #[must_use]
    pub fn caller(mut self, caller: impl Into<String>) -> Self {
        self.caller = Some(caller.into());
        self
    }

    /// Says whose the call is, if a caller's name may pass on to another one. An agreement for good holds for
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

    /// Asks a person in the [inbox](crate::inbox) to agree, if the tool has `approval: ask` and no person said
    /// that they did. The call waits for the answer before anything else, and takes no slot meanwhile.
    #[must_use]
    pub fn asking_people(mut self) -> Self {
        if self.approval == CallApproval::Missing {
            self.approval = CallApproval::AskPeople;
        }
        self
    }

    /// Says how this caller can have a tool with `approval: ask` run, for the remedy of a missing approval.
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
        self.sight.shows = Some(Arc::new(shows));
        self
    }

    /// Says that a model made the call. Tools that only user interfaces call are unknown to it.
    #[must_use]
    pub fn by_model(mut self) -> Self {
        self.sight.is_model = true;
        self
    }

    /// Brings the memory of the arguments, reserved before they were read. Without it the call reserves its own.
    #[must_use]
    pub fn with_memory(mut self, memory: Held) -> Self {
        self.memory = memory;
        self
    }

    /// Whose share of the memory the call takes.
    pub(super) fn memory_owner(&self) -> Owner<'_> {
        Owner::Caller(self.caller.as_deref())
    }

    /// Runs a tool that is not in the toolbox, under the name the call has, with the limits, checks and log
    /// entry of every other.
    #[cfg(feature = "agent")]
    #[must_use]
    pub(crate) fn inline_tool(mut self, tool: InlineTool) -> Self {
        self.inline_tool = Some(tool);
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
