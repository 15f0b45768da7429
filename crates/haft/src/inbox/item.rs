//! What lies in the inbox: a question, what may be answered, and what is told about it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::approval::Agreed;
use crate::context::CallContext;
use crate::requester::Origin;

/// Why somebody is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A tool or a program wants to know something.
    Question,
    /// A tool with `approval: ask` is about to run.
    Approval,
    /// A server with `sampling: ask` wants to use the model.
    Sampling,
    /// A server wants to know something.
    Elicitation,
}

/// An open question.
#[derive(Debug, Clone, Serialize)]
pub struct Item {
    /// Sorts by the time of asking.
    pub id: String,
    /// Why somebody is asked.
    pub kind: Kind,
    /// The question itself.
    pub question: String,
    /// Where there are some, the answer is one of them.
    pub options: Vec<String>,
    /// JSON Schema of the answer.
    pub schema: Option<Value>,
    /// The tool that is about to run.
    pub tool: Option<String>,
    /// What it is about to run with, or what the server wants of the model.
    pub arguments: Option<Arc<RawValue>>,
    /// The MCP server that asks.
    pub server: Option<String>,
    /// The call that waits for the answer.
    pub execution_id: Option<String>,
    /// Who made that call.
    pub caller: Option<String>,
    /// The session or run it belongs to.
    pub session: Option<String>,
    /// Since when it waits.
    #[serde(with = "crate::record::rfc3339")]
    pub asked: Timestamp,
    /// Until when it waits.
    #[serde(with = "crate::record::rfc3339")]
    pub expires: Timestamp,
}

/// A question on its way into the inbox.
#[derive(Debug, Clone)]
pub struct Ask {
    pub(super) kind: Kind,
    pub(super) question: String,
    pub(super) options: Vec<String>,
    pub(super) schema: Option<Value>,
    pub(super) tool: Option<String>,
    pub(super) arguments: Option<Arc<RawValue>>,
    pub(super) server: Option<String>,
    pub(super) execution_id: Option<String>,
    pub(super) caller: Option<String>,
    pub(super) session: Option<String>,
    pub(super) within: Option<Duration>,
    /// What `always` would mean.
    pub(super) agreed: Option<Agreed>,
}

impl Ask {
    /// A question that takes any answer and waits as long as the configuration says.
    pub fn new(kind: Kind, question: impl Into<String>) -> Self {
        Self {
            kind,
            question: question.into(),
            options: Vec::new(),
            schema: None,
            tool: None,
            arguments: None,
            server: None,
            execution_id: None,
            caller: None,
            session: None,
            within: None,
            agreed: None,
        }
    }

    /// Takes one of these answers only.
    #[must_use]
    pub fn options<T: Into<String>>(mut self, options: impl IntoIterator<Item = T>) -> Self {
        self.options = options.into_iter().map(Into::into).collect();
        self
    }

    /// Takes answers that fit `schema` only.
    #[must_use]
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Says which tool it is about.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// Shows what that tool is about to run with, or what the server wants of the model.
    #[must_use]
    pub fn arguments(mut self, arguments: &RawValue) -> Self {
        self.arguments = Some(Arc::from(arguments.to_owned()));
        self
    }

    /// Says which server asks.
    #[must_use]
    pub fn server(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }

    /// Says which call waits for the answer, and who made it.
    #[must_use]
    pub fn context(self, context: &CallContext) -> Self {
        self.origin(Origin::from(context))
    }

    /// The same, as far as it is known.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        let Origin { execution_id, caller, session } = origin;
        (self.execution_id, self.caller, self.session) = (execution_id, caller, session);
        self
    }

    /// Waits for so long, and no longer than `inbox.timeout` of the configuration.
    #[must_use]
    pub fn within(mut self, within: Duration) -> Self {
        self.within = Some(within);
        self
    }
}

/// What a person says.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The answer.
    Given(Value),
    /// There will be no answer.
    Refused {
        /// Why not.
        reason: Option<String>,
    },
}

/// What subscribers hear.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "there are few, and each is about to be told")]
pub enum InboxEvent {
    /// There is a new question.
    Asked(Item),
    /// A question is over.
    Closed {
        /// Its id.
        id: String,
        /// What became of it.
        how: Closing,
    },
}

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closing {
    /// Somebody answered.
    Answered,
    /// Somebody refused to answer.
    Refused,
    /// Nobody answered in time.
    Expired,
    /// Whoever asked does not want to know any more.
    Withdrawn,
}
