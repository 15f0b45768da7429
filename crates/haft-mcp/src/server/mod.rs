//! The other side of the wire: Haft as a server, for clients of both eras.
//!
//! A [`Service`] defines the offers and does not depend on a transport; [`stdio`] and [`HttpEndpoint`] carry its
//! messages. A service's answer goes to the client unmodified, so that results of other servers pass untouched.

mod ask;
mod call_message;
mod change;
mod dispatch;
mod flag;
mod http;
mod input;
mod legacy;
mod level;
mod listen;
mod meta;
mod modern;
mod outbox;
mod param_headers;
mod params;
mod peer;
mod principal;
mod replica;
mod state_signer;
mod stdio;
mod tasks;

use std::any::Any;
use std::borrow::Cow;
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
pub use crate::error::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND};
pub use change::{Change, LogMessage};
pub use http::{EndpointOptions, HttpEndpoint, Reply, ReplyBody, ReplyEvents, Routing};
pub use level::Level;
pub use param_headers::ParamHeaders;
pub use peer::Peer;
pub use principal::Principal;
pub use replica::{Replica, SigningKeys, SigningKeysError};
pub use stdio::stdio;

/// JSON-RPC: the message is not JSON.
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

/// The features that are offered to clients.
pub trait Service: Send + Sync + 'static {
    /// The service's name and capabilities. Requested for each client.
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

    /// Changes from now on.
    fn changes(&self) -> broadcast::Receiver<Change>;

    /// The arguments of a tool that travel as headers too. Nothing for a tool that is not offered.
    fn param_headers(&self, tool: &str) -> Option<ParamHeaders>;
}

/// Ends when it is dropped.
pub type Subscription = Box<dyn Any + Send + Sync>;

/// Name and capabilities of a service.
#[derive(Debug, Clone)]
pub struct About {
    /// The server's name.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// Its capabilities, such as `{"tools": {"listChanged": true}}`.
    pub capabilities: Value,
    /// Its instructions for use.
    pub instructions: Option<String>,
}

/// One request of a client.
pub struct ClientRequest {
    /// Such as `tools/call`.
    pub method: Cow<'static, str>,
    /// As the client sent them. None for `tools/call`.
    pub params: Option<Box<RawValue>>,
    /// The parameters of `tools/call`.
    pub tool: Option<ToolRequest>,
    /// The client that sent it.
    pub peer: Peer,
}

/// The call of a tool.
#[derive(Debug, Clone)]
pub struct ToolRequest {
    /// The tool's name.
    pub name: String,
    /// As the client sent them.
    pub arguments: Option<Arc<RawValue>>,
}

/// Options for serving one client over pipes.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The client's name for the log.
    pub principal: String,
    /// Limits on the client's messages.
    pub limits: Limits,
    /// Largest number of the client's requests in flight.
    pub requests_max: usize,
}

impl ServeOptions {
    /// The usual limits, for a client of this name.
    pub fn new(principal: impl Into<String>) -> Self {
        Self { principal: principal.into(), limits: Limits::default(), requests_max: 1024 }
    }
}
