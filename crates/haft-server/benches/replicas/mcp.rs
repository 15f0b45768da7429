//! An MCP client without a connection of its own: every request may arrive at another replica.

use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::client::{Target, chain};

const ACCEPT: &str = "application/json, text/event-stream";
/// The version of the era without sessions.
const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// The response to one message.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) text: String,
}

impl Reply {
    async fn of(request: RequestBuilder) -> Result<Self, String> {
        let response = request.send().await.map_err(|error| chain(&error))?;
        let status = response.status().as_u16();
        let session = response.headers().get("mcp-session-id");
        let session = session.and_then(|it| it.to_str().ok()).map(str::to_owned);
        let text = response.text().await.map_err(|error| chain(&error))?;
        Ok(Self { status, session, text })
    }

    /// The message, of which there may be a stream with notifications before it.
    pub(crate) fn message(&self) -> Value {
        let events = self.text.lines().rev().find_map(|line| line.strip_prefix("data:"));
        serde_json::from_str(events.unwrap_or(&self.text)).unwrap_or_default()
    }
}

/// A request with an id of its own: one that broke may still run.
pub(crate) fn request(method: &str, params: &Value) -> Value {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn call(tool: &str, arguments: &Value) -> Value {
    request("tools/call", &json!({"name": tool, "arguments": arguments}))
}

/// Opens a session of a client that can be asked.
pub(crate) async fn open(target: &Target) -> Result<Reply, String> {
    let params = json!({
        "protocolVersion": LEGACY, "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "chaos", "version": "1"},
    });
    let message = request("initialize", &params);
    Reply::of(body(target.request(Method::POST, "/mcp"), &message)).await
}

fn body(request: RequestBuilder, message: &Value) -> RequestBuilder {
    let request = request.header("accept", ACCEPT).header("content-type", "application/json");
    request.body(message.to_string())
}

/// A message in a session.
pub(crate) fn legacy(target: &Target, session: &str, message: &Value) -> RequestBuilder {
    let request = target.request(Method::POST, "/mcp").header("mcp-session-id", session);
    body(request, message)
}

pub(crate) async fn send(request: RequestBuilder) -> Result<Reply, String> {
    Reply::of(request).await
}

pub(crate) async fn end(target: &Target, session: &str) -> Result<Reply, String> {
    Reply::of(target.request(Method::DELETE, "/mcp").header("mcp-session-id", session)).await
}

/// The rest of a stream that broke off.
pub(crate) fn resume(target: &Target, session: &str, last: &str) -> RequestBuilder {
    let request = target.request(Method::GET, "/mcp").header("accept", "text/event-stream");
    request.header("mcp-session-id", session).header("last-event-id", last)
}

/// A request of the era without sessions.
pub(crate) async fn modern(
    target: &Target,
    method: &str,
    mut params: Value,
) -> Result<Reply, String> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    let name = params.get("name").and_then(Value::as_str).map(str::to_owned);
    let mut sent = body(target.request(Method::POST, "/mcp"), &request(method, &params));
    sent = sent.header("mcp-protocol-version", MODERN).header("mcp-method", method);
    if let Some(name) = name {
        sent = sent.header("mcp-name", name);
    }
    Reply::of(sent).await
}

/// The messages of a stream of events.
pub(crate) struct Messages {
    response: Response,
    buffer: Vec<u8>,
}

/// Why a stream cannot be read.
#[derive(Debug)]
pub(crate) enum StreamError {
    /// The server refused it, with this status and text.
    Refused(u16, String),
    /// The connection broke or never came about.
    Broken,
}

impl Messages {
    pub(crate) async fn of(request: RequestBuilder) -> Result<Self, StreamError> {
        let response = request.send().await.map_err(|_| StreamError::Broken)?;
        let status = response.status().as_u16();
        let is_stream =
            response.headers().get("content-type").is_some_and(|it| it == "text/event-stream");
        if !is_stream {
            let text = response.text().await.map_err(|_| StreamError::Broken)?;
            return Err(StreamError::Refused(status, text));
        }
        Ok(Self { response, buffer: Vec::new() })
    }

    /// The next message, with the id of its event.
    pub(crate) async fn next(&mut self) -> Result<(String, Value), StreamError> {
        loop {
            while let Some(end) = self.buffer.windows(2).position(|it| it == b"\n\n") {
                let event: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let event = String::from_utf8_lossy(&event).into_owned();
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or_default().trim().to_owned()
                };
                if let Ok(message) = serde_json::from_str(&field("data:")) {
                    return Ok((field("id:"), message));
                }
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.buffer.extend_from_slice(&chunk),
                Ok(None) | Err(_) => return Err(StreamError::Broken),
            }
        }
    }
}

/// The number of the replica in the id of an event, such as `31746-3-41`.
pub(crate) fn replica_of_event(id: &str) -> Option<u16> {
    id.split('-').next()?.parse().ok()
}
