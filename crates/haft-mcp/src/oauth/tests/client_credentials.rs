//! Tokens without a person, against an authorization server for programs in this process.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use axum::{
    Form, Json, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use super::Log;
use crate::oauth::{AuthError, Authorizer, ClientCredentials, Login, RegisteredClient, Secret};

/// With characters that a form and a header spell differently.
const ID: &str = "my app:1";
const SECRET: &str = "canary secret+/=%&";

/// One request to the token endpoint.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    authorization: Option<String>,
    form: HashMap<String, String>,
}

/// The behaviour of the authorization server.
struct Facts {
    origin: String,
    /// Put over its metadata; `null` removes a field.
    metadata: Mutex<Value>,
    scopes: Mutex<Value>,
    expires_in: Mutex<u64>,
    refusal: Mutex<Option<(StatusCode, Value)>>,
    seen: Mutex<Vec<Seen>>,
}

struct Server {
    facts: Arc<Facts>,
    _running: AbortOnDropHandle<()>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let facts = Arc::new(Facts {
            origin: format!("http://{}", listener.local_addr().unwrap()),
            metadata: Mutex::new(json!({})),
            scopes: Mutex::new(Value::Null),
            expires_in: Mutex::new(3600),
            refusal: Mutex::default(),
            seen: Mutex::default(),
        });
        let app = Router::new()
            .route("/mcp", get(|| async { StatusCode::UNAUTHORIZED }))
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/token", post(token))
            .with_state(Arc::clone(&facts));
        let serving = async move { axum::serve(listener, app).await.unwrap() };
        let running = tokio_util::task::TaskTracker::new().spawn(serving);
        Self { facts, _running: AbortOnDropHandle::new(running) }
    }

    fn url(&self) -> Url {
        Url::parse(&format!("{}/mcp?key=canary", self.facts.origin)).unwrap()
    }

    fn client(issuer: Option<&str>) -> RegisteredClient {
        let secret = Some(Secret::new(SECRET));
        RegisteredClient { id: ID.into(), secret, issuer: issuer.map(Into::into) }
    }

    fn credentials(&self) -> ClientCredentials {
        ClientCredentials::new(Login::new(self.url(), "haft"), Self::client(None))
    }

    fn declare(&self, metadata: Value) {
        *self.facts.metadata.lock().unwrap() = metadata;
    }

    fn seen(&self) -> Vec<Seen> {
        self.facts.seen.lock().unwrap().clone()
    }
}

async fn resource(State(facts): State<Arc<Facts>>) -> Json<Value> {
    let origin = &facts.origin;
    let scopes = facts.scopes.lock().unwrap().clone();
    Json(json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin],
                "scopes_supported": scopes}))
}

/// No authorization endpoint and no PKCE: no person signs in here.
async fn metadata(State(facts): State<Arc<Facts>>) -> Json<Value> {
    let origin = &facts.origin;
    let mut metadata = json!({"issuer": origin, "token_endpoint": format!("{origin}/token"),
                              "grant_types_supported": ["client_credentials"]});
    for (key, value) in facts.metadata.lock().unwrap().as_object().unwrap() {
        metadata[key] = value.clone();
    }
    Json(metadata)
}

async fn token(
    State(facts): State<Arc<Facts>>,
    headers: HeaderMap,
    Form(form): Form<HashMap<String, String>>,
) -> Response {
    let authorization = headers.get(header::AUTHORIZATION);
    let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
    let mut seen = facts.seen.lock().unwrap();
    seen.push(Seen { authorization, form });
    if let Some((status, answer)) = &*facts.refusal.lock().unwrap() {
        return (*status, Json(answer.clone())).into_response();
    }
    Json(json!({
        "access_token": format!("canary-access-{}", seen.len()),
        "token_type": "bearer",
        "expires_in": *facts.expires_in.lock().unwrap(),
        "refresh_token": "canary-refresh",
    }))
    .into_response()
}

fn basic() -> String {
    format!("Basic {}", STANDARD.encode("my+app%3A1:canary+secret%2B%2F%3D%25%26"))
}

/// The secret goes where the authorization server wants it: in a header by default and where that is
/// declared, in the form where only that is.
#[tokio::test]
async fn the_secret_is_sent_as_the_authorization_server_declares() {
    let server = Server::start().await;
    let resource = format!("{}/mcp", server.facts.origin);
    let fields = |more: &[(&str, &str)]| -> HashMap<String, String> {
        let fields = [("grant_type", "client_credentials"), ("resource", &resource)];
        fields.iter().chain(more).map(|(key, value)| ((*key).into(), (*value).into())).collect()
    };
    let in_header = Seen { authorization: Some(basic()), form: fields(&[]) };
    let in_form =
        Seen { authorization: None, form: fields(&[("client_id", ID), ("client_secret", SECRET)]) };
    for (methods, expected) in [
        (Value::Null, &in_header),
        (json!(["client_secret_post", "client_secret_basic"]), &in_header),
        (json!(["private_key_jwt", "client_secret_post"]), &in_form),
    ] {
        server.declare(json!({"token_endpoint_auth_methods_supported": methods}));
        let token = server.credentials().token().await.unwrap().unwrap();
        assert!(token.starts_with("canary-access-"), "{methods}");
        assert_eq!(server.seen().last().unwrap(), expected, "{methods}");
    }
    server.declare(json!({"token_endpoint_auth_methods_supported": ["private_key_jwt"]}));
    let error = server.credentials().token().await.unwrap_err().to_string();
    assert!(error.ends_with("its authorization server accepts no client secret"), "{error}");
    assert_eq!(server.seen().len(), 3, "the secret was not sent");
}

/// The configured scopes are asked for and no others; without any, those that the server names, but no
/// refresh token.
#[tokio::test]
async fn scopes_are_the_configured_or_the_servers() {
    let server = Server::start().await;
    let asked = || server.seen().last().unwrap().form.get("scope").cloned();
    server.credentials().token().await.unwrap();
    assert_eq!(asked(), None);
    *server.facts.scopes.lock().unwrap() = json!(["read", "write", "offline_access"]);
    server.credentials().token().await.unwrap();
    assert_eq!(asked().as_deref(), Some("read write"));
    let login = Login::new(server.url(), "haft").with_scopes(vec!["admin".into(), "read".into()]);
    let credentials = ClientCredentials::new(login, Server::client(None));
    credentials.token().await.unwrap();
    assert_eq!(asked().as_deref(), Some("admin read"));
}

/// One token serves all callers until shortly before its end.
#[tokio::test]
async fn a_token_is_shared_and_renewed_before_its_end() {
    let server = Server::start().await;
    let credentials = server.credentials();
    let tokens = futures_util::future::join_all((0..50).map(|_| credentials.token())).await;
    assert!(tokens.into_iter().all(|it| it.unwrap().as_deref() == Some("canary-access-1")));
    assert_eq!(server.seen().len(), 1);

    *server.facts.expires_in.lock().unwrap() = 0;
    let credentials = server.credentials();
    for _ in 0..2 {
        credentials.token().await.unwrap();
    }
    assert_eq!(server.seen().len(), 3, "a token at its end is not used again");
}

/// A refused token is replaced once; one that was replaced meanwhile costs no request, and a new one that
/// is refused too is the end.
#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    let server = Server::start().await;
    let credentials = server.credentials();
    let first = credentials.token().await.unwrap();
    assert!(credentials.refused_token(first.as_deref(), 401, None).await.unwrap());
    let second = credentials.token().await.unwrap();
    assert_eq!(second.as_deref(), Some("canary-access-2"));
    assert!(credentials.refused_token(first.as_deref(), 401, None).await.unwrap(), "an old one");
    assert!(!credentials.refused_token(second.as_deref(), 401, None).await.unwrap());
    assert!(!credentials.refused(401, None).await.unwrap());
    let missing = Some("Bearer error=\"insufficient_scope\", scope=\"admin\"");
    assert!(!credentials.refused_token(second.as_deref(), 403, missing).await.unwrap());
    assert_eq!(server.seen().len(), 2);
}

/// The secret reaches no authorization server but the right one, and no address inside the network.
#[tokio::test]
async fn the_secret_goes_nowhere_else() {
    let server = Server::start().await;
    let login = || Login::new(server.url(), "haft");
    let elsewhere = Server::client(Some("https://auth.example"));
    let error = ClientCredentials::new(login(), elsewhere).token().await.unwrap_err();
    assert!(matches!(error, AuthError::Issuer { .. }), "{error}");
    for endpoint in ["http://169.254.169.254/token", "https://10.0.0.9/token", "file:///etc/passwd"]
    {
        server.declare(json!({"token_endpoint": endpoint}));
        let error = server.credentials().token().await.unwrap_err();
        assert!(matches!(error, AuthError::Address { .. }), "{endpoint}: {error}");
    }
    assert_eq!(server.seen(), []);
    server.declare(json!({}));
    let here = Server::client(Some(&server.facts.origin));
    assert!(ClientCredentials::new(login(), here).token().await.is_ok());
}

/// A refusal contains the authorization server's message, and no secret reaches an error, a log line or a debug
/// output, even if the authorization server repeats it.
#[tokio::test]
async fn a_refusal_is_reported_without_the_secret() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let server = Server::start().await;
    let refusal = |status, answer| *server.facts.refusal.lock().unwrap() = Some((status, answer));
    refusal(
        StatusCode::UNAUTHORIZED,
        json!({"error": "invalid_client", "error_description": format!("wrong: {SECRET}")}),
    );
    let credentials = server.credentials();
    let error = credentials.token().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the authorization server gave no token: invalid_client: wrong: ***"
    );
    assert_eq!(credentials.token().await.unwrap_err().to_string(), error.to_string());
    assert_eq!(server.seen().len(), 1, "a failure is not repeated at once");
    refusal(StatusCode::BAD_GATEWAY, json!(["canary"]));
    let broken = server.credentials().token().await.unwrap_err();
    assert!(broken.to_string().ends_with("it answered with HTTP 502"), "{broken}");
    refusal(StatusCode::OK, json!({"access_token": "canary-odd", "token_type": "mac"}));
    let odd = server.credentials().token().await.unwrap_err();
    assert!(odd.to_string().ends_with("its token is not a bearer token"), "{odd}");
    *server.facts.refusal.lock().unwrap() = None;
    let credentials = server.credentials();
    credentials.token().await.unwrap();
    let said = format!("{error:?}{broken:?}{odd:?}{credentials:?}");
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("could not get a token"), "{logged}");
    assert!(!format!("{said}{logged}").contains("canary"), "{said}{logged}");
}
