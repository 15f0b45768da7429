//! From a URL to an open stream: an HTTP request that the server answers by changing the protocol.
//!
//! The request goes out like those of the HTTP transports, with the same TLS, and without
//! redirects. What the WebSocket library has for this would refuse a server that confirms no
//! subprotocol, which many do not.

use std::time::SystemTime;

use reqwest::header::{
    AUTHORIZATION, CONNECTION, HeaderMap, LOCATION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE, WWW_AUTHENTICATE,
};
use reqwest::{Client, Response, StatusCode, Upgraded};
use tokio_tungstenite::tungstenite::handshake::{client::generate_key, derive_accept_key};
use url::Url;

use super::WebSocketConnector;
use crate::error::{Failure, TransportError};
use crate::oauth::AuthError;
use crate::tls;
use crate::transport::http::{has_tls_cause, retry_after};

const SUBPROTOCOL: &str = "mcp";
/// How often a refusal is answered with another token.
const TOKENS_MAX: usize = 2;

/// Asks for a WebSocket until there is one, or a reason why not.
pub(super) async fn upgrade(connector: &WebSocketConnector) -> Result<Upgraded, TransportError> {
    let shown = &connector.shown;
    let url = http_url(&connector.url).ok_or_else(|| {
        let message = format!("`{shown}` is no WebSocket address: it must begin with ws or wss");
        TransportError::unsent(Failure::NotFound, message)
    })?;
    let client = tls::http_client_builder().http1_only().build();
    let client = client.map_err(|error| failed(shown, &error))?;
    let mut tokens = 0;
    loop {
        let key = generate_key();
        let response = ask(connector, &client, url.clone(), &key).await?;
        let status = response.status();
        if status == StatusCode::SWITCHING_PROTOCOLS {
            check(response.headers(), &key).map_err(|why| {
                let message = format!("`{shown}` answered the WebSocket handshake wrongly: {why}");
                TransportError::unsent(Failure::Protocol, message)
            })?;
            return response.upgrade().await.map_err(|error| failed(shown, &error));
        }
        tokens += 1;
        if tokens > TOKENS_MAX || !has_new_token(connector, &response).await? {
            return Err(refused(shown, &response));
        }
    }
}

async fn ask(
    connector: &WebSocketConnector,
    client: &Client,
    url: Url,
    key: &str,
) -> Result<Response, TransportError> {
    let shown = &connector.shown;
    let mut request = client.get(url);
    for (name, value) in &connector.headers {
        request = request.header(name, value);
    }
    if let Some(authorizer) = &connector.authorizer {
        let token = authorizer.token().await.map_err(|error| no_token(shown, &error))?;
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
    }
    let mut request = request.build().map_err(|error| failed(shown, &error))?;
    let headers = request.headers_mut();
    for (name, value) in [
        (CONNECTION, "Upgrade"),
        (UPGRADE, "websocket"),
        (SEC_WEBSOCKET_VERSION, "13"),
        (SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL),
        (SEC_WEBSOCKET_KEY, key),
    ] {
        // The key is Base64, so it always is a header value.
        let Ok(value) = value.parse() else { continue };
        headers.insert(name, value);
    }
    // A configured token and one of the authorizer would be two; the latest one counts.
    if let Some(token) = headers.get_all(AUTHORIZATION).iter().next_back().cloned() {
        headers.insert(AUTHORIZATION, token);
    }
    client.execute(request).await.map_err(|error| failed(shown, &error))
}

/// Whether the authorizer has something better after a refusal.
async fn has_new_token(
    connector: &WebSocketConnector,
    response: &Response,
) -> Result<bool, TransportError> {
    let (Some(authorizer), 401 | 403) = (&connector.authorizer, response.status().as_u16()) else {
        return Ok(false);
    };
    let challenge = text(response.headers(), WWW_AUTHENTICATE.as_str());
    // Without this word, a 403 is not about the token.
    let is_about_scope = challenge.is_some_and(|text| text.contains("insufficient_scope"));
    if response.status() == StatusCode::FORBIDDEN && !is_about_scope {
        return Ok(false);
    }
    let renewed = authorizer.refused(response.status().as_u16(), challenge).await;
    renewed.map_err(|error| no_token(&connector.shown, &error))
}

/// What is wrong with an answer that agrees.
fn check(headers: &HeaderMap, key: &str) -> Result<(), String> {
    let is_websocket = text(headers, UPGRADE.as_str())
        .is_some_and(|protocol| protocol.eq_ignore_ascii_case("websocket"));
    if !is_websocket {
        return Err("it changes to another protocol".into());
    }
    if text(headers, SEC_WEBSOCKET_ACCEPT.as_str()) != Some(&derive_accept_key(key.as_bytes())) {
        return Err("its `sec-websocket-accept` does not fit the key".into());
    }
    if headers.contains_key(SEC_WEBSOCKET_EXTENSIONS) {
        return Err("it uses an extension nobody asked for".into());
    }
    match text(headers, SEC_WEBSOCKET_PROTOCOL.as_str()) {
        None | Some("" | SUBPROTOCOL) => Ok(()),
        Some(other) => Err(format!("it chose the subprotocol `{other}`, and not `{SUBPROTOCOL}`")),
    }
}

/// The error for an answer that does not agree.
fn refused(shown: &str, response: &Response) -> TransportError {
    let status = response.status();
    let (kind, message) = match status.as_u16() {
        401 | 403 => (Failure::AuthRequired, format!("`{shown}` wants credentials ({status})")),
        300..=399 => {
            let to = text(response.headers(), LOCATION.as_str()).and_then(|to| {
                // Only the origin: the rest may hold a secret.
                Some(response.url().join(to).ok()?.origin().ascii_serialization())
            });
            let to = to.unwrap_or_else(|| "nowhere".to_owned());
            (Failure::Redirect, format!("`{shown}` redirects to `{to}`, which is not followed"))
        }
        code => (Failure::Status(code), format!("`{shown}` opens no WebSocket ({status})")),
    };
    TransportError {
        retry_after: retry_after(response.headers(), SystemTime::now()),
        ..TransportError::unsent(kind, message)
    }
}

/// The error for a request without an answer.
fn failed(shown: &str, error: &reqwest::Error) -> TransportError {
    let causes = || std::iter::successors(std::error::Error::source(error), |it| it.source());
    let kind = if has_tls_cause(error) {
        Failure::Tls
    } else if error.is_builder() {
        Failure::NotFound
    } else {
        Failure::Unreachable
    };
    // The error itself would name the whole URL; the last cause says what went wrong.
    let why = causes().last().map_or_else(|| "it cannot be asked".to_owned(), ToString::to_string);
    TransportError::unsent(kind, format!("`{shown}` cannot be reached: {why}"))
}

fn no_token(shown: &str, error: &AuthError) -> TransportError {
    let message = format!("there is no token for `{shown}`: {error}");
    TransportError::unsent(Failure::AuthRequired, message)
}

fn http_url(url: &Url) -> Option<Url> {
    let scheme = match url.scheme() {
        "ws" => "http",
        "wss" => "https",
        _ => return None,
    };
    let mut url = url.clone();
    url.set_scheme(scheme).ok()?;
    Some(url)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
