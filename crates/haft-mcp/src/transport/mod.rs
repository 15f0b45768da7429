//! What carries messages. A transport delivers ours and puts the server's into the [`Inbox`]; it
//! knows nothing of methods, eras or who waits.

mod event_stream;
mod http;
pub mod lines;
mod outgoing;
mod pipes;
mod sse;

use crate::handler::BoxFuture;
use crate::{Inbox, TransportError};

pub use http::{HttpConnector, HttpOptions};
pub use outgoing::{Kind, Outgoing};
pub use pipes::Pipes;
pub use sse::SseConnector;

/// One open way to a server.
pub trait Transport: Send + Sync + 'static {
    /// Delivers one message.
    ///
    /// Where the answer comes back in the same exchange (streamable HTTP), the future puts all of
    /// it into the inbox and ends with the exchange; dropping it closes the exchange. Elsewhere it
    /// ends when the message is on its way, and the answer comes to the inbox by itself.
    fn deliver<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<(), TransportError>>;

    /// The handshake is done. `version` and what follows from it hold from now on.
    fn negotiated(&self, _version: &str, _era: Era) {}

    /// Whether the answer to a request comes back in the same exchange (streamable HTTP).
    fn answers_in_exchange(&self) -> bool {
        false
    }

    /// Whether dropping a delivery is what tells the server that nobody waits any more.
    fn cancels_by_closing(&self) -> bool {
        false
    }

    /// Ends the connection in the way the server expects.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Opens a transport: starts a process, connects a socket.
pub trait Connector: Send + Sync {
    /// Opens it. Everything that arrives goes to `inbox`.
    fn open(
        &self,
        inbox: Inbox,
    ) -> BoxFuture<'_, Result<std::sync::Arc<dyn Transport>, TransportError>>;
}

/// Which of the two protocols is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Up to 2025-11-25: `initialize`, sessions.
    Legacy,
    /// From 2026-07-28 on: stateless.
    Modern,
}
