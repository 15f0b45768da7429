//! Who may do what: no key, a call key, an admin key.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use haft::config::choices::Approvals;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::failures::Failures;
use super::listener::{Connection, ListenError};
use super::problem::Problem;
use crate::keys::{Holder, Keyring, Scope};

/// Paths that answer without a key: neither whether the service is alive nor what it can do is a secret, and a
/// browser that reads about it cannot send a key.
const OPEN_PATHS: [&str; 3] = ["/healthz", "/api/docs", "/api/openapi.json"];
/// Answers without a key as well, and tells more to a caller that has one.
const READINESS_PATH: &str = "/readyz";

/// The execution log.
const LOG_PATH: &str = "/api/v1/log";

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// What everybody is called as long as there is no key.
const LOCAL: &str = "local";

/// Between the name of a key and what tells it from others. No name has it.
const OWNER_MARK: &str = "#";

const HOW_TO_CREATE: &str = "create a key with `haft keys create --scope admin --name me` and send it \
                             as `X-API-Key`";

/// Who makes a request. Handlers take it as an argument.
#[derive(Debug, Clone)]
pub struct Caller {
    /// `key:` and the key's name, or `local` where no key is needed. What people see.
    pub name: Arc<str>,
    /// The same with what tells the key from others that had or will have its name. Whose something is that
    /// outlives a key is told by this.
    pub owner: Arc<str>,
    /// When its key was made.
    pub since: Timestamp,
    /// Cancelled when the caller may no longer do what it could when it came.
    pub ended: Arc<CancellationToken>,
    /// What the caller may do.
    pub scope: Scope,
    /// The profile of the gateway that its key is bound to.
    pub profile: Option<Arc<str>>,
}

impl Caller {
    fn local(ended: Arc<CancellationToken>) -> Self {
        Self {
            name: LOCAL.into(),
            owner: LOCAL.into(),
            since: Timestamp::UNIX_EPOCH,
            ended,
            scope: Scope::Call,
            profile: None,
        }
    }

    fn holder(holder: &Holder) -> Self {
        Self {
            name: ["key:", &holder.name].concat().into(),
            owner: ["key:", &holder.name, OWNER_MARK, &holder.id].concat().into(),
            since: holder.created,
            ended: Arc::clone(&holder.ended),
            scope: holder.scope,
            profile: holder.profile.as_deref().map(Into::into),
        }
    }

    /// Whether it is anybody who reaches a server without keys.
    pub fn is_local(&self) -> bool {
        &*self.name == LOCAL
    }

    /// Whether the caller presented an admin key.
    pub fn is_admin(&self) -> bool {
        match self.scope {
            Scope::Admin => true,
            Scope::Call => false,
        }
    }

    /// Whether something that belongs to `owner` is the caller's business. An admin's is everything, and
    /// without keys so is that of whoever reaches the server. What ends with its key has only a name.
    pub fn may_see(&self, owner: Option<&str>) -> bool {
        let is_own = |owner: &str| *owner == *self.owner || *owner == *self.name;
        match self.scope {
            Scope::Admin => true,
            Scope::Call => self.is_local() || owner.is_some_and(is_own),
        }
    }

    /// Whether the caller may approve calls of tools with `approval: ask`, as `policy.approvals` says. Without
    /// that setting a caller approves its own calls only while there are no keys.
    pub fn may_approve(&self, approvals: Option<Approvals>) -> bool {
        match (self.scope, approvals) {
            (Scope::Admin, _) | (Scope::Call, Some(Approvals::Caller)) => true,
            (Scope::Call, Some(Approvals::People)) => false,
            (Scope::Call, None) => self.is_local(),
        }
    }

    /// Whether the caller may use this path at all: a key that is bound to a profile is for the gateway only,
    /// which looks at the profile itself. Else the problem to answer with.
    pub(super) fn require_path(&self, path: &str) -> Result<(), Problem> {
        let is_gateway = path == "/mcp" || path.starts_with("/mcp/");
        match &self.profile {
            Some(profile) if !is_gateway => {
                let detail = format!("`{}` is bound to the profile `{profile}`", self.name);
                Err(Problem::forbidden(detail)
                    .remedy("use `/mcp`, or a key that was created without `--profile`"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the caller may do `what`, which is for admins; else the problem to answer with.
    pub fn require_admin(&self, what: AdminOnly) -> Result<(), Problem> {
        let what = what.phrase();
        match self.scope {
            Scope::Admin => Ok(()),
            Scope::Call if self.is_local() => {
                let detail = format!("{what} an admin key, and this server has no key yet");
                Err(Problem::unauthorized(detail).remedy(HOW_TO_CREATE))
            }
            Scope::Call => {
                let detail = format!("`{}` is a call key, and {what} an admin key", self.name);
                let challenge = "Bearer realm=\"haft\", error=\"insufficient_scope\"";
                Err(Problem::forbidden(detail)
                    .remedy("use a key that was created with `--scope admin`")
                    .header(WWW_AUTHENTICATE, HeaderValue::from_static(challenge)))
            }
        }
    }
}

/// What only an admin may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminOnly {
    /// Change something.
    Change,
    /// Read the execution log, which has the arguments and answers of every caller.
    ReadLog,
    /// Read something else.
    Read,
}

impl AdminOnly {
    fn of(request: &Request) -> Self {
        let path = request.uri().path();
        let is_log =
            path == LOG_PATH || path.strip_prefix(LOG_PATH).is_some_and(|it| it.starts_with('/'));
        match *request.method() {
            Method::GET | Method::HEAD | Method::OPTIONS if is_log => Self::ReadLog,
            Method::GET | Method::HEAD | Method::OPTIONS => Self::Read,
            _ => Self::Change,
        }
    }

    /// The beginning of a sentence that ends with what is needed.
    fn phrase(self) -> &'static str {
        match self {
            Self::Change => "changes need",
            Self::ReadLog => "reading the log needs",
            Self::Read => "reading this needs",
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        // Only a path that needs no key has no caller, and no such path asks for one.
        parts.extensions.get::<Self>().cloned().ok_or_else(Problem::internal)
    }
}

/// The name in what [`Caller::owner`] holds.
pub(crate) fn name_of(owner: &str) -> &str {
    owner.split_once(OWNER_MARK).map_or(owner, |(name, _)| name)
}

/// Whether the server may listen here: beyond this machine only with a key.
pub fn may_listen(address: SocketAddr, keys: &Keyring) -> Result<(), ListenError> {
    if address.ip().to_canonical().is_loopback() || !keys.is_empty() {
        return Ok(());
    }
    Err(ListenError::NoKey { address })
}

/// Finds out who is calling.
#[derive(Debug)]
pub(super) struct Access {
    keys: Arc<Keyring>,
    failures: Failures,
}

impl Access {
    pub(super) fn new(keys: Arc<Keyring>) -> Self {
        Self { keys, failures: Failures::default() }
    }

    /// Returns the caller of a request. `None`: the path answers without one.
    pub(super) fn identify(&self, request: &Request) -> Result<Option<Caller>, Problem> {
        let path = request.uri().path();
        let presented = presented(request.headers());
        let connection = request.extensions().get::<Connection>();
        if OPEN_PATHS.contains(&path) {
            // A key is not needed here, and still proves the connection.
            if let (Presented::Key(key), Some(connection)) = (&presented, connection)
                && self.keys.verify_known(key).is_some()
            {
                connection.standing.prove();
            }
            return Ok(None);
        }
        let caller = self.caller(request, &presented);
        if let (Ok(caller), Some(connection)) = (&caller, connection) {
            if caller.is_local() {
                connection.standing.let_in();
            } else {
                connection.standing.prove();
            }
        }
        if path != READINESS_PATH {
            return caller.map(Some);
        }
        match caller {
            Ok(caller) if caller.profile.is_none() => Ok(Some(caller)),
            // A probe with an outdated key must not fail: it reads what a request without a key reads.
            Ok(_) | Err(_) => Ok(None),
        }
    }

    fn caller(&self, request: &Request, presented: &Presented<'_>) -> Result<Caller, Problem> {
        if !self.keys.is_closed() {
            // The first key may be new.
            let holder = match presented {
                Presented::Key(key) => self.keys.verify(key),
                Presented::Nothing | Presented::Unclear(_) => None,
            };
            if !self.keys.is_closed() {
                return Ok(Caller::local(self.keys.while_open()));
            }
            if let Some(holder) = holder {
                return Ok(Caller::holder(&holder));
            }
        }
        let peer = peer(request);
        let detail = match presented {
            Presented::Nothing => {
                let detail = match AdminOnly::of(request) {
                    AdminOnly::ReadLog => {
                        "reading the log needs an admin key, and the request has none"
                    }
                    AdminOnly::Read | AdminOnly::Change => {
                        "this server needs a key, and the request has none"
                    }
                };
                return Err(Problem::unauthorized(detail)
                    .remedy(
                        "send a key as `X-API-Key` or `Authorization: Bearer`; `haft keys create` makes one",
                    ));
            }
            Presented::Unclear(detail) => {
                self.count_failure(peer)?;
                detail
            }
            Presented::Key(key) => {
                if let Some(holder) = self.keys.verify_known(key) {
                    return Ok(Caller::holder(&holder));
                }
                // Counted before the file is read: wrong keys must not cause reads without limit.
                self.count_failure(peer)?;
                if let Some(holder) = self.keys.verify_new(key) {
                    self.failures.forgive(peer);
                    return Ok(Caller::holder(&holder));
                }
                "the key is not known here"
            }
        };
        tracing::warn!(%peer, "refused a request: {detail}");
        Err(Problem::unauthorized(detail)
            .remedy("`haft keys list` shows which keys there are, `haft keys create` makes one"))
    }

    /// Counts a wrong key. Known keys are never counted, so one client cannot lock out another one.
    fn count_failure(&self, peer: IpAddr) -> Result<(), Problem> {
        self.failures.count(peer).map_err(|wait| {
            Problem::too_many_requests("too many wrong keys from this address", wait)
                .remedy("wait as long as `Retry-After` says; a right key works at once")
        })
    }
}

fn peer(request: &Request) -> IpAddr {
    let peer = request.extensions().get::<Connection>().map(|connection| connection.peer.ip());
    peer.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

enum Presented<'a> {
    Nothing,
    Key(&'a str),
    Unclear(&'static str),
}

/// The key of a request, from either header. Two that differ are refused: which of them counts is
/// something a proxy may see differently.
fn presented(headers: &HeaderMap) -> Presented<'_> {
    let mut found = None;
    for value in headers.get_all(API_KEY) {
        let Ok(key) = value.to_str() else {
            return Presented::Unclear("`X-API-Key` cannot be read");
        };
        if found.replace(key).is_some_and(|other| other != key) {
            return Presented::Unclear("the request has several keys");
        }
    }
    for value in headers.get_all(AUTHORIZATION) {
        let parts = value.to_str().ok().and_then(|value| value.split_once(' '));
        let bearer = parts.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some(key) = bearer.map(|(_, key)| key.trim()) else {
            return Presented::Unclear("`Authorization` is not `Bearer KEY`");
        };
        if found.replace(key).is_some_and(|other| other != key) {
            return Presented::Unclear("the request has several keys");
        }
    }
    found.map_or(Presented::Nothing, Presented::Key)
}

/// In front of what only an admin may.
pub(super) async fn admin_only(
    caller: Caller,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    caller.require_admin(AdminOnly::of(&request))?;
    Ok(next.run(request).await)
}

/// In front of what is for reading: whatever changes something there is for admins.
pub(super) async fn admin_to_write(request: Request, next: Next) -> Result<Response, Problem> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !is_read {
        let caller = request.extensions().get::<Caller>().ok_or_else(Problem::internal)?;
        caller.require_admin(AdminOnly::Change)?;
    }
    Ok(next.run(request).await)
}
