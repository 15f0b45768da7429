//! A client of one server: the protocol over a session, both eras of it.

mod connect;
mod identity;
mod input;
mod listen;
mod lists;
pub(crate) mod param_headers;
mod params;
mod result;
mod tasks;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::DropGuard;

use crate::budget::{AnswerBytes, ByteBudget};
use crate::error::{Failure, RequestError, TransportError};
use crate::handler::Handler;
use crate::limits::Limits;
use crate::message_router::ProgressFn;
use crate::session::{RequestOptions, Session};
use crate::trace::Trace;
use crate::transport::Era;
use crate::wire;

pub use connect::{ConnectError, Protocol};
pub use identity::Identity;
pub(crate) use identity::{LEGACY_VERSIONS, MODERN_VERSION};
pub use lists::Listed;
use param_headers::ParamHeader;
use params::Params;

/// A connected server.
///
/// ```no_run
/// # async fn call(connector: &dyn haft_mcp::Connector) -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
///
/// use haft_mcp::{CallOptions, Client, ClientOptions, RefuseAll};
/// use serde_json::value::to_raw_value;
///
/// let client = Client::connect(connector, None, Arc::new(RefuseAll), ClientOptions::default()).await?;
/// let arguments = to_raw_value(&serde_json::json!({"timezone": "Asia/Seoul"}))?;
/// let result = client.call_tool("get_current_time", &arguments, CallOptions::default()).await?;
/// println!("{}", result.get());
/// client.close().await;
/// # Ok(())
/// # }
/// ```
pub struct Client {
    session: Session,
    identity: Identity,
    options: ClientOptions,
    /// The `_meta` of every request of the modern era; empty in the legacy one.
    meta: String,
    /// Which arguments of which tool travel as headers too.
    param_headers: Mutex<HashMap<String, Vec<ParamHeader>>>,
    /// Tools that a server of the legacy era runs as tasks only.
    task_tools: Mutex<HashSet<String>>,
    /// Resources whose updates are listened for, in the era in which that takes a request that lasts.
    watched: Mutex<HashMap<String, DropGuard>>,
}

/// Options of a client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Our name, as servers see it.
    pub name: String,
    /// Our version, as servers see it.
    pub version: String,
    /// Which eras to try.
    pub protocol: Protocol,
    /// Limits on the server's messages.
    pub limits: Limits,
    /// Time limit for detecting the server's era.
    pub probe_timeout: Duration,
    /// Time limit of a request without progress. Tool calls have limits of their own.
    pub request_timeout: Duration,
    /// From which level on the server should send log messages.
    pub log_level: Option<&'static str>,
    /// The server's own configuration, handed over as `capabilities.experimental.config`.
    pub config: Option<Value>,
    /// True to subscribe to changed lists if the era needs a subscription.
    pub subscribe: bool,
    /// The memory for what the server sends; not counted without one.
    pub budget: Option<Arc<dyn ByteBudget>>,
}

/// Options of one tool call.
#[derive(Clone, Default)]
pub struct CallOptions {
    /// Receives progress. Servers send it only on request.
    pub progress: Option<ProgressFn>,
    /// Answers requests and receives notifications of the server during this call, and declares capabilities, in
    /// place of the connection's handler.
    pub handler: Option<Arc<dyn Handler>>,
    /// The trace it belongs to.
    pub trace: Option<Trace>,
    /// Holds the memory of the answer.
    pub answer_bytes: AnswerBytes,
}

/// Progress may stretch a request to this many times its timeout, and no further.
const STRETCH_MAX: u32 = 10;
/// Bytes of a call's parameters beside its name and arguments.
const PARAM_NAMES_BYTES: usize = 32;

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            name: "haft".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: Protocol::Auto,
            limits: Limits::default(),
            probe_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_mins(1),
            log_level: None,
            config: None,
            subscribe: true,
            budget: None,
        }
    }
}

impl Client {
    /// The server's name and capabilities.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The connection itself.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Why the connection ended, if it has.
    pub fn ended(&self) -> Option<TransportError> {
        self.session.router().ended()
    }

    /// Returns true if the connection has ended.
    pub fn has_ended(&self) -> bool {
        self.session.router().has_ended()
    }

    /// Waits until the connection ends.
    pub async fn wait_ended(&self) {
        self.session.router().wait_ended().await;
    }

    /// Calls a tool by the server's own name for it. The result comes as the server wrote it.
    ///
    /// There is no time limit in here: the caller has one and drops the future.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &RawValue,
        call: CallOptions,
    ) -> Result<Box<RawValue>, RequestError> {
        let param_headers = match self.param_headers().get(name) {
            Some(param_headers) => param_headers::values(param_headers, arguments),
            None => Vec::new(),
        };
        let CallOptions { progress, handler, trace, answer_bytes } = call;
        let options = RequestOptions {
            progress,
            handler,
            trace,
            answer_bytes: Some(answer_bytes),
            name: Some(name.to_owned()),
            param_headers,
            ..RequestOptions::default()
        };
        let bytes = name.len() + arguments.get().len() + PARAM_NAMES_BYTES;
        let params =
            Params::with_capacity(bytes).text("name", name).raw("arguments", arguments.get());
        if self.must_ask_for_task(name) {
            // Boxed: it is rare, and every call would have its size.
            return Box::pin(self.call_as_task(params, options)).await;
        }
        self.ask("tools/call", params, options).await
    }

    /// A prompt with its arguments filled in, as the server wrote it.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &RawValue,
    ) -> Result<Box<RawValue>, RequestError> {
        let params = Params::new().text("name", name).raw("arguments", arguments.get());
        self.ask("prompts/get", params, self.limited(Some(name))).await
    }

    /// A resource's content, as the server wrote it.
    pub async fn read_resource(&self, uri: &str) -> Result<Box<RawValue>, RequestError> {
        let params = Params::new().text("uri", uri);
        self.ask("resources/read", params, self.limited(Some(uri))).await
    }

    /// Checks the connection: `ping`, or in the modern era, which has none, `server/discover`.
    pub async fn ping(&self) -> Result<(), RequestError> {
        let method = match self.identity.era {
            Era::Legacy => "ping",
            Era::Modern => "server/discover",
        };
        self.ask(method, Params::new(), self.limited(None)).await.map(drop)
    }

    /// Any other request. `params` is a JSON object without `_meta`, `name` what the method is about.
    pub async fn request(
        &self,
        method: &str,
        name: Option<&str>,
        params: &RawValue,
        handler: Option<Arc<dyn Handler>>,
    ) -> Result<Box<RawValue>, RequestError> {
        let options = RequestOptions { handler, ..self.limited(name) };
        self.ask(method, Params::from_object(params), options).await
    }

    /// Ends the connection and waits until nothing of it is left.
    pub async fn close(&self) {
        let reason = TransportError::unsent(Failure::Closed, "the connection was closed by Haft");
        self.session.close(reason).await;
    }

    /// Sends a request and answers what the server wants to know in between.
    async fn ask(
        &self,
        method: &str,
        params: Params,
        options: RequestOptions,
    ) -> Result<Box<RawValue>, RequestError> {
        match self.identity.era {
            Era::Legacy => self.send(method, &params, options).await,
            Era::Modern => self.ask_with_input(method, params, options).await,
        }
    }

    async fn send(
        &self,
        method: &str,
        params: &Params,
        options: RequestOptions,
    ) -> Result<Box<RawValue>, RequestError> {
        let id = self.session.next_id();
        let token = options.progress.is_some().then_some(id);
        let meta = match (&options.handler, self.identity.era) {
            (Some(handler), Era::Modern) => Cow::Owned(connect::meta(&self.options, &**handler)),
            (Some(_), Era::Legacy) | (None, _) => Cow::Borrowed(&*self.meta),
        };
        let meta = match &options.trace {
            Some(trace) => Cow::Owned(trace.added_to(&meta)),
            None => meta,
        };
        let message = wire::request_with(id, method, params.bytes(&meta), |message| {
            params.push_json(message, &meta, token);
        });
        self.session.request_message(id, method, message, options).await
    }

    /// The limits of an ordinary request.
    fn limited(&self, name: Option<&str>) -> RequestOptions {
        let timeout = self.options.request_timeout;
        RequestOptions {
            timeout: Some(timeout),
            timeout_max: Some(timeout.saturating_mul(STRETCH_MAX)),
            // Servers send progress only to those who ask for it.
            progress: Some(Arc::new(|_| {})),
            name: name.map(ToOwned::to_owned),
            param_headers: Vec::new(),
            handler: None,
            trace: None,
            answer_bytes: None,
        }
    }

    fn task_tools(&self) -> parking_lot::MutexGuard<'_, HashSet<String>> {
        self.task_tools.lock()
    }

    fn param_headers(&self) -> parking_lot::MutexGuard<'_, HashMap<String, Vec<ParamHeader>>> {
        self.param_headers.lock()
    }
}

impl Drop for Client {
    /// Ends every task that serves the connection, and with them the connection.
    fn drop(&mut self) {
        let reason = TransportError::unsent(Failure::Closed, "the connection is not used any more");
        self.session.router().end(&reason);
    }
}
