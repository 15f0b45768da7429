//! An MCP server and its authorization server in one.

use std::{
    collections::HashMap,
    fmt::Write as _,
    net::Ipv4Addr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Form, Json, Router,
    body::Body,
    extract::{Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::{any, get, post},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

type Fields = HashMap<String, String>;

/// The requests that the server received.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) registrations: usize,
    pub(super) scopes: Vec<String>,
    /// The client ids that people were asked to allow.
    pub(super) clients: Vec<String>,
    pub(super) verifiers: Vec<String>,
    pub(super) exchanges: usize,
    pub(super) refreshes: usize,
    challenge: String,
}

/// The behaviour of the server.
#[derive(Default)]
pub(super) struct Behaviour {
    pub(super) refuse_refresh: AtomicBool,
    pub(super) fail_refresh: AtomicBool,
    pub(super) refuse_exchange: AtomicBool,
    /// There is no authorization server here.
    pub(super) silent: AtomicBool,
    pub(super) endless: AtomicBool,
    pub(super) silent_about_pkce: AtomicBool,
    pub(super) takes_documents: AtomicBool,
    pub(super) token_endpoint: Mutex<Option<String>>,
    pub(super) registration_endpoint: Mutex<Option<String>>,
    pub(super) elsewhere: Mutex<String>,
    seen: Mutex<Seen>,
    origin: String,
}

pub(super) struct TestServer {
    pub(super) state: Arc<Behaviour>,
    _running: AbortOnDropHandle<()>,
}

impl TestServer {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Behaviour { origin, ..Behaviour::default() });
        let app = Router::new()
            .route("/mcp", get(resource))
            .route("/.well-known/oauth-protected-resource/mcp", get(resource_metadata))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/elsewhere", any(elsewhere))
            .with_state(Arc::clone(&state));
        let serving = async move { axum::serve(listener, app).await.unwrap() };
        let running = tokio_util::task::TaskTracker::new().spawn(serving);
        Self { state, _running: AbortOnDropHandle::new(running) }
    }

    pub(super) fn url(&self) -> Url {
        Url::parse(&format!("{}/mcp?key=canary", self.state.origin)).unwrap()
    }

    pub(super) fn issuer(&self) -> String {
        format!("{}/", self.state.origin)
    }

    pub(super) fn challenge(&self, scope: &str) -> String {
        let origin = &self.state.origin;
        format!(
            "Bearer scope=\"{scope}\", \
             resource_metadata=\"{origin}/.well-known/oauth-protected-resource/mcp\""
        )
    }

    pub(super) fn seen(&self) -> Seen {
        self.state.seen.lock().unwrap().clone()
    }
}

async fn resource(State(state): State<Arc<Behaviour>>) -> Response {
    if state.endless.load(Ordering::Relaxed) {
        let (never, endless) = tokio::io::duplex(1);
        std::mem::forget(never);
        return Body::from_stream(tokio_util::io::ReaderStream::new(endless)).into_response();
    }
    StatusCode::UNAUTHORIZED.into_response()
}

async fn resource_metadata(State(state): State<Arc<Behaviour>>) -> Response {
    if state.silent.load(Ordering::Relaxed) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let origin = &state.origin;
    Json(json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]}))
        .into_response()
}

async fn metadata(State(state): State<Arc<Behaviour>>) -> Response {
    if state.silent.load(Ordering::Relaxed) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let origin = &state.origin;
    let token = state.token_endpoint.lock().unwrap().clone();
    let registration = state.registration_endpoint.lock().unwrap().clone();
    let mut metadata = json!({
        "issuer": origin,
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": token.unwrap_or_else(|| format!("{origin}/token")),
        "registration_endpoint": registration.unwrap_or_else(|| format!("{origin}/register")),
        "response_types_supported": ["code"],
        "authorization_response_iss_parameter_supported": true,
    });
    if !state.silent_about_pkce.load(Ordering::Relaxed) {
        metadata["code_challenge_methods_supported"] = json!(["S256"]);
    }
    if state.takes_documents.load(Ordering::Relaxed) {
        metadata["client_id_metadata_document_supported"] = json!(true);
    }
    Json(metadata).into_response()
}

async fn register(State(state): State<Arc<Behaviour>>, Json(asked): Json<Value>) -> Response {
    if state.silent.load(Ordering::Relaxed) {
        return StatusCode::NOT_FOUND.into_response();
    }
    state.seen.lock().unwrap().registrations += 1;
    let answer = json!({
        "client_id": "registered",
        "client_secret": "canary-client-secret",
        "redirect_uris": asked["redirect_uris"],
    });
    (StatusCode::CREATED, Json(answer)).into_response()
}

async fn authorize(State(state): State<Arc<Behaviour>>, Query(asked): Query<Fields>) -> Redirect {
    let mut seen = state.seen.lock().unwrap();
    seen.scopes.push(asked.get("scope").cloned().unwrap_or_default());
    seen.clients.push(asked["client_id"].clone());
    seen.challenge.clone_from(&asked["code_challenge"]);
    assert_eq!(asked["code_challenge_method"], "S256");
    assert_eq!(asked["resource"], format!("{}/mcp", state.origin));
    let mut back = Url::parse(&asked["redirect_uri"]).unwrap();
    back.query_pairs_mut()
        .append_pair("code", "canary-code")
        .append_pair("state", &asked["state"])
        .append_pair("iss", &state.origin);
    Redirect::to(back.as_str())
}

async fn token(
    State(state): State<Arc<Behaviour>>,
    headers: HeaderMap,
    Form(asked): Form<Fields>,
) -> Response {
    // A client that is a document is public, so it has no secret.
    let is_document = asked.get("client_id").is_some_and(|id| id.starts_with("https://"));
    assert_ne!(headers.contains_key(header::AUTHORIZATION), is_document, "{asked:?}");
    let mut seen = state.seen.lock().unwrap();
    let number = match asked["grant_type"].as_str() {
        "authorization_code" => {
            seen.exchanges += 1;
            assert_eq!(asked["code"], "canary-code");
            assert_eq!(challenge_of(&asked["code_verifier"]), seen.challenge);
            seen.verifiers.push(asked["code_verifier"].clone());
            seen.exchanges
        }
        "refresh_token" => {
            seen.refreshes += 1;
            if state.fail_refresh.load(Ordering::Relaxed) {
                return (StatusCode::SERVICE_UNAVAILABLE, "later").into_response();
            }
            let expected = format!("canary-refresh-{}", seen.refreshes + seen.exchanges - 1);
            if state.refuse_refresh.load(Ordering::Relaxed) || asked["refresh_token"] != expected {
                let answer = json!({"error": "invalid_grant"});
                return (StatusCode::BAD_REQUEST, Json(answer)).into_response();
            }
            seen.refreshes + seen.exchanges
        }
        other => panic!("{other}"),
    };
    if state.refuse_exchange.load(Ordering::Relaxed) {
        return Json(json!({"access_token": "canary-odd", "token_type": ["canary"]}))
            .into_response();
    }
    let answer = json!({
        "access_token": format!("canary-access-{number}"),
        "refresh_token": format!("canary-refresh-{number}"),
        "id_token": "canary-id",
        "token_type": "Bearer",
        "expires_in": 3600,
    });
    Json(answer).into_response()
}

async fn elsewhere(State(state): State<Arc<Behaviour>>) -> Redirect {
    Redirect::temporary(&state.elsewhere.lock().unwrap())
}

/// The S256 challenge: base64url of the hash.
fn challenge_of(verifier: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = Sha256::digest(verifier.as_bytes()).iter().fold(String::new(), |mut bits, byte| {
        write!(bits, "{byte:08b}").unwrap();
        bits
    });
    let sextets = bits.as_bytes().chunks(6).map(|six| {
        let six = format!("{:0<6}", std::str::from_utf8(six).unwrap());
        char::from(LETTERS[usize::from_str_radix(&six, 2).unwrap()])
    });
    sextets.collect()
}
