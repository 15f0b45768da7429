//! Streamable HTTP, of both eras.

mod answer;
mod headers;
mod session;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};

use crate::channel::{Outbox, Peer};
use crate::dispatch;
use crate::gate::{Gate, plain, tapped, typed};
use crate::scenario::Era;
use crate::server::Server;
use crate::start;
use session::{Session, Sessions};

/// Everything the handler needs.
#[derive(Debug)]
struct Http {
    server: Arc<Server>,
    gate: Gate,
    sessions: Sessions,
    calls: AtomicU64,
}

/// Serves for ever.
pub async fn serve(server: &Arc<Server>, port: u16) -> std::io::Result<()> {
    let listener = start::listen(port, "http", "/mcp").await?;
    let http = Http {
        server: Arc::clone(server),
        gate: Gate::new(server),
        sessions: Sessions::default(),
        calls: AtomicU64::new(0),
    };
    let router = Router::new().fallback(handle).with_state(Arc::new(http));
    axum::serve(tapped(server, listener), router).await
}

async fn handle(State(http): State<Arc<Http>>, request: Request) -> Response {
    let (parts, body) = match http.gate.pass(request).await {
        Ok(passed) => passed,
        Err(response) => return response,
    };
    if parts.uri.path() != "/mcp" {
        return plain(404, "there is only /mcp here");
    }
    match parts.method.as_str() {
        "POST" => post(&http, &parts.headers, &body).await,
        "GET" if http.server.scenario.http.get_stream => http.get(&parts.headers),
        "DELETE" => http.delete(&parts.headers),
        _ => not_allowed(),
    }
}

async fn post(http: &Http, headers: &HeaderMap, body: &[u8]) -> Response {
    if !accepts(headers) {
        return refusal(406, -32000, "Not Acceptable: accept JSON and an event stream");
    }
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        return refusal(400, -32700, "Parse error");
    };
    match dispatch::era(&http.server, &message) {
        Era::Modern => http.modern(headers, message).await,
        Era::Legacy | Era::Both => http.legacy(headers, message).await,
    }
}

impl Http {
    async fn modern(&self, headers: &HeaderMap, message: Value) -> Response {
        if self.server.scenario.http.check_headers
            && let Err(why) = headers::check(&self.server, headers, &message)
        {
            self.server.facts.note("header_mismatch", json!({ "why": why }));
            let error = json!({ "code": -32020, "message": format!("Header mismatch: {why}") });
            let body = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
            return typed(400, "application/json", body.to_string());
        }
        // Nothing ties two requests together, so each has a client of its own.
        let (general, _) = Outbox::new();
        let peer = self.server.connect(general);
        self.exchange(&peer, message, Era::Modern).await
    }

    async fn legacy(&self, headers: &HeaderMap, message: Value) -> Response {
        let settings = &self.server.scenario.http;
        if message["method"] == "initialize" {
            let session = self.sessions.open(&self.server, settings.sessions);
            let mut response = self.exchange(&session.peer, message, Era::Legacy).await;
            if settings.sessions && response.status().is_success() {
                let id = session.id.parse().expect("a header value");
                response.headers_mut().insert("mcp-session-id", id);
            }
            return response;
        }
        let session = match self.session(headers) {
            Ok(session) => session,
            Err(response) if settings.expiry_names_request && response.status() == 404 => {
                return lost_session(&message["id"]);
            }
            Err(response) => return *response,
        };
        if message["method"] != "tools/call" {
            return self.exchange(&session.peer, message, Era::Legacy).await;
        }
        let number = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if settings.expire_session_at_call == Some(number) {
            self.sessions.close(&session.id);
            let names_request = settings.expiry_names_request;
            return lost_session(if names_request { &message["id"] } else { &Value::Null });
        }
        if number <= settings.resume_calls {
            let (out, frames) = Outbox::new();
            dispatch::handle(&self.server, &session.peer, message, out);
            let id = session.keep(self.server.next(), frames);
            return answer::interrupted(&id, settings.retry_ms);
        }
        self.exchange(&session.peer, message, Era::Legacy).await
    }

    /// Handles a message and answers as the scenario wants.
    async fn exchange(&self, peer: &Arc<Peer>, message: Value, era: Era) -> Response {
        let is_request = message.get("id").is_some() && message["method"].is_string();
        let (out, frames) = Outbox::new();
        dispatch::handle(&self.server, peer, message, out);
        if !is_request {
            return plain(202, Body::empty());
        }
        answer::answer(self.server.scenario.http.answer, era, peer, frames).await
    }

    fn get(&self, headers: &HeaderMap) -> Response {
        if self.server.scenario.era == Era::Modern {
            return not_allowed();
        }
        let session = match self.session(headers) {
            Ok(session) => session,
            Err(response) => return *response,
        };
        let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
        match last.and_then(|id| session.resume(id)) {
            Some(frames) => answer::resumed(frames),
            None => answer::general(&session),
        }
    }

    fn delete(&self, headers: &HeaderMap) -> Response {
        if self.server.scenario.era == Era::Modern {
            return not_allowed();
        }
        match self.session(headers) {
            Ok(session) => {
                self.sessions.close(&session.id);
                plain(200, Body::empty())
            }
            Err(response) => *response,
        }
    }

    /// The session of a request, or the answer to one without.
    fn session(&self, headers: &HeaderMap) -> Result<Arc<Session>, Box<Response>> {
        if !self.server.scenario.http.sessions {
            return Ok(self.sessions.shared(&self.server));
        }
        let Some(id) = headers.get("mcp-session-id").and_then(|id| id.to_str().ok()) else {
            return Err(Box::new(refusal(
                400,
                -32000,
                "Bad Request: No valid session ID provided",
            )));
        };
        self.sessions.find(id).ok_or_else(|| Box::new(refusal(404, -32001, "Session not found")))
    }
}

fn accepts(headers: &HeaderMap) -> bool {
    let all: Vec<_> = headers.get_all("accept").iter().filter_map(|a| a.to_str().ok()).collect();
    let all = all.join(", ");
    all.contains("*/*") || (all.contains("application/json") && all.contains("text/event-stream"))
}

fn not_allowed() -> Response {
    let mut response = refusal(405, -32000, "Method not allowed.");
    response.headers_mut().insert("allow", "POST".parse().expect("a header value"));
    response
}

fn refusal(status: u16, code: i64, message: &str) -> Response {
    refusal_of(&Value::Null, status, code, message)
}

fn lost_session(id: &Value) -> Response {
    refusal_of(id, 404, -32001, "Session not found")
}

fn refusal_of(id: &Value, status: u16, code: i64, message: &str) -> Response {
    let error = json!({ "code": code, "message": message });
    let body = json!({ "jsonrpc": "2.0", "error": error, "id": id });
    typed(status, "application/json", body.to_string())
}
