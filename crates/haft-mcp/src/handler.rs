//! Requests and notifications of a server to its client.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::{METHOD_NOT_FOUND, RpcError, TransportError};

pub use futures_util::future::BoxFuture;

/// A request of the server: sampling, elicitation, roots. In the era without such requests, the
/// same ones arrive inside input-required results and come through here too.
#[derive(Debug, Clone)]
pub struct ServerRequest {
    /// The server's name for it, if it is part of an input-required result.
    pub name: Option<String>,
    /// Such as `sampling/createMessage`.
    pub method: String,
    /// As the server sent them.
    pub params: Option<Box<RawValue>>,
}

/// Something a server sent that no request could use. A request that gets no answer may fail because of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anomaly<'a> {
    /// A line or frame that is not a message: a print, or text in another encoding.
    Stray(&'a [u8]),
    /// A response with an `id` that no request ever had, as JSON.
    ForeignId(&'a str),
}

/// Answers a server's requests and receives its notifications.
pub trait Handler: Send + Sync + 'static {
    /// The client capabilities to declare. What is not declared is not asked by a decent server.
    fn capabilities(&self) -> Value {
        json!({})
    }

    /// Lowest level of wanted log messages, if the connection does not decide it.
    fn log_level(&self) -> Option<&'static str> {
        None
    }

    /// Returns true if a call may become a task at the server (2026-07-28). The client follows the task to its end.
    fn takes_tasks(&self) -> bool {
        true
    }

    /// Notified when the call has become a task at the server.
    fn task_started(&self) {}

    /// Answers a request. Dropped when the server cancels it or the connection ends.
    fn request(&self, request: ServerRequest) -> BoxFuture<'_, Result<Box<RawValue>, RpcError>> {
        Box::pin(async move {
            Err(RpcError::new(
                METHOD_NOT_FOUND,
                format!("`{}` is not offered here", request.method),
            ))
        })
    }

    /// Receives a notification. Called in the order of arrival, between two messages: return soon, and never wait for
    /// the same server in here.
    fn notification(&self, _method: &str, _params: Option<&RawValue>) {}

    /// Receives problems with the server's messages, apart from failed requests.
    fn report_anomaly(&self, _what: &str) {}

    /// Receives what no request could use. Called between two messages, as often as the server sends such things.
    fn anomaly(&self, _anomaly: Anomaly<'_>) {}

    /// Notified once when the connection ends.
    fn ended(&self, _reason: &TransportError) {}
}

/// Refuses every request and ignores notifications.
#[derive(Debug, Clone, Copy, Default)]
pub struct RefuseAll;

impl Handler for RefuseAll {}
