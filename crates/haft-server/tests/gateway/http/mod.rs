//! The gateway over streamable HTTP, as clients see it byte by byte.

mod approvals;
mod attacks;
mod bridge;
mod crowds;
mod declared;
mod late;
mod modern;
mod offers;
mod people;
mod rates;
mod servers;
mod sessions;
mod streams;

use std::collections::VecDeque;

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;

use crate::served::{Answer, Served, answer};

const SESSION: &str = "mcp-session-id";
const BOTH: &str = "application/json, text/event-stream";

/// `haft serve`, asked at `/mcp`.
pub(crate) struct Gateway {
    pub(crate) served: Served,
}

impl Gateway {
    pub(crate) fn open(workspace: Workspace) -> Self {
        Self { served: Served::open(workspace) }
    }

    /// With two keys that may call tools.
    pub(crate) fn with_two_keys(workspace: Workspace) -> (Self, [String; 2]) {
        let keys = [("a", Scope::Call), ("b", Scope::Call)];
        let (served, texts) = Served::with_keys(workspace, &keys);
        (Self { served }, texts.try_into().unwrap())
    }

    pub(crate) fn request(&self, headers: &[(&str, &str)], body: &str) -> reqwest::RequestBuilder {
        let mut request = self.served.request(Method::POST, "/mcp").body(body.to_owned());
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        if !headers.iter().any(|(name, _)| *name == "accept") {
            request = request.header("accept", BOTH);
        }
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    }

    /// Posts one message and takes the whole answer.
    pub(crate) async fn post(&self, headers: &[(&str, &str)], message: &Value) -> Answer {
        answer(self.request(headers, &message.to_string())).await
    }

    /// Posts one message and reads the answer as events, or as the one event that a JSON answer is.
    pub(crate) async fn course(&self, headers: &[(&str, &str)], message: &Value) -> Events {
        Events::of(self.request(headers, &message.to_string()).send().await.unwrap()).await
    }

    /// Opens the notification stream, or resumes one.
    pub(crate) async fn listen(&self, headers: &[(&str, &str)]) -> Events {
        let request =
            self.served.request(Method::GET, "/mcp").header("accept", "text/event-stream");
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Events::of(request.send().await.unwrap()).await
    }

    /// Opens a session with these capabilities.
    pub(crate) async fn session(&self, capabilities: &Value) -> Session<'_> {
        self.session_as(&[], capabilities).await
    }

    /// The same with more headers, such as a key.
    pub(crate) async fn session_as(
        &self,
        headers: &[(&str, &str)],
        capabilities: &Value,
    ) -> Session<'_> {
        let opened = self.post(headers, &initialize(capabilities)).await;
        assert_eq!(opened.status, 200, "{}", opened.text);
        let id = opened.header(SESSION).to_owned();
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let session = Session { gateway: self, id, headers };
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(session.post(&ready).await.status, 202);
        session
    }

    /// Asks in the modern era.
    pub(crate) async fn modern(&self, id: u64, method: &str, params: Value) -> Events {
        let message = modern_request(id, method, params, &json!({}));
        self.course(&modern_headers(&message).as_pairs(), &message).await
    }
}

/// A session of the legacy era.
pub(crate) struct Session<'a> {
    gateway: &'a Gateway,
    pub(crate) id: String,
    headers: Vec<(String, String)>,
}

impl Session<'_> {
    fn headers(&self) -> Vec<(&str, &str)> {
        let own = [(SESSION, &*self.id), ("mcp-protocol-version", "2025-11-25")];
        self.headers.iter().map(|(name, value)| (&**name, &**value)).chain(own).collect()
    }

    pub(crate) async fn post(&self, message: &Value) -> Answer {
        self.gateway.post(&self.headers(), message).await
    }

    /// The course of a request.
    pub(crate) async fn course(&self, id: u64, method: &str, params: &Value) -> Events {
        self.gateway.course(&self.headers(), &request(id, method, params)).await
    }

    /// The answer to a request; notifications before it are skipped.
    pub(crate) async fn ask(&self, method: &str, params: &Value) -> Value {
        self.course(1, method, params).await.answer().await
    }

    pub(crate) async fn listen(&self, last: Option<&str>) -> Events {
        let mut headers = self.headers();
        headers.extend(last.map(|last| ("last-event-id", last)));
        self.gateway.listen(&headers).await
    }

    pub(crate) async fn delete(&self) -> u16 {
        let request = self.gateway.served.request(Method::DELETE, "/mcp");
        let headers = self.headers();
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        answer(request).await.status
    }
}

/// The received events.
pub(crate) struct Events {
    pub(crate) status: u16,
    response: reqwest::Response,
    is_stream: bool,
    text: String,
    waiting: VecDeque<Event>,
}

pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) data: String,
}

impl Events {
    async fn of(response: reqwest::Response) -> Self {
        let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap());
        let is_stream = kind == Some("text/event-stream");
        let status = response.status().as_u16();
        let mut events =
            Self { status, response, is_stream, text: String::new(), waiting: VecDeque::new() };
        if !is_stream {
            while let Some(chunk) = events.response.chunk().await.unwrap() {
                events.text.push_str(std::str::from_utf8(&chunk).unwrap());
            }
            let data = std::mem::take(&mut events.text);
            events.waiting.push_back(Event { id: String::new(), data });
        }
        events
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// The next event; nothing at the end.
    pub(crate) async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            while let Some(end) = self.text.find("\n\n") {
                let block = self.text.drain(..end + 2).collect::<String>();
                let field = |name: &str| {
                    let lines = block.lines().filter_map(|line| line.strip_prefix(name));
                    lines.map(str::trim_start).collect::<Vec<_>>().join("\n")
                };
                let event = Event { id: field("id:"), data: field("data:") };
                if !block.starts_with(':') {
                    self.waiting.push_back(event);
                }
            }
            if self.waiting.is_empty() {
                let chunk = self.response.chunk().await.unwrap()?;
                self.text.push_str(std::str::from_utf8(&chunk).unwrap());
            }
        }
    }

    /// The next message; nothing at the end. Events that only give a place to come back to are passed over.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.event().await?;
            if !event.data.is_empty() {
                return Some(serde_json::from_str(&event.data).unwrap());
            }
        }
    }

    /// The answer at the end; notifications before it are skipped.
    pub(crate) async fn answer(&mut self) -> Value {
        loop {
            let message = self.message().await.expect("an answer before the end");
            if message.get("method").is_none() {
                return message;
            }
        }
    }
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn initialize(capabilities: &Value) -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": capabilities,
        "clientInfo": {"name": "test", "version": "1"},
    });
    request(0, "initialize", &params)
}

/// A request of the modern era by a client with these capabilities.
pub(crate) fn modern_request(id: u64, method: &str, mut params: Value, capable: &Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capable.clone();
    request(id, method, &params)
}

/// The headers such a request has.
pub(crate) struct ModernHeaders(Vec<(&'static str, String)>);

impl ModernHeaders {
    pub(crate) fn as_pairs(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|(name, value)| (*name, &**value)).collect()
    }
}

pub(crate) fn modern_headers(message: &Value) -> ModernHeaders {
    let method = message["method"].as_str().unwrap();
    let mut headers =
        vec![("mcp-protocol-version", "2026-07-28".to_owned()), ("mcp-method", method.to_owned())];
    let name = match method {
        "tools/call" | "prompts/get" => message["params"]["name"].as_str(),
        "resources/read" => message["params"]["uri"].as_str(),
        _ => None,
    };
    headers.extend(name.map(|name| ("mcp-name", name.to_owned())));
    ModernHeaders(headers)
}
