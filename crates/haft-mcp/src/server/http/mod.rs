//! Streamable HTTP: one address for requests of both eras. Knows no framework: headers and a body in, a
//! [`Reply`] out.

mod check;
mod log;
mod request;
mod session;
mod sessions;

use haft_bounds::parse_error::describe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, StatusCode};
use futures_util::Stream;
use haft_bounds::heavy;
use haft_bounds::json::Excess;
use serde_json::value::RawValue;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::desk::{Asked, Client, Desk, check_id};
use super::meta::Meta;
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
pub(super) const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
/// How often idle sessions are looked for: more often where they may be idle for a shorter time, within reason.
const SWEEP_EVERY: Duration = Duration::from_secs(15);
const SWEEP_EVERY_MIN: Duration = Duration::from_millis(100);

/// How to serve clients over HTTP.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// How much a message may be.
    pub limits: Limits,
    /// How many sessions of the legacy era there may be at once.
    pub sessions_max: usize,
    /// How long a session may be idle.
    pub session_idle: Duration,
    /// Counts the answers that are kept for clients which have not read them.
    pub kept_bytes: KeptBytes,
}

impl Default for HttpOptions {
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
    desk: Arc<Desk>,
    sessions: Arc<Sessions>,
    options: HttpOptions,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// What to answer.
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
    /// The course of a request, which ends by itself: `text/event-stream`. Dropping it tells that the
    /// client went away.
    Course(Events),
    /// News, for as long as somebody listens: `text/event-stream`.
    News(Events),
}

/// Events as they are written.
pub type Events = Pin<Box<dyn Stream<Item = String> + Send>>;

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

impl HttpEndpoint {
    /// Serves `service`. Needs a tokio runtime around it.
    pub fn new(service: Arc<dyn Service>, options: HttpOptions) -> Arc<Self> {
        let changes = service.changes();
        let sweep_every = SWEEP_EVERY.min(options.session_idle).max(SWEEP_EVERY_MIN);
        let endpoint = Arc::new(Self {
            desk: Desk::new(service, options.kept_bytes.clone()),
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

    /// How many sessions are open.
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
        match message {
            Incoming::Request { id, method, params } => {
                let asked = Asked { id, method: &method, params };
                self.request(principal, headers, version, asked).await
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

    /// Answers a GET: a session's stream of news, or the rest of one that broke off.
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

    fn parse<'a>(&self, body: &'a [u8]) -> Result<Incoming<'a>, Reply> {
        let budget = self.options.limits.budget();
        if let Err(excess) = budget.check(body) {
            let status = match excess {
                Excess::Nodes(_) => StatusCode::PAYLOAD_TOO_LARGE,
                Excess::Depth(_) => StatusCode::BAD_REQUEST,
            };
            return Err(Reply::refusal(status, refused_id(body, excess), &over_budget(excess)));
        }
        wire::parse_unchecked(body).map_err(|wire::Malformed(why)| unreadable(body, &why))
    }

    async fn request(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
        version: Option<&str>,
        asked: Asked<'_>,
    ) -> Reply {
        if let Err(error) = check_id(asked.id) {
            return Reply::refusal(StatusCode::BAD_REQUEST, None, &error);
        }
        let meta = match Meta::read(asked.params) {
            Ok(meta) => meta,
            Err(error) => return Reply::refusal(StatusCode::BAD_REQUEST, Some(asked.id), &error),
        };
        let is_modern = meta.protocol_version.is_some()
            || asked.method == "server/discover"
            || version.is_some_and(|version| !LEGACY_VERSIONS.contains(&version));
        if is_modern && !headers.contains_key(SESSION) {
            return self.modern(principal, headers, &meta, asked).await;
        }
        if asked.method == "initialize" {
            return self.initialize(principal, asked).await;
        }
        match self.session(principal, headers, Some(asked.id)) {
            Ok(session) => {
                let accepts = check::takes_events(headers);
                request::legacy(&self.desk, &session, asked, accepts, &self.tasks).await
            }
            Err(reply) => reply,
        }
    }

    async fn modern(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
        meta: &Meta<'_>,
        asked: Asked<'_>,
    ) -> Reply {
        let begun = match &meta.protocol_version {
            // Before anything else: by a wrong header, the request went astray.
            Some(version) => check::mirrors(headers, version, asked, &*self.desk.service),
            None => Ok(()),
        };
        let begun = begun.and_then(|()| {
            let facts = modern::client(meta, new_client_id(), principal)?;
            Ok((facts, meta.wishes()?))
        });
        match begun {
            Ok((facts, wishes)) => {
                let accepts = check::takes_events(headers);
                request::modern(&self.desk, facts, wishes, asked, accepts).await
            }
            Err(error) => Reply::refusal(StatusCode::BAD_REQUEST, Some(asked.id), &error),
        }
    }

    async fn initialize(&self, principal: &Principal, asked: Asked<'_>) -> Reply {
        let about = Arc::clone(&self.desk.service).about().await;
        let (facts, result) = match legacy::initialize(asked.params, &about, principal) {
            Ok(begun) => begun,
            Err(error) => return Reply::refusal(StatusCode::BAD_REQUEST, Some(asked.id), &error),
        };
        match self.sessions.open(Client::new(facts)) {
            Ok(session) => {
                self.end_with_permission(&session);
                Reply {
                    session: HeaderValue::from_str(&session.id).ok(),
                    ..Reply::json(StatusCode::OK, wire::response(asked.id, &result))
                }
            }
            Err(NoRoom(why)) => {
                let error = RpcError::new(INTERNAL_ERROR, why);
                Reply::refusal(StatusCode::SERVICE_UNAVAILABLE, Some(asked.id), &error)
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
            // Nothing a client could tell here concerns anybody: requests end with their streams.
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

    /// The session a request names, if it belongs to whoever sends it.
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

/// Tells the sessions what changes, and ends those that nobody uses.
async fn keep(
    sessions: &Sessions,
    sweep_every: Duration,
    mut changes: broadcast::Receiver<Change>,
) {
    let mut sweep = tokio::time::interval(sweep_every);
    let mut is_open = true;
    loop {
        tokio::select! {
            news = change::next(&mut changes), if is_open => match news {
                Some(news) => sessions.announce(&news),
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
