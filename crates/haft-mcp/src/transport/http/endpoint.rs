//! One address and how to ask it: headers, token, time limits, and which redirects to follow.
//! Both HTTP transports send through here, and only here.

use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use http::{Method, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use url::Url;

use super::{failure, headers};
use crate::error::{Failure, TransportError};
use crate::http_client::{HttpClient, HttpClientOptions, Response};
use crate::oauth::{AuthError, Authorizer};

/// Largest number of redirects of one request.
const REDIRECTS_MAX: usize = 5;
/// Largest number of retries with a new token.
const TOKENS_MAX: usize = 2;
/// Many servers close a connection that idles for five seconds; using one at that very time fails, and the outcome of
/// the message is unknown.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// Largest number of idle connections.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// Largest part of a refusal that is read.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// Where a server is and how to talk to it.
#[derive(Clone)]
pub struct HttpOptions {
    /// Its address. User info becomes an `Authorization` header.
    pub url: Url,
    /// The address as errors show it, without secrets.
    pub shown: String,
    /// Sent with every request.
    pub headers: Vec<(String, String)>,
    /// Time limit for connecting.
    pub connect_timeout: Duration,
    /// Time limit for the first byte of a response, and for silence within a body.
    pub timeout: Duration,
    /// Time limit for silence of an event stream.
    pub sse_read_timeout: Duration,
    /// True if to end the session on closing. HTTP+SSE has none to end.
    pub terminate_on_close: bool,
    /// Where tokens come from.
    pub authorizer: Option<Arc<dyn Authorizer>>,
}

/// An address that is ready to be asked.
#[derive(Clone)]
pub(crate) struct Endpoint {
    client: HttpClient,
    pub(crate) url: Url,
    pub(crate) shown: String,
    /// Sent with every request.
    pub(crate) headers: HeaderMap,
    pub(crate) timeout: Duration,
    pub(crate) sse_read_timeout: Duration,
    authorizer: Option<Arc<dyn Authorizer>>,
    /// Kept only to be found in the server's messages, and redacted there.
    last_token: Arc<Mutex<Option<HeaderValue>>>,
}

/// An unsuccessful response, with the beginning of its body.
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Endpoint {
    pub(crate) fn new(options: HttpOptions) -> Result<Self, TransportError> {
        let HttpOptions {
            mut url,
            shown,
            headers,
            connect_timeout,
            timeout,
            sse_read_timeout,
            terminate_on_close: _,
            authorizer,
        } = options;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            let message = format!("`{shown}` is not an address for HTTP");
            return Err(TransportError::unsent(Failure::NotFound, message));
        }
        let headers = headers::configured(&headers, &mut url)?;
        let client = HttpClient::new(HttpClientOptions {
            connect_timeout,
            idle_max: IDLE_MAX,
            idle_connections_max: IDLE_CONNECTIONS_MAX,
        })
        .map_err(|error| failure::of_request(&error, &shown))?;
        let last_token = Arc::default();
        Ok(Self { client, url, shown, headers, timeout, sse_read_timeout, authorizer, last_token })
    }

    /// Sends a request and waits up to `limit` for the beginning of its response. `headers` are all of them but the
    /// token. An unsuccessful response is returned as well.
    pub(crate) async fn send(
        &self,
        method: &Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<&str>,
        limit: Duration,
    ) -> Result<Response, TransportError> {
        let mut target = url.clone();
        let (mut redirects, mut tokens) = (0, 0);
        loop {
            let mut headers = headers.clone();
            let token = self.add_token(&mut headers).await?;
            let body = body.unwrap_or_default().to_owned();
            let sending = self.client.send(method.clone(), &target, headers, body);
            let response = match tokio::time::timeout(limit, sending).await {
                Ok(Ok(response)) => response,
                Ok(Err(error)) => return Err(failure::of_request(&error, &self.shown)),
                Err(_) => {
                    return Err(failure::silent(&self.shown, "did not answer", limit));
                }
            };
            match response.status().as_u16() {
                301 | 302 | 303 | 307 | 308 => {
                    redirects += 1;
                    target = self.redirected(&response, &target, redirects)?;
                }
                401 | 403
                    if tokens < TOKENS_MAX
                        && self.has_better_token(&response, token.as_deref()).await? =>
                {
                    tokens += 1;
                }
                _ => return Ok(response),
            }
        }
    }

    /// The next chunk of a body, within the limit for its kind.
    pub(crate) async fn chunk(
        &self,
        response: &mut Response,
        kind: BodyKind,
    ) -> Result<Option<impl std::ops::Deref<Target = [u8]> + use<>>, TransportError> {
        let limit = match kind {
            BodyKind::Answer => self.timeout,
            BodyKind::Stream => self.sse_read_timeout,
        };
        match (tokio::time::timeout(limit, response.chunk()).await, kind) {
            (Ok(chunk), _) => chunk.map_err(|error| failure::of_request(&error, &self.shown)),
            (Err(_), BodyKind::Answer) => {
                Err(failure::silent(&self.shown, "sent nothing more", limit))
            }
            (Err(_), BodyKind::Stream) => Err(failure::silent_stream(&self.shown, limit)),
        }
    }

    /// Reads the server's explanation of a refusal, up to a limit.
    pub(crate) async fn refusal(&self, mut response: Response) -> Refusal {
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        let mut body = Vec::new();
        let reading = async {
            while body.len() < REFUSAL_BYTES_MAX
                && let Ok(Some(chunk)) = response.chunk().await
            {
                body.extend_from_slice(&chunk);
            }
        };
        let _ = tokio::time::timeout(self.timeout, reading).await;
        Refusal { status, headers, body }
    }

    /// The error for a refusal.
    pub(crate) fn refused(&self, refusal: &Refusal) -> TransportError {
        let Refusal { status, headers, body } = refusal;
        let excerpt = self.excerpt(body);
        let error = failure::of_status(*status, headers, &excerpt, &self.shown);
        TransportError { message: self.without_secrets(error.message), ..error }
    }

    /// Reads an unneeded body to its end, so that the connection can be reused.
    pub(crate) async fn drain(&self, response: Response) {
        let _ = self.refusal(response).await;
    }

    /// The beginning of a body, for an error. Masked before it is cut: half a secret is one too.
    pub(crate) fn excerpt(&self, body: &[u8]) -> String {
        let text = self.without_secrets(String::from_utf8_lossy(body).into_owned());
        failure::printable(text.as_bytes())
    }

    /// Some servers repeat what they were sent.
    pub(crate) fn without_secrets(&self, mut text: String) -> String {
        const SECRET_CHARS_MIN: usize = 6;
        let token = self.last_token().clone();
        for value in self.headers.values().chain(&token) {
            let secret = value.to_str().unwrap_or_default();
            let last_word = secret.rsplit(' ').next().unwrap_or_default();
            for secret in [secret, last_word] {
                if secret.len() >= SECRET_CHARS_MIN {
                    text = text.replace(secret, "***");
                }
            }
        }
        text
    }

    fn last_token(&self) -> MutexGuard<'_, Option<HeaderValue>> {
        self.last_token.lock()
    }

    /// Adds the token, and returns it.
    async fn add_token(&self, headers: &mut HeaderMap) -> Result<Option<String>, TransportError> {
        let Some(authorizer) = &self.authorizer else { return Ok(None) };
        let token = authorizer.token().await.map_err(|error| self.no_token(&error))?;
        let Some(token) = token else { return Ok(None) };
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
            let message = format!("the token for `{}` cannot be sent as a header", self.shown);
            TransportError::unsent(Failure::AuthRequired, message)
        })?;
        value.set_sensitive(true);
        *self.last_token() = Some(value.clone());
        headers.insert(AUTHORIZATION, value);
        Ok(Some(token))
    }

    async fn has_better_token(
        &self,
        response: &Response,
        refused: Option<&str>,
    ) -> Result<bool, TransportError> {
        let Some(authorizer) = &self.authorizer else { return Ok(false) };
        let status = response.status().as_u16();
        let challenge = response.headers().get(WWW_AUTHENTICATE);
        let challenge = challenge.and_then(|value| value.to_str().ok());
        // Without this word, a 403 is not about the token.
        if status == 403 && !challenge.is_some_and(|text| text.contains("insufficient_scope")) {
            return Ok(false);
        }
        let renewed = authorizer.refused_token(refused, status, challenge).await;
        renewed.map_err(|error| self.no_token(&error))
    }

    fn no_token(&self, error: &AuthError) -> TransportError {
        let message = format!("there is no token for `{}`: {error}", self.shown);
        TransportError::unsent(Failure::AuthRequired, message)
    }

    /// Where a redirect leads, if it may be followed: to the same origin, with the same request.
    fn redirected(
        &self,
        response: &Response,
        from: &Url,
        count: usize,
    ) -> Result<Url, TransportError> {
        let refuse = |why: String| {
            let message = format!("`{}` redirects, {why}", self.shown);
            Err(TransportError::unsent(Failure::Redirect, message))
        };
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let Some(to) = location.and_then(|location| from.join(location).ok()) else {
            return refuse("but gives no address".to_owned());
        };
        if to.origin() != from.origin() {
            let (from, to) = (origin(from), origin(&to));
            return refuse(format!(
                "which is not followed from `{from}` to another origin, `{to}`"
            ));
        }
        let status = response.status().as_u16();
        if !matches!(status, 307 | 308) {
            return refuse(format!(
                "which is not followed because {status} would drop the message; use the address \
                 with the path `{}`",
                failure::printable(to.path().as_bytes())
            ));
        }
        if count > REDIRECTS_MAX {
            return refuse(format!("more than {REDIRECTS_MAX} times in a row"));
        }
        Ok(to)
    }
}

/// The kinds of body, each of which has a limit for its pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// One answer: `timeout`.
    Answer,
    /// A stream of events: `sse_read_timeout`.
    Stream,
}

/// Scheme, host and port: what an address shows without secrets.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}
