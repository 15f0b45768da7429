//! Transports of messages. A transport delivers ours and puts the server's into the [`MessageRouter`]; it does not
//! depend on methods, eras or waiters.

mod event_stream;
mod http;
pub mod lines;
mod pipes;
mod sse;
mod websocket;

pub use crate::delivery::{Era, Kind, Outgoing, Transport};
use crate::handler::BoxFuture;
use crate::{MessageRouter, TransportError};

pub(crate) use event_stream::read_all as read_events;
pub use http::{HttpConnector, HttpOptions};
pub use pipes::Pipes;
pub use sse::SseConnector;
pub use websocket::WebSocketConnector;

/// Opens a transport: starts a process, connects a socket.
pub trait Connector: Send + Sync {
    /// Opens it. Everything that arrives goes to `router`.
    fn open(
        &self,
        router: MessageRouter,
    ) -> BoxFuture<'_, Result<std::sync::Arc<dyn Transport>, TransportError>>;
}
