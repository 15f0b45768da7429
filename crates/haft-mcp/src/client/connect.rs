//! From nothing to a client: open a transport, find the era, shake hands.

use haft_bounds::parse_error::describe;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::identity::{DiscoverResult, InitializeResult, LEGACY_VERSIONS, MODERN_VERSION};
use super::{Client, ClientOptions, Identity, Params, listen};
use crate::error::{Failure, RequestError, RpcError, TransportError, UNSUPPORTED_VERSION};
use crate::extension::TASKS_EXTENSION;
use crate::handler::Handler;
use crate::message_router::MessageRouter;
use crate::session::{RequestOptions, Session};
use crate::transport::{Connector, Era};

/// Which eras to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Find out.
    #[default]
    Auto,
    /// Only up to 2025-11-25.
    Legacy,
    /// Only from 2026-07-28 on.
    Modern,
}

/// Why there is no client.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    /// The failure, the item it concerns, and the cause.
    pub message: String,
    /// The failure underneath.
    pub cause: RequestError,
}

impl ConnectError {
    /// Returns true if trying again may help.
    pub fn is_transient(&self) -> bool {
        match &self.cause {
            RequestError::Transport(error) => error.is_transient(),
            RequestError::Rpc(_) | RequestError::Protocol { .. } | RequestError::Timeout { .. } => {
                false
            }
        }
    }

    /// The server's `Retry-After`.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.cause {
            RequestError::Transport(error) => error.retry_after,
            RequestError::Rpc(_) | RequestError::Protocol { .. } | RequestError::Timeout { .. } => {
                None
            }
        }
    }
}

impl From<RequestError> for ConnectError {
    fn from(cause: RequestError) -> Self {
        Self { message: cause.to_string(), cause }
    }
}

impl From<TransportError> for ConnectError {
    fn from(error: TransportError) -> Self {
        RequestError::from(error).into()
    }
}

/// A connection whose era is not known yet.
struct Opening<'a> {
    session: Session,
    handler: &'a Arc<dyn Handler>,
    options: &'a ClientOptions,
}

impl Client {
    /// Connects. `fallback` is tried if the server reports that it does not speak the first transport (streamable
    /// HTTP, then HTTP+SSE).
    ///
    /// There is no time limit in here: the caller has one and drops the future, which closes
    /// whatever was opened.
    pub async fn connect(
        connector: &dyn Connector,
        fallback: Option<&dyn Connector>,
        handler: Arc<dyn Handler>,
        options: ClientOptions,
    ) -> Result<Self, ConnectError> {
        let first = open(connector, &handler, &options).await?;
        let probe_first = first.session.transport().answers_in_exchange();
        let refused = match options.protocol {
            Protocol::Modern => return first.modern(None).await.map_err(without_modern),
            Protocol::Auto if probe_first => {
                match first.modern(Some(options.probe_timeout)).await {
                    Ok(client) => return Ok(client),
                    Err(error) if !may_be_legacy(&error) => return Err(error),
                    // A stateless probe leaves nothing behind, but the transport may: open a new connection.
                    Err(_) => open(connector, &handler, &options).await?.legacy(false).await,
                }
            }
            // A server of the legacy era may end when it receives any request before `initialize`; one of the modern
            // era just reports an unknown method.
            Protocol::Auto => first.legacy(true).await,
            Protocol::Legacy => first.legacy(false).await,
        };
        match (refused, fallback) {
            (Err(error), Some(fallback)) if speaks_another_transport(&error) => {
                let second = open(fallback, &handler, &options).await;
                let second = match second {
                    Ok(second) => second.legacy(false).await,
                    Err(second) => Err(second),
                };
                // The first error is more informative about a server that speaks neither.
                second.map_err(|second| if second.is_transient() { second } else { error })
            }
            (outcome, _) => outcome,
        }
    }
}

async fn open<'a>(
    connector: &dyn Connector,
    handler: &'a Arc<dyn Handler>,
    options: &'a ClientOptions,
) -> Result<Opening<'a>, ConnectError> {
    let router =
        MessageRouter::with_budget(Arc::clone(handler), options.limits, options.budget.clone());
    let transport = connector.open(router.clone()).await?;
    Ok(Opening { session: Session::new(transport, router), handler, options })
}

impl Opening<'_> {
    /// `initialize`, then `notifications/initialized`.
    async fn legacy(self, or_modern: bool) -> Result<Client, ConnectError> {
        let params = json!({
            "protocolVersion": LEGACY_VERSIONS[0],
            "capabilities": capabilities(self.options, &**self.handler),
            "clientInfo": client_info(self.options),
        });
        let id = self.session.next_id();
        let answer = self
            .session
            .request(id, "initialize", &params.to_string(), RequestOptions::default())
            .await;
        let answer = match answer {
            Err(RequestError::Rpc(refusal)) if or_modern => {
                // A server of the modern era does not know `initialize`.
                return self.modern(None).await.map_err(|_| RequestError::Rpc(refusal).into());
            }
            answer => answer?,
        };
        let result: InitializeResult<'_> = serde_json::from_str(answer.get()).map_err(|error| {
            RequestError::protocol(format!(
                "the answer to `initialize` is malformed: {}",
                describe(&error)
            ))
        })?;
        if !LEGACY_VERSIONS.contains(&result.protocol_version.as_str()) {
            let version = &result.protocol_version;
            return Err(RequestError::protocol(format!(
                "the server wants to speak protocol version `{version}`, which Haft does not know"
            ))
            .into());
        }
        let identity = Identity::from(result);
        let session = &self.session;
        session.transport().negotiated(&identity.protocol_version, Era::Legacy);
        session.notify("notifications/initialized", "{}").await?;
        let client = self.client(identity, String::new());
        client.set_log_level();
        Ok(client)
    }

    /// `server/discover`.
    async fn modern(self, probe_timeout: Option<Duration>) -> Result<Client, ConnectError> {
        self.session.transport().negotiated(MODERN_VERSION, Era::Modern);
        let meta = meta(self.options, &**self.handler);
        let params = Params::new().json(&meta, None);
        let discover = || {
            let options = RequestOptions { timeout: probe_timeout, ..RequestOptions::default() };
            self.session.request(self.session.next_id(), "server/discover", &params, options)
        };
        let answer = match discover().await {
            // It names the very version it refused; the second answer counts.
            Err(RequestError::Rpc(error)) if supports_modern(&error) => discover().await?,
            answer => answer?,
        };
        let result: DiscoverResult<'_> = serde_json::from_str(answer.get()).map_err(|error| {
            RequestError::protocol(format!(
                "the answer to `server/discover` is malformed: {}",
                describe(&error)
            ))
        })?;
        if !result.supported_versions.iter().any(|version| version == MODERN_VERSION) {
            let versions = result.supported_versions.join(", ");
            return Err(RequestError::protocol(format!(
                "the server speaks {versions}, and not {MODERN_VERSION}"
            ))
            .into());
        }
        let identity = Identity::from(result);
        let client = self.client(identity, meta);
        if client.options.subscribe {
            listen::start(&client);
        }
        Ok(client)
    }

    fn client(self, identity: Identity, meta: String) -> Client {
        Client {
            session: self.session,
            identity,
            options: self.options.clone(),
            meta,
            param_headers: Mutex::new(HashMap::new()),
            task_tools: Mutex::default(),
            watched: Mutex::default(),
        }
    }
}

fn client_info(options: &ClientOptions) -> Value {
    json!({"name": options.name, "version": options.version})
}

/// Our capabilities, and the configuration for the server.
fn capabilities(options: &ClientOptions, handler: &dyn Handler) -> Value {
    let mut capabilities = handler.capabilities();
    if let (Some(config), Value::Object(map)) = (&options.config, &mut capabilities) {
        map.entry("experimental").or_insert_with(|| json!({}))["config"] = config.clone();
    }
    capabilities
}

/// The fields of `_meta` that every request of the modern era carries.
pub(super) fn meta(options: &ClientOptions, handler: &dyn Handler) -> String {
    let mut capabilities = capabilities(options, handler);
    if let (true, Value::Object(map)) = (handler.takes_tasks(), &mut capabilities) {
        map.entry("extensions").or_insert_with(|| json!({}))[TASKS_EXTENSION] = json!({});
    }
    let mut meta = format!(
        r#""io.modelcontextprotocol/protocolVersion":"{MODERN_VERSION}","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{}"#,
        capabilities,
        client_info(options)
    );
    if let Some(level) = handler.log_level().or(options.log_level) {
        meta.push_str(r#","io.modelcontextprotocol/logLevel":""#);
        meta.push_str(level);
        meta.push('"');
    }
    meta
}

impl Client {
    /// Requests log messages without waiting: a refusal does no harm.
    fn set_log_level(&self) {
        let Some(level) = self.options.log_level.filter(|_| self.identity.can("logging")) else {
            return;
        };
        let session = self.session.clone();
        let options = self.limited(None);
        self.session.router().spawn(async move {
            let id = session.next_id();
            let params = Params::new().text("level", level).json("", None);
            let _ = session.request(id, "logging/setLevel", &params, options).await;
        });
    }
}

/// Returns true if a refused version comes with a list of others that has the modern one.
fn supports_modern(error: &RpcError) -> bool {
    #[derive(serde::Deserialize)]
    struct Supported {
        supported: Vec<String>,
    }
    let data = error.data.as_ref().filter(|_| error.code == UNSUPPORTED_VERSION);
    let supported = data.and_then(|data| serde_json::from_str::<Supported>(data.get()).ok());
    supported.is_some_and(|it| it.supported.iter().any(|version| version == MODERN_VERSION))
}

/// Returns true if a failed probe may mean that the server is of the legacy era. Someone who is not there or wants
/// credentials is neither.
fn may_be_legacy(error: &ConnectError) -> bool {
    match &error.cause {
        RequestError::Transport(error) => match error.kind {
            Failure::Status(status) => status != 429 && status != 503,
            Failure::SessionExpired
            | Failure::Closed
            | Failure::Timeout
            | Failure::StreamTimeout
            | Failure::Protocol => true,
            Failure::NotFound
            | Failure::Unreachable
            | Failure::Tls
            | Failure::AuthRequired
            | Failure::OverBudget
            | Failure::Redirect => false,
        },
        RequestError::Rpc(_) | RequestError::Protocol { .. } | RequestError::Timeout { .. } => true,
    }
}

/// A refused `server/discover` has many kinds of reasons in servers that do not know the method.
fn without_modern(error: ConnectError) -> ConnectError {
    let ConnectError { message, cause } = error;
    let message = match &cause {
        RequestError::Rpc(_) => format!(
            "the server does not answer `server/discover` and may not speak {MODERN_VERSION}: \
             {message}"
        ),
        RequestError::Transport(_)
        | RequestError::Protocol { .. }
        | RequestError::Timeout { .. } => message,
    };
    ConnectError { message, cause }
}

/// Returns true if the refusal is the one of a server that has no streamable HTTP.
fn speaks_another_transport(error: &ConnectError) -> bool {
    matches!(
        &error.cause,
        RequestError::Transport(TransportError {
            kind: Failure::Status(400 | 404 | 405) | Failure::SessionExpired,
            ..
        })
    )
}
