//! Inbox items: questions, answers and events.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::standing::StandingApproval;
use crate::caller_handle::CallOrigin;
use crate::context::CallContext;

/// The reason of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// A tool or program asks a question.
    Question,
    /// A tool with `approval: ask` is about to run.
    Approval,
    /// A server with `sampling: ask` requests a model completion.
    Sampling,
    /// A server asks a question.
    Elicitation,
    /// A definition of a server differs from the lock file. `arguments` has the difference.
    Definition,
}

/// An open question.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct InboxItem {
    /// Sorts by the time of asking.
    pub id: String,
    /// The reason of the question.
    pub kind: ItemKind,
    /// The question itself.
    pub question: String,
    /// The permitted answers, if restricted.
    pub options: Vec<String>,
    /// JSON Schema of the answer.
    pub schema: Option<Value>,
    /// The tool that is about to run.
    pub tool: Option<String>,
    /// The arguments of that tool, or the sampling request of the server.
    pub arguments: Option<Arc<RawValue>>,
    /// The MCP server that sent the question.
    pub server: Option<String>,
    /// The setting that requires the question, with its origin, such as `approval: ask, set by haft.yaml:4:12`.
    pub rule: Option<String>,
    /// The call that waits for the answer.
    pub execution_id: Option<String>,
    /// The caller of that call.
    pub caller: Option<String>,
    /// The session or run it belongs to.
    pub session: Option<String>,
    /// The time of asking.
    #[serde(with = "crate::record::rfc3339")]
    pub asked: Timestamp,
    /// The time of expiry.
    #[serde(with = "crate::record::rfc3339")]
    pub expires: Timestamp,
}

/// A question for the inbox.
#[derive(Debug, Clone)]
pub struct HumanQuestion {
    pub(super) kind: ItemKind,
    pub(super) question: String,
    pub(super) options: Vec<String>,
    pub(super) schema: Option<Value>,
    pub(super) tool: Option<String>,
    pub(super) arguments: Option<Arc<RawValue>>,
    pub(super) server: Option<String>,
    pub(super) rule: Option<String>,
    pub(super) execution_id: Option<String>,
    pub(super) caller: Option<String>,
    pub(super) session: Option<String>,
    pub(super) within: Option<Duration>,
    /// The grant that the answer `always` creates.
    pub(super) agreed: Option<StandingApproval>,
}

impl HumanQuestion {
    /// Creates a question that accepts any answer and expires as configured.
    pub fn new(kind: ItemKind, question: impl Into<String>) -> Self {
        Self {
            kind,
            question: question.into(),
            options: Vec::new(),
            schema: None,
            tool: None,
            arguments: None,
            server: None,
            rule: None,
            execution_id: None,
            caller: None,
            session: None,
            within: None,
            agreed: None,
        }
    }

    /// Restricts the answer to these options.
    #[must_use]
    pub fn options<T: Into<String>>(mut self, options: impl IntoIterator<Item = T>) -> Self {
        self.options = options.into_iter().map(Into::into).collect();
        self
    }

    /// Restricts the answer to values that match `schema`.
    #[must_use]
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Sets the tool that is about to run.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// Sets the arguments of that tool, or the sampling request of the server.
    #[must_use]
    pub fn arguments(mut self, arguments: &RawValue) -> Self {
        self.arguments = Some(Arc::from(arguments.to_owned()));
        self
    }

    /// Sets the server that sent the question.
    #[must_use]
    pub fn server(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }

    /// Sets the setting that requires the question, with its origin.
    #[must_use]
    pub fn rule(mut self, rule: impl Into<String>) -> Self {
        self.rule = Some(rule.into());
        self
    }

    /// Sets the call that waits for the answer, and its caller.
    #[must_use]
    pub fn context(self, context: &CallContext) -> Self {
        self.origin(CallOrigin::from(context))
    }

    /// Sets the call, as far as it is known.
    #[must_use]
    pub fn origin(mut self, origin: CallOrigin) -> Self {
        let CallOrigin { execution_id, caller, session } = origin;
        (self.execution_id, self.caller, self.session) = (execution_id, caller, session);
        self
    }

    /// Sets a shorter timeout than `inbox.timeout` of the configuration.
    #[must_use]
    pub fn within(mut self, within: Duration) -> Self {
        self.within = Some(within);
        self
    }
}

/// The answer of a person.
#[derive(Debug, Clone, PartialEq)]
pub enum HumanAnswer {
    /// The answer.
    Given(Value),
    /// The person refused to answer.
    Refused {
        /// The reason.
        reason: Option<String>,
    },
}

/// Events for subscribers.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "events are few and short-lived")]
pub enum InboxEvent {
    /// A new question.
    Asked(InboxItem),
    /// A question was closed.
    Closed {
        /// Its id.
        id: String,
        /// The reason.
        how: CloseReason,
    },
}

/// The reason why a question was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    /// A person answered.
    Answered,
    /// A person refused to answer.
    Refused,
    /// No person answered in time.
    Expired,
    /// The asker stopped waiting.
    Withdrawn,
}
