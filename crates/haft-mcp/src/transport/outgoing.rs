//! A message on its way out, with what a transport needs to know about it.

use crate::trace::Trace;

/// One message for the server.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// What kind of message it is.
    pub kind: Kind,
    /// The method; empty for an answer.
    pub method: String,
    /// What the method is about: a tool's or prompt's name, a resource's URI.
    pub name: Option<String>,
    /// Arguments that travel as headers too, where the transport has headers: name and value.
    pub mirrored: Vec<(String, String)>,
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
