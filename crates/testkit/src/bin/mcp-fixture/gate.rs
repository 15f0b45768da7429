//! The first step of every HTTP request: it is recorded, and a fault may hit it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::response::Response;
use axum::serve::{Listener, ListenerExt};
use futures_util::{StreamExt, stream};
use serde_json::{Map, Value, json};
use tokio::net::{TcpListener, TcpStream};

use crate::scenario::Action;
use crate::server::Server;

/// The largest body a fixture reads.
const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The sent part of an answer that is never finished.
const HALF_JSON: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"cont"#;
const HALF_EVENT: &str = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"resu";

/// The faults of a scenario and how often each was up for use.
#[derive(Debug)]
pub struct Gate {
    server: Arc<Server>,
    used: Vec<AtomicU64>,
}

impl Gate {
    /// A gate for one server.
    pub fn new(server: &Arc<Server>) -> Self {
        let used = server.scenario.faults.iter().map(|_| AtomicU64::new(0)).collect();
        Self { server: Arc::clone(server), used }
    }

    /// Lets a request through with its body, or answers with a fault.
    pub async fn pass(&self, request: Request) -> Result<(Parts, Bytes), Response> {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, BODY_BYTES_MAX).await.unwrap_or_default();
        self.note(parts.method.as_str(), &parts.uri.to_string(), &headers(&parts));
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        if !message.is_null() {
            self.server.facts.received(&message);
        }
        match self.fault(parts.method.as_str(), message["method"].as_str()) {
            Some(action) => Err(answer(action, parts.uri.path(), &message["id"]).await),
            None => Ok((parts, body)),
        }
    }

    /// Notes a request.
    pub fn note(&self, method: &str, path: &str, headers: &Map<String, Value>) {
        let fact = json!({ "method": method, "path": path, "headers": headers });
        self.server.facts.note("http", fact);
    }

    /// The fault that hits a request, if one does.
    pub fn fault(&self, method: &str, rpc: Option<&str>) -> Option<&Action> {
        let faults = self.server.scenario.faults.iter().zip(&self.used);
        for (fault, used) in faults {
            let method_fits = fault.method.as_deref().is_none_or(|wanted| wanted == method);
            let rpc_fits = fault.rpc.is_none() || fault.rpc.as_deref() == rpc;
            if !method_fits || !rpc_fits {
                continue;
            }
            let before = used.fetch_add(1, Ordering::SeqCst);
            let end = fault.times.map_or(u64::MAX, |times| fault.skip.saturating_add(times));
            if (fault.skip..end).contains(&before) {
                return Some(&fault.action);
            }
        }
        None
    }
}

/// Notes every connection and sends without delay.
pub fn tapped(server: &Arc<Server>, listener: TcpListener) -> impl Listener<Addr: std::fmt::Debug> {
    let server = Arc::clone(server);
    listener.tap_io(move |stream: &mut TcpStream| {
        // If it fails, the connection is gone, which the first read reports.
        drop(stream.set_nodelay(true));
        server.facts.note("connection", json!({ "transport": "tcp" }));
    })
}

/// A response without much in it.
pub fn plain(status: u16, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status.try_into().unwrap_or_default();
    response
}

/// A response with a type.
pub fn typed(status: u16, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = plain(status, body);
    response.headers_mut().insert("content-type", content_type.parse().expect("a header value"));
    response
}

fn headers(parts: &Parts) -> Map<String, Value> {
    let mut headers = Map::new();
    for (name, value) in &parts.headers {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        match headers.get_mut(name.as_str()) {
            Some(Value::String(earlier)) => *earlier = format!("{earlier}, {value}"),
            _ => drop(headers.insert(name.to_string(), json!(value))),
        }
    }
    headers
}

async fn answer(action: &Action, path: &str, id: &Value) -> Response {
    match action {
        Action::AnswerError { status, code, message } => {
            let error = json!({ "code": code, "message": message });
            let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
            typed(*status, "application/json", body.to_string())
        }
        Action::Answer { status, headers, body } => {
            let mut response = plain(*status, body.clone());
            for (name, value) in headers {
                let name = axum::http::HeaderName::try_from(name).expect("a header name");
                response.headers_mut().append(name, value.parse().expect("a header value"));
            }
            response
        }
        Action::Redirect(to) => {
            let to = if to == "self" { path } else { to };
            let mut response = plain(307, Body::empty());
            response.headers_mut().insert("location", to.parse().expect("a URL"));
            response
        }
        Action::Stall => std::future::pending().await,
        Action::StallMidway => {
            let half = stream::once(async { Ok::<_, std::io::Error>(HALF_JSON) });
            typed(200, "application/json", Body::from_stream(half.chain(stream::pending())))
        }
        Action::Drip(every_ms) => {
            let pause = Duration::from_millis(*every_ms);
            let half = stream::once(async { Ok::<_, std::io::Error>(HALF_JSON) });
            let rest = stream::unfold((), move |()| async move {
                tokio::time::sleep(pause).await;
                Some((Ok("x"), ()))
            });
            typed(200, "application/json", Body::from_stream(half.chain(rest)))
        }
        Action::Cut => typed(200, "application/json", cut(HALF_JSON)),
        Action::CutSse => typed(200, "text/event-stream", cut(HALF_EVENT)),
    }
}

/// A body that breaks off.
fn cut(half: &'static str) -> Body {
    let broken = || std::io::Error::other("cut");
    // The half leaves before the break, because the break ends the connection at once.
    let then = stream::once(async move {
        tokio::task::yield_now().await;
        Err(broken())
    });
    Body::from_stream(stream::once(async move { Ok(half) }).chain(then))
}
