//! Permissions of callers: no key, a call key, an admin key.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Request as RoutedRequest};
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Request};
use axum::middleware::Next;
use axum::response::Response as RoutedResponse;
use haft::AccessLists;
use haft::config::choices::Approvals;
use haft::human_input::{InboxItem, ItemKind};
use jiff::Timestamp;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::failures::Failures;
use super::identification::{
    Attempt, Presented, READINESS_PATH, Refusal, is_open, presented, retry_later,
};
use super::listener::{Connection, ListenError};
use super::problem::Problem;
use super::sessions::Sessions;
use crate::keys::{Holder, Keyring, OWNER_MARK, Scope};

/// The execution log.
const LOG_PATH: &str = "/api/v1/log";

/// The longest wait for the keys of a database, for a key that may be new.
const REFRESH_MAX: Duration = Duration::from_secs(2);

/// The caller's name while there are no keys.
const LOCAL: &str = "local";

const HOW_TO_CREATE: &str = "create a key with `haft keys create --scope admin --name me` and send it \
                             as `X-API-Key`";

/// The sender of a request. Handlers take it as an argument.
#[derive(Debug, Clone)]
pub struct Caller {
    /// `key:` and the key's name, or `local` where no key is needed. What people see.
    pub name: Arc<str>,
    /// The name plus the key's id, because names can be reused. Data that outlives a key is owned by this.
    pub owner: Arc<str>,
    /// When its key was made.
    pub since: Timestamp,
    /// Cancelled when the caller may no longer do what it could when it came.
    pub ended: Arc<CancellationToken>,
    /// The caller's permissions.
    pub scope: Scope,
    /// The profile of the gateway that its key is bound to.
    pub profile: Option<Arc<str>>,
    /// The tools and servers that its key sees.
    pub lists: Arc<AccessLists>,
}

impl Caller {
    /// A caller that another service has authenticated, for programs that mount the gateway in an axum router of their
    /// own. The log shows it as `app:` and the name. Callers with one name share their sessions and calls.
    pub fn of_app(name: &str) -> Self {
        let name: Arc<str> = format!("app:{name}").into();
        Self {
            owner: Arc::clone(&name),
            name,
            since: Timestamp::UNIX_EPOCH,
            ended: Arc::default(),
            scope: Scope::Call,
            profile: None,
            lists: Arc::default(),
        }
    }

    fn local(ended: Arc<CancellationToken>) -> Self {
        Self {
            name: LOCAL.into(),
            owner: LOCAL.into(),
            since: Timestamp::UNIX_EPOCH,
            ended,
            scope: Scope::Call,
            profile: None,
            lists: Arc::default(),
        }
    }

    fn holder(holder: &Holder) -> Self {
        Self {
            name: Arc::clone(&holder.name),
            owner: Arc::clone(&holder.owner),
            since: holder.created,
            ended: Arc::clone(&holder.ended),
            scope: holder.scope,
            profile: holder.profile.clone(),
            lists: Arc::clone(&holder.lists),
        }
    }

    /// Returns true for a caller of a server without keys.
    pub fn is_local(&self) -> bool {
        &*self.name == LOCAL
    }

    /// Returns true if the caller presented an admin key.
    pub fn is_admin(&self) -> bool {
        match self.scope {
            Scope::Admin => true,
            Scope::Approve | Scope::Call | Scope::Metrics => false,
        }
    }

    /// Returns true if the caller may see data of `owner`. An admin sees everything, and so does any caller of a
    /// server without keys. Data that ends with its key has only a name.
    pub fn may_see(&self, owner: Option<&str>) -> bool {
        let is_own = |owner: &str| *owner == *self.owner || *owner == *self.name;
        match self.scope {
            Scope::Admin => true,
            Scope::Approve | Scope::Call => self.is_local() || owner.is_some_and(is_own),
            Scope::Metrics => false,
        }
    }

    /// Returns true if the caller may approve calls of tools with `approval: ask`, according to `policy.approvals`.
    /// The approver is not the caller: without that setting only a key that is made for it approves, so a service
    /// without keys has no approver over HTTP.
    pub fn may_approve(&self, approvals: Option<Approvals>) -> bool {
        match (self.scope, approvals) {
            (Scope::Admin | Scope::Approve, _) | (Scope::Call, Some(Approvals::Caller)) => true,
            (Scope::Call, Some(Approvals::People) | None) | (Scope::Metrics, _) => false,
        }
    }

    /// Returns true if the caller may see a question to people: its own, and requests for approval if its key is made
    /// to answer them.
    pub fn may_see_question(&self, item: &InboxItem) -> bool {
        let answers = self.scope == Scope::Approve && item.kind == ItemKind::Approval;
        answers || self.may_see(item.caller.as_deref())
    }

    /// Checks that the caller may do `what`, which is for admins.
    pub fn require_admin(&self, what: AdminOnly) -> Result<(), Problem> {
        let what = what.phrase();
        match self.scope {
            Scope::Admin => Ok(()),
            Scope::Approve | Scope::Call if self.is_local() => {
                let detail = format!("{what} an admin key, and this server has no key yet");
                Err(Problem::unauthorized(detail).remedy(HOW_TO_CREATE))
            }
            scope @ (Scope::Approve | Scope::Call | Scope::Metrics) => {
                let detail = format!("`{}` is a {scope} key, and {what} an admin key", self.name);
                let challenge = "Bearer realm=\"haft\", error=\"insufficient_scope\"";
                Err(Problem::forbidden(detail)
                    .remedy("use a key that was created with `--scope admin`")
                    .header(WWW_AUTHENTICATE, HeaderValue::from_static(challenge)))
            }
        }
    }
}

/// Operations for admins only.
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
    fn of<B>(request: &Request<B>) -> Self {
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

/// Returns true if the server may listen here: beyond this machine only with a key.
pub fn may_listen(address: SocketAddr, keys: &Keyring) -> Result<(), ListenError> {
    // Shared keys are always needed, also while there is none.
    if address.ip().to_canonical().is_loopback() || keys.is_shared() || !keys.is_empty() {
        return Ok(());
    }
    Err(ListenError::NoKey { address })
}

/// Finds out who is calling.
#[derive(Debug)]
pub(super) struct Access {
    keys: Arc<Keyring>,
    failures: Failures,
    sessions: Option<Arc<Sessions>>,
}

impl Access {
    pub(super) fn new(keys: Arc<Keyring>) -> Self {
        Self { keys, failures: Failures::default(), sessions: None }
    }

    /// Accepts the session cookies of the web console beside keys.
    pub(super) fn with_sessions(self, sessions: Arc<Sessions>) -> Self {
        Self { sessions: Some(sessions), ..self }
    }

    /// Returns true if the keys are in a database.
    pub(super) fn has_shared_keys(&self) -> bool {
        self.keys.is_shared()
    }

    /// Makes sure that the keys are current enough to decide by, for a path that needs one.
    pub(super) async fn ensure_current(&self, is_open: bool) -> Result<(), Problem> {
        if is_open {
            return Ok(());
        }
        self.keys.ensure_current().await.map_err(|age| {
            let age = age.as_secs();
            let detail =
                format!("the database with the keys does not respond: they are {age} s old");
            retry_later(Problem::unavailable(detail))
                .remedy("see that PostgreSQL can be reached; `shared.stale_max` limits the age")
        })
    }

    /// Reads the keys of a database again, for a key that may be new. An unknown key cannot be refused for good while
    /// they cannot be read.
    pub(super) async fn refresh(&self) -> Result<(), Problem> {
        let refreshed = timeout(REFRESH_MAX, self.keys.refresh_shared()).await;
        if let Ok(Ok(())) = refreshed {
            return Ok(());
        }
        let detail =
            "the key is not known here yet, and the database with the keys does not respond";
        Err(retry_later(Problem::unavailable(detail))
            .remedy("retry; keys that were used here before still work"))
    }

    /// Returns the caller of a request. `None`: the path answers without one.
    pub(super) fn identify<B>(
        &self,
        request: &Request<B>,
        connection: &Connection,
        attempt: Attempt,
    ) -> Result<Option<Caller>, Refusal> {
        let path = request.uri().path();
        let presented = presented(request.headers());
        if is_open(path) {
            // A key is not needed here, and still proves the connection.
            if let Presented::Key(key) = &presented
                && self.keys.verify_known(key).is_some()
            {
                connection.standing.prove();
            }
            return Ok(None);
        }
        let caller = self.caller(request, connection, &presented, attempt);
        if let Ok(caller) = &caller {
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
            Ok(_) if self.keys.stale_for().is_some() => Ok(None),
            Ok(caller) if caller.profile.is_none() && caller.lists.is_whole() => Ok(Some(caller)),
            // A probe with an outdated key must not fail: it reads what a request without a key reads.
            Ok(_) | Err(_) => Ok(None),
        }
    }

    fn caller<B>(
        &self,
        request: &Request<B>,
        connection: &Connection,
        presented: &Presented<'_>,
        attempt: Attempt,
    ) -> Result<Caller, Refusal> {
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
        let peer = connection.peer.ip();
        let detail = match presented {
            Presented::Nothing => {
                let sessions = self.sessions.as_ref();
                let signed_in = sessions.map(|it| it.caller(request.headers(), request.method()));
                if let Some(caller) = signed_in.transpose()?.flatten() {
                    return Ok(caller);
                }
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
                    )
                    .into());
            }
            Presented::Unclear(detail) => {
                self.count_failure(peer)?;
                detail
            }
            Presented::Key(key) => {
                if let Some(holder) = self.keys.verify_on(&connection.presented, key) {
                    if attempt == Attempt::AfterRefresh {
                        self.failures.forgive(peer);
                    }
                    return Ok(Caller::holder(&holder));
                }
                if let Some(expired) = self.keys.expired(key) {
                    return Err(refused_expired(&expired).into());
                }
                // Counted before the keys are read: wrong keys must not cause reads without limit.
                if attempt == Attempt::First {
                    self.count_failure(peer)?;
                }
                if let Some(holder) = self.keys.verify_new(key) {
                    self.failures.forgive(peer);
                    return Ok(Caller::holder(&holder));
                }
                if attempt == Attempt::First && self.keys.is_shared() {
                    return Err(Refusal::MayBeNew);
                }
                "the key is not known here"
            }
        };
        tracing::warn!(%peer, "refused a request: {detail}");
        Err(Problem::unauthorized(detail)
            .remedy("`haft keys list` shows which keys there are, `haft keys create` makes one")
            .into())
    }

    /// Counts a wrong key. Known keys are never counted, so one client cannot lock out another one.
    fn count_failure(&self, peer: IpAddr) -> Result<(), Problem> {
        self.failures.count(peer).map_err(|wait| {
            Problem::too_many_requests("too many wrong keys from this address", wait)
                .remedy("wait for `Retry-After`; a valid key works at once")
        })
    }
}

/// The answer to a secret whose time is over. It was valid once, so it is not counted as a guess.
fn refused_expired(holder: &Holder) -> Problem {
    let since = holder.expires.map(|at| format!(" at {at}")).unwrap_or_default();
    tracing::warn!(key = &*holder.name, "refused a request: the key expired{since}");
    Problem::unauthorized(format!("`{}` expired{since}", holder.name))
        .remedy("`haft keys rotate NAME --expires 30d` gives it a new secret")
}

/// In front of what only an admin may.
pub(super) async fn admin_only(
    caller: Caller,
    request: RoutedRequest,
    next: Next,
) -> Result<RoutedResponse, Problem> {
    caller.require_admin(AdminOnly::of(&request))?;
    Ok(next.run(request).await)
}

/// In front of what is for reading: whatever changes something there is for admins.
pub(super) async fn admin_to_write(
    request: RoutedRequest,
    next: Next,
) -> Result<RoutedResponse, Problem> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !is_read {
        let caller = request.extensions().get::<Caller>().ok_or_else(Problem::internal)?;
        caller.require_admin(AdminOnly::Change)?;
    }
    Ok(next.run(request).await)
}
