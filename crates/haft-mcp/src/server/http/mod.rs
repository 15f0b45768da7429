//! Streamable HTTP: one address for requests of both eras. Knows no framework: headers and a body in, a
//! [`Reply`] out.

mod check;
mod event_id;
mod options;
mod replay_buffer;
mod reply;
mod request;
mod route;
mod session;
mod session_id;
mod sessions;

use haft_bounds::parse_error::describe;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use haft_bounds::heavy;
use haft_bounds::json::Excess;
use serde_json::value::RawValue;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ask;
use super::call_message::CallMessage;
use super::dispatch::{Answer, RawRequest, RequestHandler, check_id};
use super::params::{CALL, Params};
use super::peer::new_client_id;
use super::principal::Principal;
use super::{
    Change, INVALID_REQUEST, PARSE_ERROR, Service, change, legacy, modern, over_budget, refused_id,
};
use crate::client::LEGACY_VERSIONS;
use crate::error::{INTERNAL_ERROR, RpcError};
use crate::wire::{self, Incoming};
pub use options::EndpointOptions;
pub use reply::{Reply, ReplyBody, ReplyEvents};
pub use route::Routing;
use session::Session;
use sessions::{Found, NoRoom, Sessions};

/// The header that names a session.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// Interval between searches for idle sessions: shorter if the idle limit is shorter, within reason.
const SWEEP_EVERY: Duration = Duration::from_secs(15);
const SWEEP_EVERY_MIN: Duration = Duration::from_millis(100);

/// A service at one address. Ends when it is dropped or stopped.
pub struct HttpEndpoint {
    handler: Arc<RequestHandler>,
    sessions: Arc<Sessions>,
    options: EndpointOptions,
    tasks: TaskTracker,
    stop: CancellationToken,
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
            handler: RequestHandler::new(
                service,
                options.kept_bytes.clone(),
                options.replica.as_ref(),
            ),
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
    pub async fn post(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
        body: &[u8],
        routing: Routing,
    ) -> Reply {
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
                return self.request(principal, headers, version, raw, Ok(params), routing).await;
            }
            Received::Other(message) => message,
        };
        match message {
            Incoming::Request { id, method, params } => {
                let raw = RawRequest { id, method: &method, params };
                self.request(principal, headers, version, raw, Params::read(params), routing).await
            }
            Incoming::Notification { method, params } => {
                self.notification(principal, headers, version, &method, params)
            }
            Incoming::Result { id, result } => {
                self.answer(principal, headers, id, Ok(result.to_owned()), routing)
            }
            Incoming::Error { id, error } => {
                let error = serde_json::from_str(error.get()).unwrap_or_else(|error| {
                    RpcError::new(
                        INTERNAL_ERROR,
                        format!("its error cannot be read: {}", describe(&error)),
                    )
                });
                let id = id.unwrap_or(RawValue::NULL);
                self.answer(principal, headers, id, Err(error), routing)
            }
        }
    }

    /// Answers a GET: a session's stream of changes_seen, or the rest of one that broke off.
    pub fn get(&self, principal: &Principal, headers: &HeaderMap, routing: Routing) -> Reply {
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
        self.with_session(principal, headers, None, |session| {
            let owner = route::stream_owner(session, last);
            self.elsewhere(owner, routing).unwrap_or_else(|| session.events(last))
        })
    }

    /// Answers a DELETE: the client ends its session, on every replica.
    pub fn delete(&self, principal: &Principal, headers: &HeaderMap) -> Reply {
        if !headers.contains_key(SESSION) {
            return Reply::empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        self.with_session(principal, headers, None, |session| {
            self.sessions.delete(session);
            let is_for_all = session.place.is_some();
            Reply { is_for_all, ..Reply::empty(StatusCode::NO_CONTENT) }
        })
    }

    /// Takes the client's answer to a request of ours.
    fn answer(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
        id: &RawValue,
        answer: Answer,
        routing: Routing,
    ) -> Reply {
        self.with_session(principal, headers, None, |session| {
            self.elsewhere(ask::named_replica(id), routing).unwrap_or_else(|| {
                session.client.asks.answer(id, answer);
                Reply::empty(StatusCode::ACCEPTED)
            })
        })
    }

    /// The reply that sends a request to its owner, if that is another replica.
    fn elsewhere(&self, owner: Option<NonZeroU16>, routing: Routing) -> Option<Reply> {
        let own = self.options.replica.as_ref()?.number;
        routing.other_replica(owner, own).map(|it| Reply::streamed(ReplyBody::ForwardTo(it)))
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
        routing: Routing,
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
            let owner = route::owner_of_modern(raw.method, &params);
            return match self.elsewhere(owner, routing) {
                Some(elsewhere) => elsewhere,
                None => self.modern(principal, headers, &params, raw).await,
            };
        }
        if raw.method == "initialize" {
            return self.initialize(principal, raw).await;
        }
        match self.session(principal, headers, Some(raw.id)) {
            Ok(session) => {
                let owner = route::owner_of_legacy(&session, raw.method);
                if let Some(elsewhere) = self.elsewhere(owner, routing) {
                    return elsewhere;
                }
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
        match self.sessions.open(facts) {
            Ok(session) => {
                self.end_with_permission(&session);
                Reply {
                    session: HeaderValue::from_str(&session.id).ok(),
                    ..Reply::json(StatusCode::OK, wire::response(raw.id, &result))
                }
            }
            Err(full) => full.refusal(Some(raw.id)),
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
            let cancelled = Some(method).filter(|it| *it == "notifications/cancelled");
            let cancelled = cancelled.and(params).and_then(legacy::cancelled);
            let is_elsewhere = cancelled.is_some_and(|id| !session.cancel(id));
            let is_for_all = is_elsewhere && session.place.is_some();
            Reply { is_for_all, ..Reply::empty(StatusCode::ACCEPTED) }
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
        let found = match name.to_str() {
            Ok(name) => self.sessions.find(name, principal).map_err(|full| full.refusal(id))?,
            Err(_) => None,
        };
        let session = found.map(|found| match found {
            Found::Known(session) => session,
            Found::Rebuilt(session) => {
                self.end_with_permission(&session);
                session
            }
        });
        let session = session.ok_or_else(|| {
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

impl NoRoom {
    fn refusal(self, id: Option<&RawValue>) -> Reply {
        let error = RpcError::new(INTERNAL_ERROR, self.0);
        Reply::refusal(StatusCode::SERVICE_UNAVAILABLE, id, &error)
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
