//! The client behind one request.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::ask::{Asks, Questions};
use super::level::Level;
use super::outbox::{self, NotSent};

use crate::declared;
use crate::error::{METHOD_NOT_FOUND, RpcError};
use crate::extension::{TASKS_EXTENSION, UI_EXTENSION};
use crate::transport::Era;
use crate::wire;

/// The client behind one request: its identity, and the way to notify it and ask it before the answer.
#[derive(Clone)]
pub struct Peer {
    pub(super) facts: Arc<ClientFacts>,
    pub(super) notifications: Arc<NotificationSender>,
    pub(super) asking: Asking,
    /// From which level on the client wants log messages.
    pub(super) level: Option<Level>,
}

/// Facts about a client.
#[derive(Debug, Clone)]
pub(super) struct ClientFacts {
    /// No other client has it, as long as the program runs.
    pub(super) id: u64,
    pub(super) principal: Arc<str>,
    /// Cancelled when the client's permission ends. None over stdio, where it ends with the connection.
    pub(super) revoked: Option<Arc<CancellationToken>>,
    pub(super) role: Option<&'static str>,
    pub(super) era: Era,
    pub(super) protocol_version: Cow<'static, str>,
    pub(super) name: Option<String>,
    pub(super) capabilities: Value,
}

/// The capabilities that matter here: the client can be asked something, and which extensions it has.
const USED_CAPABILITIES: [&str; 3] = ["sampling", "elicitation", "roots"];
const USED_EXTENSIONS: [&str; 2] = [TASKS_EXTENSION, UI_EXTENSION];

/// Returns what is kept of the capabilities that a client declares: at most 4 KiB, for as long as its session lives.
/// Nothing if they are not an object.
pub(super) fn used_capabilities(declared: &RawValue) -> Option<Value> {
    if declared.get() == "{}" {
        return Some(json!({}));
    }
    let mut used = declared::capabilities(declared, &USED_CAPABILITIES)?;
    if let Some(extensions) = declared::extensions(declared, &USED_EXTENSIONS) {
        used["extensions"] = extensions;
    }
    Some(used)
}

impl ClientFacts {
    /// Returns true if the client declares an extension.
    pub(super) fn has_extension(&self, extension: &str) -> bool {
        let extensions = self.capabilities.get("extensions");
        extensions.and_then(|it| it.get(extension)).is_some_and(|it| !it.is_null())
    }
}

/// Returns the name in a client's `clientInfo`.
pub(super) fn client_name(info: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Info<'a> {
        #[serde(borrow, default)]
        name: Option<Cow<'a, str>>,
    }
    // A list would be taken for the values in the order of the fields.
    let info = info.map(RawValue::get).filter(|it| it.starts_with('{'))?;
    let name = serde_json::from_str::<Info<'_>>(info).ok()?.name?;
    Some(declared::name(&name))
}

/// An id for a client that was not seen before, not even in an earlier run that wrote to the same log.
pub(super) fn new_client_id() -> u64 {
    static NEXT: LazyLock<AtomicU64> =
        LazyLock::new(|| AtomicU64::new(RandomState::new().hash_one(0) >> 16));
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The way to ask a client.
#[derive(Clone)]
pub(super) enum Asking {
    /// By a request of ours.
    Legacy(Arc<Asks>),
    /// By a result that asks back.
    Modern(Arc<Questions>),
}

/// The way to a client.
#[derive(Clone)]
pub(super) enum Out {
    /// That of its connection.
    Connection(mpsc::Sender<String>),
    /// That of one request.
    Request(outbox::Sender<String>),
    /// None: the request has its answer.
    Closed,
}

impl Out {
    /// Sends as soon as there is room.
    pub(super) async fn send(&self, message: String) -> Result<(), NotSent> {
        match self {
            Self::Connection(out) => out.send(message).await.map_err(|_| NotSent),
            Self::Request(out) => out.send(message).await,
            Self::Closed => Err(NotSent),
        }
    }

    /// Sends at once, or not at all.
    pub(super) fn try_send(&self, message: String) -> Result<(), NotSent> {
        match self {
            Self::Connection(out) => out.try_send(message).map_err(|_| NotSent),
            Self::Request(out) => out.try_send(message),
            Self::Closed => Err(NotSent),
        }
    }
}

/// Where messages before the answer go. That changes when a request that asked back is sent again.
pub(super) struct NotificationSender(Mutex<SenderState>);

struct SenderState {
    out: Out,
    /// The client's token for the progress of this request, if it wants progress.
    progress_token: Option<Box<RawValue>>,
}

impl NotificationSender {
    pub(super) fn new(out: Out, progress_token: Option<Box<RawValue>>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(SenderState { out, progress_token })))
    }

    /// Redirects to the destination of `other`.
    pub(super) fn follow(&self, other: &Self) {
        let (out, progress_token) = {
            let other = other.state();
            (other.out.clone(), other.progress_token.clone())
        };
        *self.state() = SenderState { out, progress_token };
    }

    /// Sends nothing from now on: the request has its answer.
    pub(super) fn close(&self) {
        *self.state() = SenderState { out: Out::Closed, progress_token: None };
    }

    pub(super) fn out(&self) -> Out {
        self.state().out.clone()
    }

    /// Returns true if the client wants to receive progress.
    pub(super) fn wants_progress(&self) -> bool {
        self.state().progress_token.is_some()
    }

    /// Sends a notification that may be dropped if the client reads too slowly.
    fn tell(&self, message: String) {
        drop(self.state().out.try_send(message));
    }

    fn state(&self) -> MutexGuard<'_, SenderState> {
        self.0.lock()
    }
}

impl Peer {
    /// A number that only this client has: a session, a connection, or in the era without either, a
    /// request.
    pub fn client_id(&self) -> u64 {
        self.facts.id
    }

    /// Which era the client speaks.
    pub fn era(&self) -> Era {
        self.facts.era
    }

    /// The protocol version that was agreed on.
    pub fn protocol_version(&self) -> &str {
        &self.facts.protocol_version
    }

    /// The client's own name. Unverified.
    pub fn client_name(&self) -> Option<&str> {
        self.facts.name.as_deref()
    }

    /// The client's declared capabilities, as far as servers behind us can use them.
    pub fn client_capabilities(&self) -> &Value {
        &self.facts.capabilities
    }

    /// Returns true if the client declares an extension that passes through here.
    pub fn has_extension(&self, extension: &str) -> bool {
        self.facts.has_extension(extension)
    }

    /// Reports that a server works on the request as a task. A client that declares the extension gets a task, too.
    pub fn task_started(&self) {
        match &self.asking {
            Asking::Modern(questions) => questions.task_started(),
            Asking::Legacy(_) => {}
        }
    }

    /// The client's identity, as its authenticator knows it.
    pub fn principal(&self) -> &str {
        &self.facts.principal
    }

    /// The client's role, as its authenticator names it.
    pub fn role(&self) -> Option<&'static str> {
        self.facts.role
    }

    /// Returns true if the client wants progress.
    pub fn wants_progress(&self) -> bool {
        self.notifications.wants_progress()
    }

    /// Sends progress. Dropped if the client reads too slowly: a later report supersedes it.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = self.notifications.state().progress_token.clone() else { return };
        let mut params = json!({ "progressToken": token, "progress": progress });
        if let Some(total) = total {
            params["total"] = json!(total);
        }
        if let Some(message) = message {
            params["message"] = json!(message);
        }
        self.notifications.tell(wire::notification("notifications/progress", &params.to_string()));
    }

    /// From which level on the client wants log messages, if it wants any.
    pub fn log_level(&self) -> Option<Level> {
        self.level
    }

    /// Hands on a log message (the parameters of `notifications/message`) if it is serious enough.
    pub fn log(&self, params: &RawValue) {
        #[derive(Deserialize)]
        struct Message<'a> {
            #[serde(borrow)]
            level: std::borrow::Cow<'a, str>,
        }
        let Some(wanted) = self.level else { return };
        let message = serde_json::from_str::<Message<'_>>(params.get()).ok();
        let level = message.and_then(|message| Level::named(&message.level));
        if level.is_some_and(|level| level >= wanted) {
            self.notifications.tell(wire::notification("notifications/message", params.get()));
        }
    }

    /// Returns true if the client declares that it can answer such a request: `sampling/createMessage`,
    /// `elicitation/create`, `roots/list`.
    pub fn can_answer(&self, method: &str, params: Option<&RawValue>) -> bool {
        let Some(needed) = capability(method) else { return false };
        let Some(found) = self.facts.capabilities.get(needed).filter(|it| !it.is_null()) else {
            return false;
        };
        // A page to visit is more than a form to fill in, and has to be declared as such.
        let is_page =
            needed == "elicitation" && params.is_some_and(|params| asks_for_page(params.get()));
        !is_page || found.get("url").is_some()
    }

    /// Asks the client something and waits for its answer. `name` is what a server of the modern era
    /// calls the question.
    pub async fn ask(
        &self,
        name: Option<&str>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Box<RawValue>, RpcError> {
        self.ask_until(name, method, params, None).await
    }

    /// Asks like [`ask`](Self::ask). The asker cancels `withdrawn` when it has its answer from elsewhere; from
    /// then on a modern client that retries its request is not asked again, and the future does not complete.
    pub async fn ask_until(
        &self,
        name: Option<&str>,
        method: &str,
        params: Option<&RawValue>,
        withdrawn: Option<&CancellationToken>,
    ) -> Result<Box<RawValue>, RpcError> {
        if !self.can_answer(method, params) {
            let text = format!("the client does not support `{method}`");
            return Err(RpcError::new(METHOD_NOT_FOUND, text));
        }
        match &self.asking {
            Asking::Legacy(asks) => asks.ask(&self.notifications, method, params).await,
            Asking::Modern(questions) => questions.ask(name, method, params, withdrawn).await,
        }
    }
}

/// The capability a client declares that can answer `method`.
fn capability(method: &str) -> Option<&'static str> {
    match method {
        "sampling/createMessage" => Some("sampling"),
        "elicitation/create" => Some("elicitation"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}

fn asks_for_page(params: &str) -> bool {
    #[derive(Deserialize)]
    struct Elicitation {
        #[serde(default)]
        mode: Option<String>,
    }
    let asked = serde_json::from_str::<Elicitation>(params).ok();
    asked.and_then(|asked| asked.mode).as_deref() == Some("url")
}
