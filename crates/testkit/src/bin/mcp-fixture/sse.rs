//! HTTP with server-sent events, the transport before streamable HTTP: one stream for answers,
//! POST for messages. A POST to the stream's own address gets 405, as such servers answer.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::channel::{Outbox, Peer};
use crate::dispatch;
use crate::events;
use crate::gate::{Gate, plain, tapped, typed};
use crate::server::Server;
use crate::start;

/// Everything the handler needs.
#[derive(Debug)]
struct Sse {
    server: Arc<Server>,
    gate: Gate,
    streams: Mutex<HashMap<String, (Arc<Peer>, Outbox)>>,
}

/// Serves for ever.
pub async fn serve(server: &Arc<Server>, port: u16) -> std::io::Result<()> {
    let listener = start::listen(port, "http", "/sse").await?;
    let gate = Gate::new(server);
    let sse = Sse { server: Arc::clone(server), gate, streams: Mutex::default() };
    let router = Router::new().fallback(handle).with_state(Arc::new(sse));
    axum::serve(tapped(server, listener), router).await
}

async fn handle(State(sse): State<Arc<Sse>>, request: Request) -> Response {
    let (parts, body) = match sse.gate.pass(request).await {
        Ok(passed) => passed,
        Err(response) => return response,
    };
    let session = parts.uri.query().and_then(|query| query.strip_prefix("session="));
    match (parts.method.as_str(), parts.uri.path()) {
        ("GET", "/sse") => sse.open(),
        ("POST", "/message") => sse.take(session.unwrap_or_default(), &body),
        (_, "/sse" | "/message") => plain(405, "Method Not Allowed"),
        _ => plain(404, "there are only /sse and /message here"),
    }
}

impl Sse {
    fn open(&self) -> Response {
        let session = format!("{}-{}", std::process::id(), self.server.next());
        self.server.facts.note("session", json!({ "id": session }));
        let (out, frames) = Outbox::new();
        let peer = self.server.connect(out.clone());
        let settings = &self.server.scenario.sse;
        let endpoint = match &settings.endpoint {
            Some(endpoint) => endpoint.clone(),
            None => format!("/message?session={session}"),
        };
        self.streams.lock().insert(session, (peer, out));
        let first = if settings.no_endpoint {
            ": no endpoint\n\n".to_owned()
        } else {
            format!("event: endpoint\ndata: {endpoint}\n\n")
        };
        typed(200, "text/event-stream", events::body(first.into_bytes(), Box::new(frames)))
    }

    fn take(&self, session: &str, body: &[u8]) -> Response {
        let Some((peer, out)) = self.streams.lock().get(session).cloned() else {
            return plain(404, "Session not found");
        };
        match serde_json::from_slice::<Value>(body) {
            Ok(message) => {
                dispatch::handle(&self.server, &peer, message, out);
                plain(202, Body::from("Accepted"))
            }
            Err(error) => plain(400, format!("Invalid message: {error}")),
        }
    }
}
