//! An MCP server behind OAuth, with its authorization server, on loopback: what `haft login` meets.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// A server that answers only those who signed in. Stops when it is dropped.
pub struct Guarded {
    /// Where the MCP server is.
    pub url: String,
    facts: Arc<Facts>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Facts {
    origin: String,
    /// Lifetime of a token, in seconds.
    token_secs: u64,
    issued: Mutex<u32>,
    refreshed: Mutex<u32>,
    /// Number of tokens that a program got with its own credentials.
    granted: Mutex<u32>,
    /// The client ids that people were asked to allow.
    clients: Mutex<Vec<String>>,
    takes_documents: bool,
    challenges: Mutex<HashMap<String, String>>,
}

/// The client of a program, and its secret.
pub const CLIENT_ID: &str = "machine";
/// See [`CLIENT_ID`].
pub const CLIENT_SECRET: &str = "canary-client-secret-9f86d081";

type Shared = State<Arc<Facts>>;

impl Guarded {
    /// Starts it. A token of no seconds has to be refreshed before it is ever used.
    pub fn start(token_secs: u64) -> Self {
        Self::start_with(token_secs, false)
    }

    /// The same, with an authorization server that supports Client ID Metadata Documents.
    pub fn with_documents() -> Self {
        Self::start_with(3600, true)
    }

    fn start_with(token_secs: u64, takes_documents: bool) -> Self {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let facts = Arc::new(Facts {
            origin: origin.clone(),
            token_secs,
            issued: Mutex::default(),
            refreshed: Mutex::default(),
            granted: Mutex::default(),
            clients: Mutex::default(),
            takes_documents,
            challenges: Mutex::default(),
        });
        let routes = Router::new()
            .route("/mcp", post(mcp))
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(authorization_server))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(Arc::clone(&facts));
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let serving = axum::serve(listener, routes);
                tokio::select! {
                    served = serving => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        Self { url: format!("{origin}/mcp"), facts, stop: Some(stop), thread: Some(thread) }
    }

    /// Number of tokens that a program got with the id [`CLIENT_ID`] and the secret [`CLIENT_SECRET`].
    pub fn granted(&self) -> u32 {
        *self.facts.granted.lock()
    }

    /// The client ids that people were asked to allow.
    pub fn clients(&self) -> Vec<String> {
        self.facts.clients.lock().clone()
    }

    /// Ends the token that is in use.
    pub fn revoke(&self) {
        *self.facts.issued.lock() += 1;
    }

    /// Number of refresh tokens that were exchanged.
    pub fn refreshed(&self) -> u32 {
        *self.facts.refreshed.lock()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn mcp(State(facts): Shared, headers: HeaderMap, Json(message): Json<Value>) -> Response {
    let wanted = format!("Bearer canary-token-{}", *facts.issued.lock());
    if headers.get("authorization").is_none_or(|given| *given != *wanted) {
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", facts.origin);
        let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
        return (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)]).into_response();
    }
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "guarded", "version": "1"},
        }),
        Some("tools/list") => {
            json!({"tools": [{"name": "secret_word", "inputSchema": {"type": "object"}}]})
        }
        Some("tools/call") => json!({"content": [{"type": "text", "text": "swordfish"}]}),
        _ if message.get("id").is_none() => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "unknown"});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
            return Json(answer).into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result})).into_response()
}

async fn resource(State(facts): Shared) -> Json<Value> {
    let origin = &facts.origin;
    Json(json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]}))
}

async fn authorization_server(State(facts): Shared) -> Json<Value> {
    let origin = &facts.origin;
    Json(json!({
        "issuer": origin,
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"),
        "registration_endpoint": format!("{origin}/register"),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        "client_id_metadata_document_supported": facts.takes_documents,
    }))
}

async fn register(Json(mut client): Json<Value>) -> (StatusCode, Json<Value>) {
    client["client_id"] = json!("registered-client");
    client["token_endpoint_auth_method"] = json!("none");
    (StatusCode::CREATED, Json(client))
}

/// The person agrees at once.
async fn authorize(State(facts): Shared, Query(asked): Query<HashMap<String, String>>) -> Redirect {
    let code = "canary-code".to_owned();
    facts.clients.lock().push(asked["client_id"].clone());
    facts.challenges.lock().insert(code.clone(), asked["code_challenge"].clone());
    Redirect::to(&format!("{}?code={code}&state={}", asked["redirect_uri"], asked["state"]))
}

async fn token(
    State(facts): Shared,
    headers: HeaderMap,
    Form(asked): Form<HashMap<String, String>>,
) -> Response {
    match asked["grant_type"].as_str() {
        "client_credentials" => {
            let expected = basic(CLIENT_ID, CLIENT_SECRET);
            let is_known = headers.get("authorization").is_some_and(|given| *given == *expected);
            if !is_known || asked["resource"] != format!("{}/mcp", facts.origin) {
                let answer =
                    json!({"error": "invalid_client", "error_description": "unknown client"});
                return (StatusCode::UNAUTHORIZED, Json(answer)).into_response();
            }
            *facts.granted.lock() += 1;
        }
        "authorization_code" => {
            let challenge = facts.challenges.lock().remove(&asked["code"]);
            if challenge.as_deref() != Some(&challenge_of(&asked["code_verifier"])) {
                return (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant"})))
                    .into_response();
            }
        }
        _ => *facts.refreshed.lock() += 1,
    }
    let mut issued = facts.issued.lock();
    *issued += 1;
    Json(json!({
        "access_token": format!("canary-token-{issued}"),
        "refresh_token": format!("canary-refresh-{issued}"),
        "token_type": "Bearer",
        "expires_in": facts.token_secs,
    }))
    .into_response()
}

fn basic(id: &str, secret: &str) -> String {
    use base64::Engine;
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("{id}:{secret}"));
    format!("Basic {pair}")
}

fn challenge_of(verifier: &str) -> String {
    use base64::Engine;
    use sha2::Digest;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(sha2::Sha256::digest(verifier))
}
