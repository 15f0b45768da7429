//! The other side of the wire: Haft as a server, for clients of both eras.
//!
//! A [`Service`] says what is offered and knows no transport; [`stdio`] carries its messages. What a
//! service answers goes to the client as it is, so that results of other servers pass untouched.

mod legacy;
mod modern;
mod peer;
mod stdio;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::error::RpcError;
use crate::handler::BoxFuture;
use crate::limits::Limits;

pub use peer::Peer;
pub use stdio::stdio;

/// JSON-RPC: the message is no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the message is JSON and no request that can be answered.
pub const INVALID_REQUEST: i64 = -32600;

/// What is offered to clients.
pub trait Service: Send + Sync + 'static {
    /// Who answers, and what it can do. Asked once for each client.
    fn about(&self) -> About;

    /// Answers one request. Dropped when the client cancels it or goes away, and the work must end
    /// with it. The protocol's own methods (`initialize`, `ping`, `server/discover`) never come here.
    fn request(&self, request: ClientRequest) -> BoxFuture<'_, Result<Box<RawValue>, RpcError>>;

    /// Counts the changes of the list of tools.
    fn tool_changes(&self) -> watch::Receiver<u64>;
}

/// Who answers, and what it can do.
#[derive(Debug, Clone)]
pub struct About {
    /// The server's name.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// Its capabilities, such as `{"tools": {}}`. Whether changes of lists are announced is added where
    /// the era and the transport can.
    pub capabilities: Value,
    /// How it wants to be used.
    pub instructions: Option<String>,
}

/// One request of a client.
pub struct ClientRequest {
    /// Such as `tools/call`.
    pub method: String,
    /// As the client sent them.
    pub params: Option<Box<RawValue>>,
    /// Who asks.
    pub peer: Peer,
}

/// How to serve one client.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Who the client is, for the log.
    pub principal: String,
    /// How much the client may send.
    pub limits: Limits,
    /// How many requests of the client may be under way at once.
    pub requests_max: usize,
}

impl ServeOptions {
    /// The usual limits, for a client of this name.
    pub fn new(principal: impl Into<String>) -> Self {
        Self { principal: principal.into(), limits: Limits::default(), requests_max: 1024 }
    }
}
