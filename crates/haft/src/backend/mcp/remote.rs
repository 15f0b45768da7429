//! Servers elsewhere, reached over HTTP or WebSocket.

use std::sync::Arc;
use std::time::Duration;

use haft_mcp::oauth::{
    Authorizer, ClientCredentials, ClientIdentity, Login, RegisteredClient, StoredTokens,
    TokenStore,
};
use haft_mcp::{
    Connector, Failure, HttpConnector, HttpOptions, SseConnector, TransportError,
    WebSocketConnector,
};

use super::connection::Connection;
use crate::config::Secret;
use crate::config::model::RemoteEndpoint;
use crate::config::oauth::{OauthConfig, OauthGrant};

/// Our name, as authorization servers show it to people.
pub const CLIENT_NAME: &str = "Haft";
/// Effectively no limit for an exchange: a tool's timeout may be longer than any of the server's,
/// and every request has a timeout above this layer.
const EXCHANGE_MAX: Duration = Duration::from_hours(24);
/// Interval of WebSocket pings, and the time limit of a pong.
const PING_EVERY: Duration = Duration::from_secs(30);
const PONG_WAIT: Duration = Duration::from_secs(20);

/// Streamable HTTP.
pub(super) fn http(
    connection: &Connection,
    to: &RemoteEndpoint,
) -> Result<Box<dyn Connector>, TransportError> {
    Ok(Box::new(HttpConnector::new(options(connection, to)?)?))
}

/// HTTP+SSE, which servers of the first protocol version speak.
pub(super) fn sse(
    connection: &Connection,
    to: &RemoteEndpoint,
) -> Result<Box<dyn Connector>, TransportError> {
    Ok(Box::new(SseConnector::new(options(connection, to)?)?))
}

/// WebSocket.
pub(super) fn websocket(
    connection: &Connection,
    to: &RemoteEndpoint,
) -> Result<Box<dyn Connector>, TransportError> {
    Ok(Box::new(WebSocketConnector {
        url: to.url.expose().clone(),
        shown: to.url.to_string(),
        headers: headers(to),
        connect_timeout: connection.config.connect_timeout.value,
        ping_every: PING_EVERY,
        pong_wait: PONG_WAIT,
        authorizer: authorizer(connection, to)?,
    }))
}

fn options(connection: &Connection, to: &RemoteEndpoint) -> Result<HttpOptions, TransportError> {
    let config = &connection.config;
    Ok(HttpOptions {
        url: to.url.expose().clone(),
        shown: to.url.to_string(),
        headers: headers(to),
        connect_timeout: config.connect_timeout.value,
        timeout: EXCHANGE_MAX,
        sse_read_timeout: config.sse_read_timeout.value,
        terminate_on_close: config.terminate_on_close.value,
        authorizer: authorizer(connection, to)?,
    })
}

fn headers(to: &RemoteEndpoint) -> Vec<(String, String)> {
    let exposed = |(name, value): &(String, Secret)| (name.clone(), value.expose().to_owned());
    to.headers.iter().map(exposed).collect()
}

/// The token provider: the embedding program, the configured client, or an earlier `haft login`,
/// unless the configuration has an `Authorization` header.
fn authorizer(
    connection: &Connection,
    to: &RemoteEndpoint,
) -> Result<Option<Arc<dyn Authorizer>>, TransportError> {
    let context = &connection.context;
    if let Some(authorizer) = context.authorizers.get(connection.name()) {
        return Ok(Some(Arc::clone(authorizer)));
    }
    let is_authorization = |(name, _): &(String, _)| name.eq_ignore_ascii_case("authorization");
    if to.headers.iter().any(is_authorization) {
        return Ok(None);
    }
    let login = oauth_login(to);
    if let Some(client) = own_client(to) {
        // One for all attempts to connect, so that they share its token.
        let own = || Arc::new(ClientCredentials::new(login, client)) as Arc<dyn Authorizer>;
        return Ok(Some(Arc::clone(connection.client_credentials.get_or_init(own))));
    }
    let store = TokenStore::new(&context.tokens);
    let tokens = StoredTokens::new(login, store, connection.tasks.clone())
        .map_err(|error| TransportError::unsent(Failure::AuthRequired, error.to_string()))?;
    Ok(Some(Arc::new(tokens)))
}

/// The login for a server, as its `oauth` settings define it.
pub fn oauth_login(to: &RemoteEndpoint) -> Login {
    let login = Login::new(to.url.expose().clone(), CLIENT_NAME);
    let Some(oauth) = &to.oauth else { return login };
    let identity = ClientIdentity {
        name: CLIENT_NAME.to_owned(),
        registered: registered(oauth),
        metadata_url: oauth.client_metadata_url.clone(),
    };
    login.with_identity(identity).with_scopes(oauth.scopes.clone())
}

/// The client that gets tokens without a person.
fn own_client(to: &RemoteEndpoint) -> Option<RegisteredClient> {
    let oauth = to.oauth.as_ref()?;
    match oauth.grant {
        OauthGrant::ClientCredentials => registered(oauth),
        OauthGrant::AuthorizationCode => None,
    }
}

fn registered(oauth: &OauthConfig) -> Option<RegisteredClient> {
    let id = oauth.client_id.clone()?;
    let secret = oauth.client_secret.as_ref();
    Some(RegisteredClient {
        id,
        secret: secret.map(|secret| secret.value.clone()),
        issuer: oauth.issuer.clone(),
    })
}
