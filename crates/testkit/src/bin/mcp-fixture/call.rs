//! One request in flight and the ways to answer it.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::channel::{Frame, Outbox, Peer};
use crate::modern;
use crate::scenario::Era;
use crate::server::{Server, notification};

/// A request in flight.
#[derive(Debug)]
pub struct Call {
    /// The server it is for.
    pub server: Arc<Server>,
    /// The sender of the request.
    pub peer: Arc<Peer>,
    /// Where its answer goes.
    pub out: Outbox,
    /// Its id.
    pub id: Value,
    /// Its method.
    pub method: String,
    /// Its parameters, or null.
    pub params: Value,
    /// The era it belongs to, never `Both`.
    pub era: Era,
}

/// The end of a request.
#[derive(Debug)]
pub enum Outcome {
    /// With a result.
    Result(Value),
    /// With a result that only exists as text, such as one with very long numbers.
    ResultText(String),
    /// With an error object.
    Failure(Value),
    /// With whatever has been sent already.
    Said,
    /// Never.
    Silence,
}

impl Outcome {
    /// An error by code and message.
    pub fn failure(code: i64, message: impl Into<String>) -> Self {
        Self::Failure(json!({ "code": code, "message": message.into() }))
    }

    /// A tool's result with one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Result(json!({ "content": [{ "type": "text", "text": text.into() }] }))
    }
}

impl Call {
    /// An argument of a tool call.
    pub fn argument(&self, name: &str) -> &Value {
        &self.params["arguments"][name]
    }

    /// A number among the arguments.
    pub fn number(&self, name: &str, default: u64) -> u64 {
        self.argument(name).as_u64().unwrap_or(default)
    }

    /// Sends a notification on the way of the answer.
    pub fn notify(&self, method: &str, params: Value) -> bool {
        self.out.message(notification(method, params))
    }

    /// Sends a result.
    pub fn respond(&self, result: Value) {
        let result = modern::complete(self, result);
        self.out.message(json!({ "jsonrpc": "2.0", "id": self.id, "result": result }));
    }

    /// Sends a result that only exists as text.
    pub fn respond_text(&self, result: &str) {
        let id = &self.id;
        self.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n"));
    }

    /// Sends an error.
    pub fn fail(&self, error: &Value) {
        self.out.message(json!({ "jsonrpc": "2.0", "id": self.id, "error": error }));
    }

    /// Puts bytes on the channel. On stdio they should end with a line feed.
    pub fn raw(&self, bytes: impl Into<Vec<u8>>) -> bool {
        self.out.send(Frame::Raw(bytes.into()))
    }
}
