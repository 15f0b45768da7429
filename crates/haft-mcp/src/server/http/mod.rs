//! Streamable HTTP: one address for requests of both eras. Knows no framework: headers and a body in, a
//! [`Reply`] out.

mod check;
mod replay_buffer;
mod request;
mod session;
mod sessions;

use haft_bounds::parse_error::describe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use futures_util::Stream;
use haft_bounds::heavy;
use haft_bounds::json::Excess;
use serde_json::value::RawValue;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::call_message::CallMessage;
use super::dispatch::{Client, RawRequest, RequestHandler, check_id};
use super::params::{CALL, Params};
use super::peer::new_client_id;
use super::principal::Principal;
use super::{
    Change, INVALID_REQUEST, PARSE_ERROR, Service, change, legacy, modern, over_budget, refused_id,
};
use crate::budget::KeptBytes;
use crate::client::LEGACY_VERSIONS;
use crate::error::{INTERNAL_ERROR, RpcError};
use crate::limits::Limits;
use crate::wire::{self, Incoming};
use session::Session;
use sessions::{NoRoom, Sessions};

/// The header that names a session.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Interval between searches for idle sessions: shorter if the idle limit is shorter, within reason.
const SWEEP_EVERY: Duration = Duration::from_secs(15);
const SWEEP_EVERY_MIN: Duration = Duration::from_millis(100);

/// Options for serving clients over HTTP.
#[derive(Debug, Clone)]
pub struct EndpointOptions {
    /// Limits on messages.
    pub limits: Limits,
    /// Largest number of sessions of the legacy era.
    pub sessions_max: usize,
    /// Longest time that a session may be idle.
    pub session_idle: Duration,
    /// Counts the answers that are kept for clients which have not read them.
    pub kept_bytes: KeptBytes,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            sessions_max: 1_000,
            session_idle: Duration::from_mins(30),
            kept_bytes: KeptBytes::default(),
        }
    }
}

/// A service at one address. Ends when it is dropped or stopped.
pub struct HttpEndpoint {
    handler: Arc<RequestHandler>,
    sessions: Arc<Sessions>,
    options: EndpointOptions,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// The answer to a request.
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The session that was opened, for the header `Mcp-Session-Id`.
    pub session: Option<HeaderValue>,
    /// The rest.
    pub body: ReplyBody,
}

/// The body of an answer.
pub enum ReplyBody {
    /// None.
    Empty,
    /// One message: `application/json`.
    Json(String),
    /// The events of one request, which end by themselves: `text/event-stream`. Dropping the stream means that the
    /// client disconnected.
    Response(ReplyEvents),
    /// Notifications, for as long as the client listens: `text/event-stream`.
    Notifications(ReplyEvents),
}

/// Events as they are written.
pub type ReplyEvents = Pin<Box<dyn Stream<Item = String> + Send>>;

impl Reply {
    fn empty(status: StatusCode) -> Self {
        Self { status, session: None, body: ReplyBody::Empty }
    }

    fn json(status: StatusCode, message: String) -> Self {
        Self { status, session: None, body: ReplyBody::Json(message) }
    }

    fn refusal(status: StatusCode, id: Option<&RawValue>, error: &RpcError) -> Self {
        Self::json(status, wire::error_response(id.unwrap_or(RawValue::NULL), error))
    }
}

/// A message of a client.
enum Received<'a> {
    Call(CallMessage<'a>),
    Other(Incoming<'a>),
}

impl HttpEndpoint {
    /// Serves `service`. Needs a tokio runtime around it.
    pub fn new(service: Arc<dyn Service>, options: EndpointOptions) -> Arc<Self> {
        let changes = service.changes();
        let sweep_every = SWEEP_EVERY.min(options.session_idle).max(SWEEP_EVERY_MIN);
        let endpoint = Arc::new(Self {
            handler: RequestHandler::new(service, options.kept_bytes.clone()),
            sessions: Arc::new(Sessions::new(&options)),
            options,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        let (sessions, stop) = (Arc::clone(&endpoint.sessions), endpoint.stop.clone());
        endpoint.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = keep(&sessions, sweep_every, changes) => {}
            }
        });
        endpoint
    }

    /// Number of open sessions.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Ends every session, and whatever its client still waits for.
    pub fn stop(&self) {
        self.stop.cancel();
        self.sessions.clear();
    }

    /// Answers a POST: one message of a client.
    pub async fn post(&self, principal: &Principal, headers: &HeaderMap, body: &[u8]) -> Reply {
        let message = match heavy::in_place(body.len(), || self.parse(body)) {
            Ok(message) => message,
            Err(refusal) => return refusal,
        };
        if !check::takes_json_or_events(headers) {
            let text =
                "Not Acceptable: the client must accept application/json or text/event-stream";
            let error = RpcError::new(INVALID_REQUEST, text);
            return Reply::refusal(StatusCode::NOT_ACCEPTABLE, None, &error);
        }
        let version = headers.get(VERSION).and_then(|version| version.to_str().ok());
        let message = match message {
            Received::Call(CallMessage { id, params }) => {
                let raw = RawRequest { id, method: CALL, params: None };
                return self.request(principal, headers, version, raw, Ok(params)).await;
            }
            Received::Other(message) => message,
        };
        match message {
            Incoming::Request { id, method, params } => {
                let raw = RawRequest { id, method: &method, params };
                self.request(principal, headers, version, raw, Params::read(params)).await
            }
            Incoming::Notification { method, params } => {
                self.notification(principal, headers, version, &method, params)
            }
            Incoming::Result { id, result } => {
                let answer = Ok(result.to_owned());
                self.with_session(principal, headers, None, |session| {
                    session.client.asks.answer(id, answer);
                    Reply::empty(StatusCode::ACCEPTED)
                })
            }
            Incoming::Error { id, error } => {
                let error = serde_json::from_str(error.get()).unwrap_or_else(|error| {
                    RpcError::new(
                        INTERNAL_ERROR,
                        format!("its error cannot be read: {}", describe(&error)),
                    )
                });
                let id = id.unwrap_or(RawValue::NULL);
                self.with_session(principal, headers, None, |session| {
                    session.client.asks.answer(id, Err(error));
                    Reply::empty(StatusCode::ACCEPTED)
                })
            }
        }
    }

    /// Answers a GET: a session's stream of changes_seen, or the rest of one that broke off.
    pub fn get(&self, principal: &Principal, headers: &HeaderMap) -> Reply {
        if !check::takes_events(headers) {
            let error = RpcError::new(
                INVALID_REQUEST,
                "Not Acceptable: the client must accept text/event-stream",
            );
            return Reply::refusal(StatusCode::NOT_ACCEPTABLE, None, &error);
        }
        if !headers.contains_key(SESSION) {
            // The era without sessions has no such streams.
            let text = "Method Not Allowed: send MCP messages with POST; GET is for the stream of a session";
            let error = RpcError::new(INVALID_REQUEST, text);
            return Reply::refusal(StatusCode::METHOD_NOT_ALLOWED, None, &error);
        }
        let last = headers.get("last-event-id").map(|last| last.to_str().unwrap_or_default());
        self.with_session(principal, headers, None, |session| session.events(last))
    }

    /// Answers a DELETE: the client ends its session.
    pub fn delete(&self, principal: &Principal, headers: &HeaderMap) -> Reply {
        if !headers.contains_key(SESSION) {
            return Reply::empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        self.with_session(principal, headers, None, |session| {
            self.sessions.end(session);
            Reply::empty(StatusCode::NO_CONTENT)
        })
    }

    fn parse<'a>(&self, body: &'a [u8]) -> Result<Received<'a>, Reply> {
        let budget = self.options.limits.budget();
        if let Err(excess) = budget.check(body) {
            let status = match excess {
                Excess::Nodes(_) => StatusCode::PAYLOAD_TOO_LARGE,
                Excess::Depth(_) => StatusCode::BAD_REQUEST,
            };
            return Err(Reply::refusal(status, refused_id(body, excess), &over_budget(excess)));
        }
        if let Some(call) = CallMessage::read(body) {
            return Ok(Received::Call(call));
        }
        let message = wire::parse_unchecked(body);
        message.map(Received::Other).map_err(|wire::Malformed(why)| unreadable(body, &why))
    }

    async fn request(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
        version: Option<&str>,
        raw: RawRequest<'_>,
        params: Result<Params<'_>, RpcError>,
    ) -> Reply {
        if let Err(error) = check_id(raw.id) {
            return Reply::refusal(StatusCode::BAD_REQUEST, None, &error);
        }
        let params = match params {
            Ok(params) => params,
            Err(error) => return Reply::refusal(StatusCode::BAD_REQUEST, Some(raw.id), &error),
        };
        let is_modern = params.meta.protocol_version.is_some()
            || raw.method == "server/discover"
            || version.is_some_and(|version| !LEGACY_VERSIONS.contains(&version));
        if is_modern && !headers.contains_key(SESSION) {
            return self.modern(principal, headers, &params, raw).await;
        }
        if raw.method == "initialize" {
            return self.initialize(principal, raw).await;
        }
        match self.session(principal, headers, Some(raw.id)) {
            Ok(session) => {
                let accepts = check::takes_events(headers);
                request::legacy(&self.handler, &session, raw, &params, accepts, &self.tasks).await
            }
            Err(reply) => reply,
        }
    }

    async fn modern(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
        params: &Params<'_>,
        raw: RawRequest<'_>,
    ) -> Reply {
        let meta = &params.meta;
        let begun = match &meta.protocol_version {
            // Before anything else: by a wrong header, the request went astray.
            Some(version) => {
                let service = &*self.handler.service;
                check::request_headers(headers, version, raw.method, params, service)
            }
            None => Ok(()),
        };
        let begun = begun.and_then(|()| {
            let facts = modern::client(meta, new_client_id(), principal)?;
            Ok((facts, meta.request_meta()?))
        });
        match begun {
            Ok((facts, request_meta)) => {
                let accepts = check::takes_events(headers);
                request::modern(&self.handler, facts, request_meta, raw, params, accepts).await
            }
            Err(error) => Reply::refusal(StatusCode::BAD_REQUEST, Some(raw.id), &error),
        }
    }

    async fn initialize(&self, principal: &Principal, raw: RawRequest<'_>) -> Reply {
        let about = Arc::clone(&self.handler.service).about().await;
        let (facts, result) = match legacy::initialize(raw.params, &about, principal) {
            Ok(begun) => begun,
            Err(error) => return Reply::refusal(StatusCode::BAD_REQUEST, Some(raw.id), &error),
        };
        match self.sessions.open(Client::new(facts)) {
            Ok(session) => {
                self.end_with_permission(&session);
                Reply {
                    session: HeaderValue::from_str(&session.id).ok(),
                    ..Reply::json(StatusCode::OK, wire::response(raw.id, &result))
                }
            }
            Err(NoRoom(why)) => {
                let error = RpcError::new(INTERNAL_ERROR, why);
                Reply::refusal(StatusCode::SERVICE_UNAVAILABLE, Some(raw.id), &error)
            }
        }
    }

    /// Ends a session when its client's permission ends.
    fn end_with_permission(&self, session: &Arc<Session>) {
        let Some(revoked) = session.client.facts.revoked.clone() else { return };
        let (sessions, session) = (Arc::clone(&self.sessions), Arc::clone(session));
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = session.ended.cancelled() => {}
                () = revoked.cancelled() => sessions.end(&session),
            }
        });
    }

    fn notification(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
        version: Option<&str>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Reply {
        let is_modern = version.is_some_and(|version| !LEGACY_VERSIONS.contains(&version));
        if is_modern && !headers.contains_key(SESSION) {
            // No notification of a client matters here: requests end with their streams.
            return Reply::empty(StatusCode::ACCEPTED);
        }
        self.with_session(principal, headers, None, |session| {
            if method == "notifications/cancelled"
                && let Some(id) = params.and_then(legacy::cancelled)
            {
                session.cancel(id);
            }
            Reply::empty(StatusCode::ACCEPTED)
        })
    }

    fn with_session(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
        id: Option<&RawValue>,
        use_it: impl FnOnce(&Arc<Session>) -> Reply,
    ) -> Reply {
        self.session(principal, headers, id).map_or_else(|reply| reply, |session| use_it(&session))
    }

    /// The session that a request names, if it belongs to the sender.
    fn session(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
        id: Option<&RawValue>,
    ) -> Result<Arc<Session>, Reply> {
        let Some(name) = headers.get(SESSION) else {
            let text = "Bad Request: `Mcp-Session-Id` is missing; begin with `initialize`, or speak a \
                        protocol version that has no sessions";
            let error = RpcError::new(INVALID_REQUEST, text);
            return Err(Reply::refusal(StatusCode::BAD_REQUEST, id, &error));
        };
        let found = name.to_str().ok().and_then(|name| self.sessions.find(name, &principal.name));
        let session = found.ok_or_else(|| {
            // The same for one of another client: it must not learn that there is one.
            let error = RpcError::new(-32001, "Session not found; begin again with `initialize`");
            Reply::refusal(StatusCode::NOT_FOUND, id, &error)
        })?;
        let version = headers.get(VERSION);
        let is_known = |version: &HeaderValue| {
            version.to_str().is_ok_and(|version| LEGACY_VERSIONS.contains(&version))
        };
        if version.is_some_and(|version| !is_known(version)) {
            let known = LEGACY_VERSIONS.join(", ");
            let text = format!("Bad Request: unsupported protocol version (supported: {known})");
            let error = RpcError::new(INVALID_REQUEST, text);
            return Err(Reply::refusal(StatusCode::BAD_REQUEST, id, &error));
        }
        Ok(session)
    }
}

impl Drop for HttpEndpoint {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Notifies the sessions of changes, and ends unused ones.
async fn keep(
    sessions: &Sessions,
    sweep_every: Duration,
    mut changes: broadcast::Receiver<Change>,
) {
    let mut sweep = tokio::time::interval(sweep_every);
    let mut is_open = true;
    loop {
        tokio::select! {
            changes_seen = change::next(&mut changes), if is_open => match changes_seen {
                Some(changes_seen) => sessions.announce(&changes_seen),
                None => is_open = false,
            },
            _ = sweep.tick() => sessions.sweep(),
        }
    }
}

fn unreadable(body: &[u8], why: &str) -> Reply {
    let is_json = serde_json::from_slice::<&RawValue>(body).is_ok();
    let is_batch = body.trim_ascii_start().first() == Some(&b'[');
    let error = match (is_json, is_batch) {
        (true, true) => {
            RpcError::new(INVALID_REQUEST, "Invalid Request: send each message by itself")
        }
        (true, false) => RpcError::new(INVALID_REQUEST, format!("Invalid Request: {why}")),
        (false, _) => RpcError::new(PARSE_ERROR, format!("Parse error: {why}")),
    };
    Reply::refusal(StatusCode::BAD_REQUEST, None, &error)
}
