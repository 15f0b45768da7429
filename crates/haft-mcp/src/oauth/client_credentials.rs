//! Tokens for a server that no person signs in at: the client credentials grant.

use std::{fmt, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde_json::Value;
use tokio::{sync::Mutex, time::Instant};
use url::{Url, form_urlencoded};

use super::{
    AuthError, Authorizer, BoxFuture, Grant, Login, RegisteredClient,
    error::clip,
    flow::Flow,
    grant::GrantClient,
    guard::shown,
    login::{OFFLINE_ACCESS, check_bound},
};

/// A failed request for a token is not repeated before this.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// A token that came after a refusal and is refused within this time: a third token would not help.
const JUST_NOW: Duration = Duration::from_secs(5);

/// Gets tokens with the id and secret of a registered client.
///
/// Never asks a person. Tokens stay in memory and are renewed shortly before they expire, and once after
/// a refusal.
pub struct ClientCredentials {
    login: Login,
    client: RegisteredClient,
    /// Held while a token is requested, so that callers share one request. A caller that is cancelled
    /// meanwhile loses nothing: the next one requests another token.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    grant: Option<Grant>,
    failed: Option<(Instant, AuthError)>,
    /// When the current token was requested because its predecessor was refused.
    renewed_at: Option<Instant>,
}

/// The way in which the client presents its secret to the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuthMethod {
    Basic,
    Post,
}

impl ClientCredentials {
    /// Requests tokens for the server of `login` as `client`, which needs a secret.
    pub fn new(login: Login, client: RegisteredClient) -> Self {
        Self { login: login.without_person(), client, state: Mutex::default() }
    }

    async fn current(&self) -> Result<String, AuthError> {
        let mut state = self.state.lock().await;
        if let Some(grant) = state.grant.as_ref().filter(|grant| !grant.is_ending()) {
            return Ok(grant.access_token.expose().to_owned());
        }
        match self.renew(&mut state).await {
            Ok(token) => Ok(token),
            // The old token is still valid for a short time; the next request retries.
            Err(error) => match state.grant.as_ref().filter(|grant| !grant.has_ended()) {
                Some(grant) => Ok(grant.access_token.expose().to_owned()),
                None => Err(error),
            },
        }
    }

    async fn after_refusal(&self, refused: Option<&str>, status: u16) -> Result<bool, AuthError> {
        // Another token of the same client allows no more than this one.
        if status != 401 {
            return Ok(false);
        }
        let mut state = self.state.lock().await;
        let current = state.grant.as_ref().map(|grant| grant.access_token.expose());
        if let (Some(refused), Some(current)) = (refused, current)
            && refused != current
        {
            return Ok(true);
        }
        if state.renewed_at.is_some_and(|at| at.elapsed() < JUST_NOW) {
            return Ok(false);
        }
        self.renew(&mut state).await?;
        state.renewed_at = Some(Instant::now());
        Ok(true)
    }

    async fn renew(&self, state: &mut State) -> Result<String, AuthError> {
        if let Some((at, error)) = &state.failed
            && at.elapsed() < RETRY_AFTER
        {
            return Err(error.clone());
        }
        let server = shown(self.login.server());
        match self.request().await {
            Ok(grant) => {
                tracing::debug!(server, "got a token");
                let token = grant.access_token.expose().to_owned();
                *state = State { grant: Some(grant), ..State::default() };
                Ok(token)
            }
            Err(error) => {
                tracing::warn!(server, %error, "could not get a token");
                state.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Finds the authorization server and requests a token from it.
    async fn request(&self) -> Result<Grant, AuthError> {
        let flow = self.login.discover(None).await?;
        if !flow.source.is_discovered() {
            return Err(flow.unusable("it publishes nothing about it"));
        }
        let issuer = flow.issuer();
        check_bound(self.client.issuer.as_ref(), issuer.as_ref())?;
        let method = auth_method(&flow)?;
        let scopes = self.scopes(&flow).await;
        let resource = flow.http.resource().unwrap_or_else(|| canonical(self.login.server()));
        let request = self.token_request(&flow, method, &scopes, &resource)?;
        let response = flow.http.send(request).await?;
        let answer = self.read(&response)?;
        let client =
            GrantClient { id: self.client.id.clone(), secret: None, redirect: String::new() };
        Grant::from_value(self.login.server(), issuer, client, &answer, &scopes)
    }

    /// The configured scopes, or those that the server names. A refresh token is of no use here.
    async fn scopes(&self, flow: &Flow) -> Vec<String> {
        if !self.login.configured_scopes().is_empty() {
            return self.login.configured_scopes().to_vec();
        }
        let mut scopes = flow.manager.select_initial_scopes(&[]).await;
        scopes.retain(|scope| scope != OFFLINE_ACCESS);
        scopes
    }

    fn token_request(
        &self,
        flow: &Flow,
        method: AuthMethod,
        scopes: &[String],
        resource: &str,
    ) -> Result<http::Request<Vec<u8>>, AuthError> {
        let unusable = || AuthError::Setup { problem: "the client cannot be sent".into() };
        let secret = self.client.secret.as_ref().ok_or_else(unusable)?;
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials");
        form.append_pair("resource", resource);
        if !scopes.is_empty() {
            form.append_pair("scope", &scopes.join(" "));
        }
        let mut request = http::Request::post(&flow.metadata.token_endpoint)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json");
        match method {
            AuthMethod::Basic => {
                // RFC 6749, 2.3.1: both parts are form-encoded first.
                let encoded = |text: &str| -> String {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect()
                };
                let pair = format!("{}:{}", encoded(&self.client.id), encoded(secret.expose()));
                let value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)));
                let mut value = value.map_err(|_| unusable())?;
                value.set_sensitive(true);
                request = request.header(AUTHORIZATION, value);
            }
            AuthMethod::Post => {
                form.append_pair("client_id", &self.client.id);
                form.append_pair("client_secret", secret.expose());
            }
        }
        request.body(form.finish().into_bytes()).map_err(|_| unusable())
    }

    /// The token response, or the error that the authorization server gave. Nothing else of its answer is
    /// repeated: it may hold a token.
    fn read(&self, response: &http::Response<Vec<u8>>) -> Result<Value, AuthError> {
        let failed = |problem: String| Err(AuthError::Token { problem });
        let answer: Option<Value> = serde_json::from_slice(response.body()).ok();
        if response.status() == http::StatusCode::OK
            && let Some(answer) = answer
        {
            return Ok(answer);
        }
        let text = |key: &str| answer_text(response.body(), key);
        let Some(error) = text("error") else {
            return failed(format!("it answered with HTTP {}", response.status().as_u16()));
        };
        let more = text("error_description").map(|more| format!(": {more}")).unwrap_or_default();
        let mut problem = format!("{error}{more}");
        if let Some(secret) = self.client.secret.as_ref().filter(|it| !it.expose().is_empty()) {
            problem = problem.replace(secret.expose(), "***");
        }
        failed(clip(&problem))
    }
}

impl Authorizer for ClientCredentials {
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, AuthError>> {
        Box::pin(async { self.current().await.map(Some) })
    }

    fn refused<'a>(
        &'a self,
        status: u16,
        _www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, AuthError>> {
        Box::pin(self.after_refusal(None, status))
    }

    fn refused_token<'a>(
        &'a self,
        token: Option<&'a str>,
        status: u16,
        _www_authenticate: Option<&'a str>,
    ) -> BoxFuture<'a, Result<bool, AuthError>> {
        Box::pin(self.after_refusal(token, status))
    }
}

impl fmt::Debug for ClientCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCredentials")
            .field("login", &self.login)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// The authorization server's declared method. One that declares nothing accepts `client_secret_basic` (RFC 8414).
fn auth_method(flow: &Flow) -> Result<AuthMethod, AuthError> {
    let declared = flow.metadata.additional_fields.get("token_endpoint_auth_methods_supported");
    let Some(Value::Array(declared)) = declared else { return Ok(AuthMethod::Basic) };
    let accepts = |method: &str| declared.iter().any(|it| it == method);
    if accepts("client_secret_basic") {
        Ok(AuthMethod::Basic)
    } else if accepts("client_secret_post") {
        Ok(AuthMethod::Post)
    } else {
        Err(flow.unusable("its authorization server accepts no client secret"))
    }
}

fn answer_text(body: &[u8], key: &str) -> Option<String> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    answer.get(key)?.as_str().map(str::to_owned)
}

/// The server's address as an authorization server knows it (RFC 8707): without query and fragment.
fn canonical(server: &Url) -> String {
    let mut server = server.clone();
    server.set_query(None);
    server.set_fragment(None);
    server.to_string()
}
