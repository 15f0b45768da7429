//! The caller of a tool, for requests from the tool's server during the call.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

/// A handle on the caller. The tool's server can send it requests and log messages before the
/// answer. A gateway implements it for its clients.
pub trait CallerHandle: Send + Sync + 'static {
    /// Identifies the client: equal for all calls of one client. A server request that names no
    /// call is answered only if it can belong to one client.
    fn id(&self) -> u64;

    /// Identifies the audience: equal for all clients that may see messages about each other's
    /// calls. A log message that names no call may arrive late and belong to a finished call, so
    /// only an audience with exclusive use of the connection receives it.
    fn audience(&self) -> u64 {
        self.id()
    }

    /// The client's capabilities: `{"sampling": {}, "elicitation": {}, "roots": {}}` or less.
    fn capabilities(&self) -> Value;

    /// Returns true if the server may run the call as a task. Haft polls the task to its end, so
    /// only a client that decides this per request returns false.
    fn takes_tasks(&self) -> bool {
        true
    }

    /// Notified when the server runs the call as a task. Must return at once.
    fn task_started(&self) {}

    /// Minimum level of log messages to forward.
    fn log_level(&self) -> Option<&'static str>;

    /// Answers a request of the server: the result of `sampling/createMessage`,
    /// `elicitation/create` or `roots/list`.
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Box<RawValue>, Refusal>>;

    /// Receives a log message of the server: the parameters of `notifications/message`. Must return
    /// at once.
    fn log(&self, message: &RawValue);
}

/// A request of a server or tool to the caller.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The server, or the name of a built-in tool.
    pub server: &'a str,
    /// The server's name for the question, if present.
    pub name: Option<&'a str>,
    /// The method, such as `elicitation/create`.
    pub method: &'a str,
    /// The parameters, unmodified.
    pub params: &'a RawValue,
    /// Cancelled when the answer arrived from another source.
    pub withdrawn: Option<&'a CancellationToken>,
}

/// The call that a server request belongs to, as far as that is certain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallOrigin {
    /// The execution id of the call.
    pub execution_id: Option<String>,
    /// The caller's name.
    pub caller: Option<String>,
    /// The session or run it belongs to.
    pub session: Option<String>,
}

impl CallOrigin {
    /// Returns the fields that are equal in both. A session is meaningful only with its caller,
    /// because any caller may name one.
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

/// The reason why a server's request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// The reason, for the server and the log.
    pub reason: String,
}

impl Refusal {
    /// Creates a refusal with a reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

/// The handle on the caller, if the caller provided one.
#[derive(Clone, Default)]
pub(crate) struct CallerRef(pub(crate) Option<Arc<dyn CallerHandle>>);

impl fmt::Debug for CallerRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CallerRef").field(&self.0.as_ref().map(|it| it.id())).finish()
    }
}
