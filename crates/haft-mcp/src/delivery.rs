//! Outgoing messages, and the trait of what delivers them.

use crate::TransportError;
use crate::handler::BoxFuture;
use crate::trace::Trace;

/// One message for the server.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The kind of message.
    pub kind: Kind,
    /// The method; empty for an answer.
    pub method: String,
    /// The subject of the method: a tool's or prompt's name, a resource's URI.
    pub name: Option<String>,
    /// Arguments that travel as headers too, where the transport has headers: name and value.
    pub param_headers: Vec<(String, String)>,
    /// The trace it belongs to, which travels as headers too.
    pub trace: Option<Trace>,
    /// The message as JSON, on one line.
    pub body: String,
}

/// The kinds of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A request under this id: an answer has to come.
    Request(u64),
    /// A notification: nothing comes back.
    Notification,
    /// An answer to a request of the server.
    Response,
}

impl Outgoing {
    /// The id whose answer is awaited.
    pub fn awaited(&self) -> Option<u64> {
        match self.kind {
            Kind::Request(id) => Some(id),
            Kind::Notification | Kind::Response => None,
        }
    }
}

/// One open way to a server.
pub trait Transport: Send + Sync + 'static {
    /// Delivers one message.
    ///
    /// Where the answer comes back in the same exchange (streamable HTTP), the future puts all of
    /// it into the router and ends with the exchange; dropping it closes the exchange. Elsewhere it
    /// ends when the message is on its way, and the answer comes to the router by itself.
    fn deliver<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<(), TransportError>>;

    /// The handshake is done. `version` and what follows from it hold from now on.
    fn negotiated(&self, _version: &str, _era: Era) {}

    /// Returns true if the answer to a request comes back in the same exchange (streamable HTTP).
    fn answers_in_exchange(&self) -> bool {
        false
    }

    /// Returns true if dropping a delivery cancels the request at the server.
    fn cancels_by_closing(&self) -> bool {
        false
    }

    /// Ends the connection in the way the server expects.
    fn close(&self) -> BoxFuture<'_, ()>;
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
