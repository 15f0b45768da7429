//! The MCP wire. Knows no configuration file, no registry and no policy.
//!
//! Bytes become messages in [`wire`], pure functions; [`core`] keeps the books of one connection,
//! also without I/O; [`MessageRouter`] and [`Session`] put tasks and clocks around it; a [`transport`]
//! carries messages; [`Client`] speaks the protocol, both eras of it.
//!
//! Typed structs exist only for fields that Haft reads; everything else that a server sends is kept unmodified, so
//! that nothing is lost between a server and its caller.

mod budget;
pub mod client;
pub mod core;
mod declared;
mod delivery;
mod describe;
pub mod error;
pub mod extension;
#[doc(hidden)]
pub mod fuzz;
mod handler;
mod http_client;
mod limits;
mod message_router;
pub mod oauth;
pub mod server;
mod session;
mod tls;
mod tool;
mod trace;
pub mod transport;
pub mod wire;

pub use budget::{AnswerBytes, ByteBudget, HeldBytes, KeptBytes};
pub use client::{CallOptions, Client, ClientOptions, ConnectError, Identity, Listed, Protocol};
pub use describe::{PromptArgument, PromptDescription, ResourceDescription, ResourceTemplate};
pub use error::{Failure, Fault, RequestError, RpcError, Sent, TransportError};
pub use handler::{Anomaly, BoxFuture, Handler, RefuseAll, ServerRequest};
pub use http_client::{
    HEAD_BYTES_MAX, HttpClient, HttpClientOptions, HttpError, Response as HttpResponse,
};
pub use limits::Limits;
pub use message_router::{MessageRouter, ProgressFn};
pub use session::{RequestOptions, Session};
pub use tls::{http_client_builder, tls_client_config};
pub use tool::ToolDescription;
pub use trace::Trace;
pub use transport::{
    Connector, Era, HttpConnector, HttpOptions, SseConnector, Transport, WebSocketConnector,
};
