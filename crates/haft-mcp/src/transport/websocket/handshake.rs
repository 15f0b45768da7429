//! From a URL to an open stream: an HTTP request that the server answers by changing the protocol.
//!
//! The request goes out like those of the HTTP transports, with the same TLS, and without
//! redirects. What the WebSocket library has for this would refuse a server that confirms no
//! subprotocol, which many do not.

use std::time::SystemTime;

use http::header::{
    AUTHORIZATION, CONNECTION, HeaderMap, HeaderValue, LOCATION, SEC_WEBSOCKET_ACCEPT,
    SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE, WWW_AUTHENTICATE,
};
use http::{Method, StatusCode};
use tokio_tungstenite::tungstenite::handshake::{client::generate_key, derive_accept_key};
use url::Url;

use super::WebSocketConnector;
use crate::error::{Failure, TransportError};
use crate::http_client::{HttpClient, HttpClientOptions, HttpError, Response, Upgraded};
use crate::oauth::AuthError;
use crate::transport::http::{configured_headers, retry_after};

const SUBPROTOCOL: &str = "mcp";
/// Largest number of retries with another token.
const TOKENS_MAX: usize = 2;

/// Asks for a WebSocket until there is one, or a reason why not.
pub(super) async fn upgrade(connector: &WebSocketConnector) -> Result<Upgraded, TransportError> {
    let shown = &connector.shown;
    let mut url = http_url(&connector.url).ok_or_else(|| {
        let message = format!("`{shown}` is not a WebSocket address: it must begin with ws or wss");
        TransportError::unsent(Failure::NotFound, message)
    })?;
    let headers = configured_headers(&connector.headers, &mut url)?;
    let options = HttpClientOptions {
        connect_timeout: connector.connect_timeout,
        idle_max: connector.connect_timeout,
        idle_connections_max: 1,
    };
    let client = HttpClient::new(options).map_err(|error| failed(shown, &error))?;
    let mut tokens = 0;
    loop {
        let key = generate_key();
        let response = ask(connector, &client, &url, headers.clone(), &key).await?;
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
    client: &HttpClient,
    url: &Url,
    mut headers: HeaderMap,
    key: &str,
) -> Result<Response, TransportError> {
    let shown = &connector.shown;
    // A configured token and one of the authorizer would be two; the latest one counts.
    if let Some(token) = headers.get_all(AUTHORIZATION).iter().next_back().cloned() {
        headers.insert(AUTHORIZATION, token);
    }
    if let Some(authorizer) = &connector.authorizer {
        let token = authorizer.token().await.map_err(|error| no_token(shown, &error))?;
        if let Some(token) = token {
            headers.insert(AUTHORIZATION, bearer(shown, &token)?);
        }
    }
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
    let response = client.send(Method::GET, url, headers, "").await;
    response.map_err(|error| failed(shown, &error))
}

fn bearer(shown: &str, token: &str) -> Result<HeaderValue, TransportError> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
        let message = format!("the token for `{shown}` cannot be sent as a header");
        TransportError::unsent(Failure::AuthRequired, message)
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns true if the authorizer has something better after a refusal.
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

/// The problem with a positive answer, if any.
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
        return Err("it uses an extension that was not requested".into());
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
fn failed(shown: &str, error: &HttpError) -> TransportError {
    let kind = match error {
        _ if error.find_cause::<rustls::Error>().is_some() => Failure::Tls,
        HttpError::Address(_) | HttpError::Tls => Failure::NotFound,
        HttpError::HeadTooLarge(_) => Failure::Protocol,
        HttpError::Connect(_) | HttpError::ConnectTimeout(_) | HttpError::Lost(_) => {
            Failure::Unreachable
        }
    };
    TransportError::unsent(kind, format!("`{shown}` cannot be reached: {}", error.root_cause()))
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
