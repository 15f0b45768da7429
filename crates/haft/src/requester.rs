//! Whoever made a call, as far as a server may turn to it while it works on the call.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

/// Whoever made a call: can be asked and told something before the answer, where the tool's server
/// wants to. A gateway is one, for the client at its other side.
pub trait Requester: Send + Sync + 'static {
    /// The same number for calls of one and the same client. A server that does not say which call it
    /// speaks of is answered only if there is one client it can mean.
    fn id(&self) -> u64;

    /// The same number for everyone who may see messages about each other's calls. A server that names no call
    /// in a log message may be late and speak of one that has ended, so only an audience that has the
    /// server's connection to itself receives it.
    fn audience(&self) -> u64 {
        self.id()
    }

    /// What the client can answer: `{"sampling": {}, "elicitation": {}, "roots": {}}` or less.
    fn capabilities(&self) -> Value;

    /// Whether the call may become a task at the server. Haft follows the task to its end, so only a client that
    /// decides this for each request says no.
    fn takes_tasks(&self) -> bool {
        true
    }

    /// Notified when the server works on the call as a task. Must return at once.
    fn task_started(&self) {}

    /// From which level on log messages are wanted.
    fn log_level(&self) -> Option<&'static str>;

    /// Answers a question of the server: the result of `sampling/createMessage`,
    /// `elicitation/create` or `roots/list`.
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Box<RawValue>, Refusal>>;

    /// Hears a log message of the server: the parameters of `notifications/message`. Must return at
    /// once.
    fn log(&self, message: &RawValue);
}

/// What a server or a tool wants to know.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The server, or the tool where that is Haft's own.
    pub server: &'a str,
    /// What the server calls the question, if anything.
    pub name: Option<&'a str>,
    /// Such as `elicitation/create`.
    pub method: &'a str,
    /// As the server sent them.
    pub params: &'a RawValue,
    /// Cancelled when the asker has its answer from elsewhere.
    pub withdrawn: Option<&'a CancellationToken>,
}

/// Whose call a server works on while it asks something, as far as that is sure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The call.
    pub execution_id: Option<String>,
    /// Who made it.
    pub caller: Option<String>,
    /// The session or run it belongs to.
    pub session: Option<String>,
}

impl Origin {
    /// What holds for both. A session says nothing without its caller: anybody may name one.
    #[cfg(feature = "mcp")]
    pub(crate) fn common(self, other: &Self) -> Self {
        if self.caller != other.caller {
            return Self::default();
        }
        Self {
            execution_id: self.execution_id.filter(|id| other.execution_id.as_ref() == Some(id)),
            caller: self.caller,
            session: self.session.filter(|session| other.session.as_ref() == Some(session)),
        }
    }
}

/// Why a server's request is not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// The reason, for the server and the log.
    pub reason: String,
}

impl Refusal {
    /// A refusal for a reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// The one who made a call, if it can be turned to.
#[derive(Clone, Default)]
pub(crate) struct Behind(pub(crate) Option<Arc<dyn Requester>>);

impl fmt::Debug for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Behind").field(&self.0.as_ref().map(|it| it.id())).finish()
    }
}
