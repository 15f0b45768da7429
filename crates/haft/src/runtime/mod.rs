//! A running toolbox: start, call, apply a new configuration, shut down.

mod call_record;
#[cfg_attr(not(feature = "mcp"), path = "fleet_without_mcp.rs")]
mod fleet;
mod info;
mod local;
#[cfg(feature = "mcp")]
mod remote;
mod servers;
mod snapshot;
mod start;

#[cfg(feature = "mcp")]
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
#[cfg(feature = "mcp")]
use haft_mcp::oauth::Authorizer;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

#[cfg(feature = "mcp")]
use crate::backend::mcp::{Health, RefuseServers, ServerHandler, ServerWatch};
use crate::backend::process::kill_all_remaining;
use crate::backend::script::WarmWorkers;
use crate::call::ToolCall;
use crate::config::Config;
use crate::envelope::Envelope;
use crate::record::{Clock, ExecutionLog, LogError, LogHealth, SystemClock};
use crate::registry::Record;
use crate::session::Sessions;
use crate::tool::Tool;

pub(crate) use call_record::CallRecord;
pub use info::{EffectiveValue, ToolInfo};
#[cfg(feature = "mcp")]
pub use remote::{PromptInfo, ResourceInfo};
pub use servers::{ServerIdentity, ServerInfo};
pub(crate) use snapshot::{Offered, Snapshot};
pub use start::StartError;

/// How long calls that were cancelled at shutdown may take to end.
const CUT_WAIT_MAX: Duration = Duration::from_secs(2);

/// A running toolbox. Clones share it.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) snapshot: ArcSwap<Snapshot>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) sessions: Sessions,
    parts: Parts,
    /// What goes on beside the calls.
    background: TaskTracker,
    /// One configuration is applied at a time.
    applying: tokio::sync::Mutex<()>,
}

impl Inner {
    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.parts.clock.now()
    }

    /// Takes over what the servers offer now, if that is something else than before.
    pub(crate) async fn refresh(&self) {
        let _one_at_a_time = self.applying.lock().await;
        let old = self.snapshot.load_full();
        if !old.fleet.is_current() {
            self.snapshot.store(Arc::new(start::refresh(&self.parts, &old).await));
        }
    }

    /// Asks the servers that start late and were never asked. True if the toolbox may have grown.
    pub(crate) async fn discover(&self) -> bool {
        let has_answers = self.snapshot.load_full().fleet.ask_unlisted().await;
        if has_answers {
            self.refresh().await;
        }
        has_answers
    }
}

/// Keeps the toolbox up to date with its servers, for as long as somebody has it.
async fn follow_changes(inner: Weak<Inner>) {
    let Some((changed, stop)) = inner
        .upgrade()
        .map(|inner| (Arc::clone(&inner.parts.changed), inner.parts.stop_servers.clone()))
    else {
        return;
    };
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = changed.notified() => {}
        }
        let Some(inner) = inner.upgrade() else { return };
        inner.refresh().await;
    }
}

/// What outlives a change of configuration.
pub(crate) struct Parts {
    functions: Vec<Arc<dyn Tool>>,
    warm: Arc<WarmWorkers>,
    clock: Arc<dyn Clock>,
    purpose: Purpose,
    /// Ends every connection; cancelled when the runtime is gone.
    stop_servers: CancellationToken,
    _stop_with_us: DropGuard,
    /// The one tool that is wanted, where it is only one.
    wanted: Option<String>,
    /// Told when the tools of a server are others than before.
    changed: Arc<Notify>,
    #[cfg(feature = "mcp")]
    server_handler: Arc<dyn ServerHandler>,
    #[cfg(feature = "mcp")]
    authorizers: Authorizers,
    #[cfg(feature = "mcp")]
    watch: Option<ServerWatch>,
}

/// Who gives requests their token, by server.
#[cfg(feature = "mcp")]
type Authorizers = Arc<HashMap<String, Arc<dyn Authorizer>>>;

/// What a toolbox is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To run tools.
    Call,
    /// To see what it would offer: nothing is written, no call is taken.
    Look,
    /// To see what is wrong: like `Look`, with every server connected and no reason to stop.
    Inspect,
}

/// How a shutdown went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Every call had ended by itself.
    Clean,
    /// Calls were still running when the grace period ended, and were cancelled.
    Cut,
}

/// Collects what a runtime needs beside its configuration.
pub struct RuntimeBuilder {
    config: Config,
    functions: Vec<Arc<dyn Tool>>,
    clock: Arc<dyn Clock>,
    purpose: Purpose,
    wanted: Option<String>,
    cancel: CancellationToken,
    #[cfg(feature = "mcp")]
    server_handler: Arc<dyn ServerHandler>,
    #[cfg(feature = "mcp")]
    authorizers: HashMap<String, Arc<dyn Authorizer>>,
    #[cfg(feature = "mcp")]
    watch: Option<ServerWatch>,
}

impl RuntimeBuilder {
    /// Adds a tool written in Rust. It is a local tool: it needs an entry in `tools`.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.functions.push(Arc::new(tool));
        self
    }

    /// Uses another clock for the log's dates.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Only to see what the toolbox would offer: writes no file and refuses every call.
    #[must_use]
    pub fn look_only(mut self) -> Self {
        self.purpose = Purpose::Look;
        self
    }

    /// Only to see what is wrong: like [`look_only`](Self::look_only), but connects every server, also
    /// those that start late, and starts whatever comes of it. What would have stopped the start is in
    /// [`Runtime::servers`] and [`Runtime::registration`] instead of the log.
    #[must_use]
    pub fn inspect(mut self) -> Self {
        self.purpose = Purpose::Inspect;
        self
    }

    /// Lets `cancel` end the start, which then leaves no process behind.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Answers what servers ask of their client, and hears what they tell.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn server_handler(mut self, handler: impl ServerHandler) -> Self {
        self.server_handler = Arc::new(handler);
        self
    }

    /// Gives the requests to one server their token, instead of what `haft login` stored.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn authorizer(mut self, server: impl Into<String>, authorizer: impl Authorizer) -> Self {
        self.authorizers.insert(server.into(), Arc::new(authorizer));
        self
    }

    /// Hears of every change of a server's state, also while the toolbox starts.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn watch_servers(mut self, watch: impl Fn(&str, &Health) + Send + Sync + 'static) -> Self {
        self.watch = Some(Arc::new(watch));
        self
    }

    /// Says that only one tool will be called, so that the start waits for no server that is known
    /// not to have it. The others are connected all the same.
    #[must_use]
    pub fn for_tool(mut self, tool: impl Into<String>) -> Self {
        self.wanted = Some(tool.into());
        self
    }

    /// Starts the toolbox.
    pub async fn start(self) -> Result<Runtime, StartError> {
        let stop_servers = CancellationToken::new();
        let parts = Parts {
            functions: self.functions,
            warm: WarmWorkers::new(),
            clock: self.clock,
            purpose: self.purpose,
            _stop_with_us: stop_servers.clone().drop_guard(),
            stop_servers,
            wanted: self.wanted,
            changed: Arc::new(Notify::new()),
            #[cfg(feature = "mcp")]
            server_handler: self.server_handler,
            #[cfg(feature = "mcp")]
            authorizers: Arc::new(self.authorizers),
            #[cfg(feature = "mcp")]
            watch: self.watch,
        };
        let config = self.config;
        let snapshot = tokio::select! {
            biased;
            built = start::build(config, &parts, None) => built?,
            () = self.cancel.cancelled() => {
                parts.stop_servers.cancel();
                kill_all_remaining(parts.warm.household()).await;
                return Err(StartError::Cancelled);
            }
        };
        let inner = Inner {
            snapshot: ArcSwap::from_pointee(snapshot),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            sessions: Sessions::default(),
            parts,
            background: TaskTracker::new(),
            applying: tokio::sync::Mutex::new(()),
        };
        let inner = Arc::new(inner);
        inner.background.spawn(follow_changes(Arc::downgrade(&inner)));
        Ok(Runtime { inner })
    }
}

impl Runtime {
    /// Starts a toolbox with the tools of a configuration.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::builder(config).start().await
    }

    /// Starts a toolbox with tools of one's own.
    pub fn builder(config: Config) -> RuntimeBuilder {
        RuntimeBuilder {
            config,
            functions: Vec::new(),
            clock: Arc::new(SystemClock),
            purpose: Purpose::Call,
            wanted: None,
            cancel: CancellationToken::new(),
            #[cfg(feature = "mcp")]
            server_handler: Arc::new(RefuseServers),
            #[cfg(feature = "mcp")]
            authorizers: HashMap::new(),
            #[cfg(feature = "mcp")]
            watch: None,
        }
    }

    /// Runs one call. Always answers, and always leaves exactly one log entry. Dropping the future
    /// cancels the call.
    pub async fn call(&self, call: ToolCall) -> Envelope {
        self.inner.call(call).await
    }

    /// Runs several calls, in parallel only where every tool concerned is `parallel_capable`.
    /// Answers come in the order of the calls.
    pub async fn call_batch(&self, calls: Vec<ToolCall>) -> Vec<Envelope> {
        self.inner.call_batch(calls).await
    }

    /// The tools that are offered, in a fixed order: local ones first, then by server.
    pub fn tools(&self) -> Vec<ToolInfo> {
        let snapshot = self.inner.snapshot.load();
        snapshot.tools().map(|tool| snapshot.info(tool)).collect()
    }

    /// One tool by its name.
    pub fn tool(&self, name: &str) -> Option<ToolInfo> {
        let snapshot = self.inner.snapshot.load();
        snapshot.resolve(name).ok().map(|tool| snapshot.info(tool))
    }

    /// The configured servers and how each is doing.
    pub fn servers(&self) -> Vec<ServerInfo> {
        let snapshot = self.inner.snapshot.load();
        snapshot.fleet.infos(&snapshot.config)
    }

    /// What registration had to say about the tools there are now, in its order. What is at
    /// [`Level::Error`](crate::registry::Level) is a tool that is refused or stops the start.
    pub fn registration(&self) -> Vec<Record> {
        self.inner.snapshot.load().said.clone()
    }

    /// Connects the servers with `start: lazy` whose tools nobody knows yet, so that
    /// [`tools`](Self::tools) is complete. A call of an unknown tool does the same.
    pub async fn discover(&self) {
        self.inner.discover().await;
    }

    /// How the execution log is doing; nothing for a toolbox that only looks.
    pub fn log_health(&self) -> Option<LogHealth> {
        self.inner.snapshot.load().log.as_ref().map(ExecutionLog::health)
    }

    /// Replaces the configuration in one step. Calls under way keep what they began with; if the
    /// new one cannot be used, the old one stays.
    pub async fn apply(&self, config: Config) -> Result<(), StartError> {
        let _one_at_a_time = self.inner.applying.lock().await;
        let old = self.inner.snapshot.load_full();
        let new = start::build(config, &self.inner.parts, Some(&old)).await?;
        self.inner.snapshot.store(Arc::new(new));
        // Calls under way may still use what the new configuration has dropped.
        let inner = Arc::clone(&self.inner);
        self.inner.background.spawn(async move {
            let new = inner.snapshot.load_full();
            old.fleet.retire(&new.fleet).await;
        });
        Ok(())
    }

    /// Stops taking calls, lets those under way finish within `grace`, cancels the rest, and leaves
    /// no process behind.
    pub async fn shutdown(&self, grace: Duration) -> Shutdown {
        let inner = &self.inner;
        inner.tasks.close();
        let ended = tokio::time::timeout(grace, inner.tasks.wait()).await;
        if ended.is_err() {
            inner.stop.cancel();
            // A tool that blocks its thread cannot be stopped, and must not stop the shutdown.
            if tokio::time::timeout(CUT_WAIT_MAX, inner.tasks.wait()).await.is_err() {
                tracing::error!("{} calls block and are left behind", inner.tasks.len());
            }
        }
        let snapshot = inner.snapshot.load_full();
        for tool in snapshot.tools() {
            tool.backend.stop().await;
        }
        inner.parts.stop_servers.cancel();
        snapshot.fleet.stop().await;
        inner.parts.warm.stop().await;
        kill_all_remaining(inner.parts.warm.household()).await;
        if let Some(Err(error)) = close(snapshot.log.as_ref()).await {
            tracing::error!("log entries are lost: {}", error.problem());
        }
        if ended.is_ok() { Shutdown::Clean } else { Shutdown::Cut }
    }
}

async fn close(log: Option<&ExecutionLog>) -> Option<Result<(), LogError>> {
    Some(log?.close().await)
}
