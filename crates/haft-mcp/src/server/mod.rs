//! The other side of the wire: Haft as a server, for clients of both eras.
//!
//! A [`Service`] says what is offered and knows no transport; [`stdio`] and [`HttpEndpoint`] carry its
//! messages. What a service answers goes to the client as it is, so that results of other servers pass
//! untouched.

mod ask;
mod change;
mod desk;
mod http;
mod input;
mod legacy;
mod level;
mod listen;
mod meta;
mod modern;
mod peer;
mod principal;
mod seal;
mod stdio;
mod tasks;

use std::any::Any;
use std::sync::Arc;

use haft_bounds::json::Excess;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::broadcast;

use crate::error::RpcError;
use crate::handler::BoxFuture;
use crate::limits::Limits;
use crate::wire;

pub use crate::budget::{HeldBytes, KeptBytes};
pub use change::Change;
pub use http::{Events, HttpEndpoint, HttpOptions, Reply, ReplyBody};
pub use level::Level;
pub use peer::Peer;
pub use principal::Principal;
pub use stdio::stdio;

/// JSON-RPC: the message is no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the message is JSON and no request that can be answered.
pub const INVALID_REQUEST: i64 = -32600;

/// The refusal of a message that holds more than it may.
fn over_budget(excess: Excess) -> RpcError {
    let remedy = match excess {
        Excess::Nodes(_) => "; send less at once, or raise `limits.message_nodes_max`",
        Excess::Depth(_) => "",
    };
    RpcError::new(INVALID_REQUEST, format!("Invalid Request: {excess}{remedy}"))
}

/// The id of a message that is refused like that, so that the refusal reaches the request. One that nests too deep is not
/// read any further.
fn refused_id(message: &[u8], excess: Excess) -> Option<&RawValue> {
    match excess {
        Excess::Nodes(_) => wire::request_id(message),
        Excess::Depth(_) => None,
    }
}

/// What is offered to clients.
pub trait Service: Send + Sync + 'static {
    /// Who answers, and what it can do. Asked for each client.
    fn about(self: Arc<Self>) -> BoxFuture<'static, About>;

    /// Answers one request. Dropped when the client cancels it or goes away, and the work must end
    /// with it. What the protocol itself answers (`initialize`, `ping`, `server/discover`,
    /// `logging/setLevel`, subscriptions) never comes here.
    fn request(
        self: Arc<Self>,
        request: ClientRequest,
    ) -> BoxFuture<'static, Result<Box<RawValue>, RpcError>>;

    /// Sees to it that updates of a resource are among the changes, for as long as the subscription
    /// is kept.
    fn subscribe(
        self: Arc<Self>,
        uri: String,
        peer: Peer,
    ) -> BoxFuture<'static, Result<Subscription, RpcError>>;

    /// What changes from now on.
    fn changes(&self) -> broadcast::Receiver<Change>;

    /// The schema of a tool's arguments: some of them may have to travel as headers too.
    fn input_schema(&self, tool: &str) -> Option<Value>;
}

/// Ends when it is dropped.
pub type Subscription = Box<dyn Any + Send + Sync>;

/// Who answers, and what it can do.
#[derive(Debug, Clone)]
pub struct About {
    /// The server's name.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// Its capabilities, such as `{"tools": {"listChanged": true}}`.
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

/// How to serve one client over pipes.
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
