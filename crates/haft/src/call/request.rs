//! A request to run a tool, and what travels with it.

use std::sync::Arc;

use haft_config::config::rules::KeyScope;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::InlineTool;
use crate::caller_handle::{CallerHandle, CallerRef};
use crate::json::ArgumentText;
use crate::memory::{Held, Owner};
use crate::policy::CallApproval;
use crate::progress::{Listeners, Progress};
use crate::tool_filter::ToolFilter;
use crate::trace::TraceContext;

/// The way to approve a call whose caller names none.
pub(crate) const APPROVAL_HINT: &str = "let a person approve it";

/// A request to run a tool.
///
/// ```
/// use haft::ToolCall;
/// use serde_json::json;
///
/// let call = ToolCall::new("get_weather", &json!({"city": "Seoul"}))
///     .caller("my-agent")
///     .session("chat-1")
///     .user_request("do I need an umbrella?");
/// ```
#[derive(Debug, Clone)]
pub struct ToolCall {
    pub(crate) tool: String,
    pub(crate) arguments: ArgumentText,
    pub(crate) caller: Option<String>,
    pub(crate) owner: Option<String>,
    pub(crate) session: Option<String>,
    /// The scope of the caller's key.
    pub(crate) scope: Option<KeyScope>,
    /// The profile that the call is made through.
    pub(crate) profile: Option<String>,
    pub(crate) user_request: Option<String>,
    pub(crate) approval: CallApproval,
    /// The remedy if approval is missing.
    pub(crate) approval_hint: &'static str,
    /// None if the call cannot be ended from outside.
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) listeners: Listeners,
    pub(crate) caller_handle: CallerRef,
    pub(crate) tool_filter: ToolFilter,
    /// Text of the result beyond this size is kept back.
    pub(crate) output_bytes_max: Option<usize>,
    /// The caller that may read the rest.
    pub(crate) reader: Option<String>,
    /// The memory of the arguments, if it was reserved when they were read.
    pub(crate) memory: Held,
    /// A tool that comes with the call.
    pub(crate) inline_tool: Option<InlineTool>,
}

impl ToolCall {
    /// Calls `tool` with anything that serializes to a JSON object.
    pub fn new(tool: impl Into<String>, arguments: &impl Serialize) -> Self {
        // A serialization error becomes invalid text, which the call path rejects with the reason.
        let text = serde_json::to_string(arguments).unwrap_or_else(|error| error.to_string());
        Self::from_text(tool, text)
    }

    /// Calls `tool` with arguments that are JSON text already, which reach the tool as they are.
    ///
    /// ```
    /// # use haft::ToolCall;
    /// let call = ToolCall::from_text("get_weather", r#"{"city": "Seoul"}"#);
    /// ```
    pub fn from_text(tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self::from_arguments(tool.into(), ArgumentText::Text(arguments.into()))
    }

    /// Calls `tool` with arguments that are a part of a JSON message, which reach the tool as they are.
    pub fn from_json(tool: impl Into<String>, arguments: impl Into<Arc<RawValue>>) -> Self {
        Self::from_arguments(tool.into(), ArgumentText::Json(arguments.into()))
    }

    fn from_arguments(tool: String, arguments: ArgumentText) -> Self {
        Self {
            tool,
            arguments,
            caller: None,
            owner: None,
            session: None,
            scope: None,
            profile: None,
            user_request: None,
            approval: CallApproval::default(),
            approval_hint: APPROVAL_HINT,
            cancel: None,
            trace: None,
            listeners: Listeners::default(),
            caller_handle: CallerRef::default(),
            tool_filter: ToolFilter::default(),
            output_bytes_max: None,
            reader: None,
            memory: Held::default(),
            inline_tool: None,
        }
    }

    /// Sets the caller's name, for the log.
    #[must_use]
    pub fn caller(mut self, caller: impl Into<String>) -> Self {
        self.caller = Some(caller.into());
        self
    }

    /// Limits the text of the result. The tool `read_output` gives the rest to calls of the same `reader`.
    #[must_use]
    pub fn output_limit(mut self, bytes_max: Option<u64>, reader: impl Into<String>) -> Self {
        self.output_bytes_max = bytes_max.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        self.reader = Some(reader.into());
        self
    }

    /// Sets the owner of the call, if a caller's name may be reused by another. A standing approval
    /// belongs to the owner, and the limits of the owner hold for the call
    /// ([`RuntimeBuilder::callers`](crate::RuntimeBuilder::callers)).
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sets the session or run of the call, for the log.
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Sets the scope of the caller's key, for `policy.rules`.
    #[must_use]
    pub fn scope(mut self, scope: KeyScope) -> Self {
        self.scope = Some(scope);
        self
    }

    /// Sets the profile that the call is made through, for `policy.rules`.
    #[must_use]
    pub fn profile(mut self, profile: impl Into<String>) -> Self {
        self.profile = Some(profile.into());
        self
    }

    /// Sets the user's request in their own words. The log keeps it only if `log.requests` is on.
    #[must_use]
    pub fn user_request(mut self, request: impl Into<String>) -> Self {
        self.user_request = Some(request.into());
        self
    }

    /// Marks the call as approved by a person, for a tool with `approval: ask`.
    ///
    /// ```
    /// # use haft::ToolCall;
    /// let call = ToolCall::new("send_mail", &serde_json::json!({"to": "ada@example.com"})).approved();
    /// ```
    #[must_use]
    pub fn approved(mut self) -> Self {
        self.approval = CallApproval::Given;
        self
    }

    /// Asks a person in the [inbox](crate::human_input) for approval, if the tool has `approval:
    /// ask` and the call is not approved. The call waits for the answer before anything else, and
    /// takes no slot meanwhile.
    #[must_use]
    pub fn asking_people(mut self) -> Self {
        if self.approval == CallApproval::Missing {
            self.approval = CallApproval::AskPeople;
        }
        self
    }

    /// Sets the way for this caller to approve a tool with `approval: ask`, for the remedy of a
    /// missing approval.
    #[must_use]
    pub fn approval_hint(mut self, how: &'static str) -> Self {
        self.approval_hint = how;
        self
    }

    /// Lets `cancel` end the call, also while it waits. Dropping the call's future does the same.
    ///
    /// ```
    /// # use haft::ToolCall;
    /// # use tokio_util::sync::CancellationToken;
    /// let cancel = CancellationToken::new();
    /// let call = ToolCall::new("slow", &serde_json::json!({})).cancelled_by(cancel.clone());
    /// cancel.cancel();
    /// ```
    #[must_use]
    pub fn cancelled_by(mut self, cancel: CancellationToken) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Sets the trace context of the call. It is propagated to MCP servers, and the log keeps its
    /// id.
    #[must_use]
    pub fn trace_context(mut self, trace: TraceContext) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Hides every tool from the caller that `shows` does not let through, by its server (none for a
    /// local one) and its name. A call of a hidden one ends and is recorded as that of an unknown tool.
    #[must_use]
    pub fn visible_tools(
        mut self,
        shows: impl Fn(Option<&str>, &str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.tool_filter.shows = Some(Arc::new(shows));
        self
    }

    /// Marks the call as made by a model. Tools that only user interfaces call are unknown to it.
    #[must_use]
    pub fn by_model(mut self) -> Self {
        self.tool_filter.is_model = true;
        self
    }

    /// Brings the memory of the arguments, reserved before they were read. Without it the call reserves its own.
    #[must_use]
    pub fn with_memory(mut self, memory: Held) -> Self {
        self.memory = memory;
        self
    }

    /// The owner whose share of the memory the call uses.
    pub(super) fn memory_owner(&self) -> Owner<'_> {
        Owner::Caller(self.caller.as_deref())
    }

    /// Runs a tool that is not in the toolbox, under the name the call has, with the limits, checks and log
    /// entry of every other.
    #[must_use]
    pub fn inline_tool(mut self, tool: InlineTool) -> Self {
        self.inline_tool = Some(tool);
        self
    }

    /// Sets the handle on the caller, for requests of the tool's server during the call.
    #[must_use]
    pub fn on_behalf_of(mut self, caller_handle: Arc<dyn CallerHandle>) -> Self {
        self.caller_handle = CallerRef(Some(caller_handle));
        self
    }

    /// Calls `listener` with the execution id as soon as it exists, before anything else. From then
    /// on [`Runtime::cancel`](crate::Runtime::cancel) accepts it. `listener` must return at once.
    ///
    /// ```
    /// # use haft::ToolCall;
    /// let call = ToolCall::new("slow", &serde_json::json!({})).on_start(|id| println!("execution {id}"));
    /// ```
    #[must_use]
    pub fn on_start(mut self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.listeners.start = Some(Arc::new(listener));
        self
    }

    /// Calls `listener` for each progress report of the tool: in order, and never after the call
    /// has ended. `listener` must return at once.
    #[must_use]
    pub fn on_progress(mut self, listener: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.listeners.progress = Some(Arc::new(listener));
        self
    }
}
