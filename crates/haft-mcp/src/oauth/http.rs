//! The HTTP client of the sign-in flow: guarded addresses, bounded answers, no redirects.

use std::{sync::Arc, time::Duration};

use haft_bounds::json::Budget;
use http::header::{HeaderValue, USER_AGENT};
use parking_lot::Mutex;
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
};
use serde_json::Value;
use url::Url;

use super::{
    AuthError,
    guard::{Guard, GuardedResolver, shown},
};
use crate::http_client::{HttpClient, HttpClientOptions, HttpError, Response};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// The most values and keys of an answer.
const ANSWER_NODES: Budget = Budget::nodes(10_000);
const IDLE_MAX: Duration = Duration::from_secs(4);
const IDLE_CONNECTIONS_MAX: usize = 4;
const AGENT: HeaderValue = HeaderValue::from_static(concat!("haft/", env!("CARGO_PKG_VERSION")));

/// The client for the OAuth flow. The flow turns errors into strings, so the first real one is kept here for its
/// starter.
pub(crate) struct GuardedHttp {
    client: HttpClient,
    guard: Arc<Guard>,
    server: Url,
    endpoints: Endpoints,
    problem: Mutex<Option<AuthError>>,
    resource: Mutex<Option<String>>,
}

/// Which endpoints of the authorization server are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoints {
    /// A person signs in at one, and the other gives tokens.
    Both,
    /// No person signs in.
    TokenOnly,
}

impl GuardedHttp {
    pub(crate) fn new(
        server: &Url,
        guard: &Guard,
        endpoints: Endpoints,
    ) -> Result<Self, AuthError> {
        let resolver = Arc::new(guard.clone().with_proxies());
        let options = HttpClientOptions {
            connect_timeout: CONNECT_TIMEOUT,
            idle_max: IDLE_MAX,
            idle_connections_max: IDLE_CONNECTIONS_MAX,
        };
        let client = HttpClient::with_resolver(options, Arc::new(GuardedResolver(resolver)))
            .map_err(|error| AuthError::Setup { problem: error.to_string() })?;
        let guard = Arc::new(guard.clone());
        Ok(Self {
            client,
            guard,
            server: server.clone(),
            endpoints,
            problem: Mutex::default(),
            resource: Mutex::default(),
        })
    }

    /// The identifier that the server's metadata gives the server, which the flow checks and keeps to
    /// itself.
    pub(crate) fn resource(&self) -> Option<String> {
        self.resource.lock().clone()
    }

    /// The cause behind the text that the flow reports.
    pub(crate) fn take_problem(&self) -> Option<AuthError> {
        self.problem.lock().take()
    }

    pub(crate) async fn send(
        &self,
        request: http::Request<Vec<u8>>,
    ) -> Result<http::Response<Vec<u8>>, AuthError> {
        let (mut head, body) = request.into_parts();
        let url: Url = head.uri.to_string().parse().map_err(|_| AuthError::Setup {
            problem: "an address of the flow cannot be used".to_owned(),
        })?;
        self.guard.check(&url)?;
        head.headers.entry(USER_AGENT).or_insert(AGENT);
        let exchange = self.exchange(&url, head, body);
        tokio::time::timeout(ANSWER_TIMEOUT, exchange).await.unwrap_or_else(|_| {
            let silent = format!("no answer within {ANSWER_TIMEOUT:?}");
            Err(unreachable(&url, HttpError::Lost(silent.into())))
        })
    }

    async fn exchange(
        &self,
        url: &Url,
        head: http::request::Parts,
        body: Vec<u8>,
    ) -> Result<http::Response<Vec<u8>>, AuthError> {
        let probe = head.method == http::Method::GET && *url == self.server;
        let sent = self.client.send(head.method, url, head.headers, body).await;
        let response = sent.map_err(|error| unreachable(url, error))?;
        let mut answer = http::Response::builder().status(response.status());
        if let Some(headers) = answer.headers_mut() {
            headers.clone_from(response.headers());
        }
        let body = if probe {
            // The server's own endpoint is requested only for its challenge. Its body may be an event stream that
            // never ends, and no other status of it concerns signing in.
            if response.status() != http::StatusCode::UNAUTHORIZED {
                answer = answer.status(http::StatusCode::NOT_FOUND);
            }
            Vec::new()
        } else {
            self.document(read(url, response).await?)
        };
        answer.body(body).map_err(|error| AuthError::Setup { problem: error.to_string() })
    }
}

impl GuardedHttp {
    /// Reads the server's metadata document. An authorization server for programs may have no authorization endpoint
    /// (RFC 8414), which the flow demands of every document; the token endpoint, which is checked anyway, takes its
    /// place and is never opened as a page.
    fn document(&self, body: Vec<u8>) -> Vec<u8> {
        if self.endpoints == Endpoints::Both {
            return body;
        }
        let Ok(Value::Object(mut document)) = serde_json::from_slice(&body) else { return body };
        if let Some(Value::String(resource)) = document.get("resource")
            && document.contains_key("authorization_servers")
        {
            let mut noted = self.resource.lock();
            *noted = Some(resource.clone());
        }
        match document.get("token_endpoint").cloned() {
            Some(token) if !document.contains_key("authorization_endpoint") => {
                document.insert("authorization_endpoint".to_owned(), token);
                serde_json::to_vec(&document).unwrap_or(body)
            }
            _ => body,
        }
    }
}

/// Redirects are never followed here. The flow follows those of metadata itself, within one origin
/// and through this client, and refuses all others.
impl OAuthHttpClient for GuardedHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            self.send(request.request).await.map_err(|error| {
                let mut problem = self.problem.lock();
                problem.get_or_insert_with(|| error.clone());
                Box::new(error) as OAuthHttpClientError
            })
        })
    }
}

async fn read(url: &Url, mut response: Response) -> Result<Vec<u8>, AuthError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(url, error))? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            let problem = format!("it is longer than {ANSWER_BYTES_MAX} bytes");
            return Err(AuthError::Answer { url: shown(url), problem });
        }
        body.extend_from_slice(&chunk);
    }
    if ANSWER_NODES.check(&body).is_err() {
        let problem = format!("it has more than {} values", ANSWER_NODES.nodes_max);
        return Err(AuthError::Answer { url: shown(url), problem });
    }
    Ok(body)
}

/// A refusal by the guarded resolver arrives wrapped in a connection error.
fn unreachable(url: &Url, error: HttpError) -> AuthError {
    match error.find_cause::<AuthError>() {
        Some(refused) => refused.clone(),
        None => AuthError::Unreachable { url: shown(url), source: Arc::new(error) },
    }
}
