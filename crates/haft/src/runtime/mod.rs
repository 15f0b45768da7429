//! A running toolbox: start, call, apply a new configuration, shut down.

mod builder;
mod builtin;
mod change;
mod choice;
mod definition_inbox;
mod definition_lock;
mod forward;
mod info;
mod instructions;
mod load_stats;
mod local;
mod local_setup;
mod lock_gate;
mod lock_status;
mod masked;
mod reconnect;
mod redactors;
mod remote;
mod server_pool;
mod servers;
mod snapshot;
mod start;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use haft_mcp::oauth::Authorizer;
use tokio::sync::{Notify, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::backend::mcp::{ServerHandler, ServerWatch};
use crate::backend::process::kill_all_remaining;
use crate::backend::sandbox::SandboxContext;
use crate::backend::script::WarmWorkers;
use crate::call::{CallAnswer, Calls, Observer, RunningCall, ToolCall, Toolbox, ToolboxSource};
use crate::call_limit::LimitTable;
use crate::config::Config;
use crate::envelope::Envelope;
use crate::error::{CallError, ToolFailure};
use crate::human_input::HumanInbox;
use crate::memory::MemoryBudget;
use crate::outputs::OutputStore;
use crate::record::{Clock, ExecutionLog, LogHealth, ShippedFiles};
use crate::registry::{ActiveTool, Record};
use crate::replica_number::ReplicaNumber;
use crate::tool::{BoxFuture, Tool};
use crate::tool_filter::ToolFilter;
use haft_text::human;

pub use builder::RuntimeBuilder;
pub use forward::{Offer, RegistrationInfo, ToolOffer};
pub use info::{EffectiveValue, ToolInfo};
pub use instructions::INSTRUCTIONS_BYTES_MAX;
pub use load_stats::{LoadStats, ToolLoadStats};
pub use lock_status::{ApproveError, DefinitionChoice, LockStatus};
pub use reconnect::ReconnectError;
pub(crate) use redactors::Redactors;
pub use remote::{PromptInfo, ResourceInfo};
pub use servers::{ServerIdentity, ServerInfo, StateChange};
use snapshot::Snapshot;
pub use start::{ConnectFailed, StartError};

/// Time limit for calls to end after the shutdown cancelled them.
const CUT_WAIT_MAX: Duration = Duration::from_secs(2);

/// Minimum time for flushing the log after the grace period.
const LOG_WAIT_MIN: Duration = Duration::from_secs(1);

/// A running toolbox. Clones share its state.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # use haft::{ConfigBuilder, FunctionTool, Runtime, Tool, ToolCall, ToolOutput};
/// # use serde_json::json;
/// # let config = ConfigBuilder::new().folder(folder.path()).build()?;
/// # let echo = FunctionTool::new("echo", "Returns its arguments.", json!({"type": "object"}), |args, _| async move {
/// #     Ok(ToolOutput::from_text(args.to_string()))
/// # });
/// # let runtime = Runtime::builder(config).tool(echo.with_default_limits()).start().await?;
/// let envelope = runtime.call(ToolCall::new("echo", &json!({"a": 1}))).await;
/// assert_eq!(envelope.model_text(), r#"{"a":1}"#);
/// assert!(runtime.running().is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    snapshot: ArcSwap<Snapshot>,
    calls: Arc<Calls>,
    parts: Parts,
    /// Tasks besides the calls.
    background: TaskTracker,
    /// Serializes configuration changes.
    applying: Arc<tokio::sync::Mutex<()>>,
    /// Counts replacements of the snapshot.
    changes: watch::Sender<u64>,
    /// Looks for tools that another service registered.
    refresh_unknown: OnceLock<RefreshUnknown>,
}

/// Brings the toolbox up to date before a name counts as unknown.
type RefreshUnknown = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

impl Inner {
    /// Creates a runtime that follows changes of its servers.
    fn new(snapshot: Snapshot, parts: Parts) -> Arc<Self> {
        let config = snapshot.config();
        parts.inbox.configure(&config.inbox, config.secrets());
        parts.limit_memory(config);
        let clock = Arc::clone(&parts.clock);
        let calls = Calls::new(
            parts.memory.clone(),
            parts.inbox.clone(),
            parts.outputs.clone(),
            clock,
            parts.observer.clone(),
            Arc::clone(&parts.limits),
            parts.replica,
        );
        let inner = Arc::new(Self {
            snapshot: ArcSwap::from_pointee(snapshot),
            calls: Arc::new(calls),
            parts,
            background: TaskTracker::new(),
            applying: Arc::default(),
            changes: watch::Sender::new(0),
            refresh_unknown: OnceLock::new(),
        });
        inner.background.spawn(follow_changes(Arc::downgrade(&inner)));
        if inner.parts.is_served {
            inner.background.spawn(definition_inbox::run(Arc::downgrade(&inner)));
        }
        if inner.parts.purpose == Purpose::Call {
            let saving = Arc::clone(&inner.parts.limits);
            inner.background.spawn(saving.save_until(inner.parts.stop_servers.clone()));
        }
        inner
    }

    /// Replaces the old snapshot.
    fn publish(self: &Arc<Self>, new: Snapshot, old: Arc<Snapshot>) {
        self.replace(new);
        // Calls in flight may still use connections that the new configuration drops.
        let inner = Arc::clone(self);
        self.background.spawn(async move {
            let new = inner.snapshot.load_full();
            old.server_pool.retire(&new.server_pool).await;
        });
    }

    /// Registers the current tools of the servers, if they changed.
    pub(crate) async fn refresh(&self) {
        let _one_at_a_time = self.applying.lock().await;
        let old = self.snapshot.load_full();
        if !old.server_pool.is_current() {
            let new = start::refresh(&self.parts, &old).await;
            self.replace(new);
        }
    }

    fn replace(&self, new: Snapshot) {
        new.toolbox.set_limits();
        let config = new.config();
        self.parts.inbox.configure(&config.inbox, config.secrets());
        self.parts.limit_memory(config);
        self.snapshot.store(Arc::new(new));
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Lists lazy servers that were never listed. Returns true if the toolbox may have grown.
    async fn discover_unlisted(&self) -> bool {
        let has_answers = self.snapshot.load_full().server_pool.ask_unlisted().await;
        self.take_over(has_answers).await
    }

    /// Returns true if the toolbox may have grown.
    async fn take_over(&self, has_answers: bool) -> bool {
        // A server that was just listed may not be in the snapshot yet.
        let has_news = has_answers || !self.snapshot.load().server_pool.is_current();
        if has_news {
            self.refresh().await;
        }
        has_news
    }
}

impl ToolboxSource for Inner {
    fn current(&self) -> Arc<Toolbox> {
        Arc::clone(&self.snapshot.load().toolbox)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn discover(&self) -> BoxFuture<'_, ()> {
        let refreshing = self.refresh_unknown.get().map(|refresh| refresh());
        Box::pin(async move {
            let refresh = async {
                if let Some(refreshing) = refreshing {
                    refreshing.await;
                }
            };
            tokio::join!(self.discover_unlisted(), refresh);
        })
    }

    fn confirm(&self, tool: &ActiveTool) -> Option<BoxFuture<'_, ()>> {
        let server = tool.registered.source.server()?;
        let connection = self.snapshot.load().server_pool.unconfirmed(server)?;
        Some(Box::pin(async move {
            // If it fails, the call itself reports the reason.
            let _ = connection.first_attempt().await;
            self.refresh().await;
        }))
    }

    fn unapproved(&self, tool: &str, tool_filter: &ToolFilter) -> Option<CallError> {
        definition_lock::unapproved(&self.snapshot.load(), tool, tool_filter)
    }

    fn unavailable(&self, tool: &str, tool_filter: &ToolFilter) -> Option<ToolFailure> {
        self.snapshot.load().unavailable(tool, tool_filter)
    }
}

/// Refreshes the snapshot on server changes until the runtime is dropped.
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

/// State that survives a change of configuration.
pub(crate) struct Parts {
    /// The memory budget for data in flight.
    pub(crate) memory: MemoryBudget,
    functions: Vec<Arc<dyn Tool>>,
    warm: Arc<WarmWorkers>,
    clock: Arc<dyn Clock>,
    /// The files of the log that were shipped.
    shipped: ShippedFiles,
    /// Questions to people.
    inbox: HumanInbox,
    /// Results that were too long for their caller.
    outputs: OutputStore,
    /// Receives every finished call.
    observer: Option<Observer>,
    /// Rates and quotas.
    limits: Arc<LimitTable>,
    /// Named by the ids of calls.
    replica: ReplicaNumber,
    purpose: Purpose,
    /// Controls if the lists of lazy servers are cached for the next run.
    list_cache: ListCache,
    /// True if callers other than the operator can call tools.
    is_served: bool,
    /// True if `code_execution` needs approval unless a file configures it.
    asks_before_code: bool,
    /// Stops every connection; cancelled when the runtime is dropped.
    stop_servers: CancellationToken,
    _stop_with_us: DropGuard,
    /// The only tool that will be called, if known.
    wanted: Option<String>,
    /// True if the start waits for servers that cannot prevent it.
    waits_for_all: bool,
    /// Notified when the tools of a server change.
    changed: Arc<Notify>,
    server_handler: Arc<dyn ServerHandler>,
    authorizers: Authorizers,
    watch: Option<ServerWatch>,
    /// The program that puts others into a sandbox, if the embedding program names one.
    sandbox_launcher: Option<PathBuf>,
    redactors: Redactors,
}

impl Parts {
    fn sandbox_context(&self, config: &Config) -> SandboxContext {
        SandboxContext::new(config, self.sandbox_launcher.clone())
    }

    fn limit_memory(&self, config: &Config) {
        self.memory.set_limit(config.limits.in_flight_bytes());
    }
}

/// Token providers, by server.
type Authorizers = Arc<HashMap<String, Arc<dyn Authorizer>>>;

/// Controls if the lists of lazy servers are cached for the next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListCache {
    Write,
    ReadOnly,
}

/// The purpose of a runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Run tools.
    Call,
    /// List the offered tools: writes nothing and refuses calls.
    DryRun,
    /// Diagnose: like `DryRun`, with every server connected and every failure tolerated.
    Inspect,
}

/// The result of a shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Every call ended on its own.
    Clean,
    /// Calls were still running when the grace period ended, and were cancelled.
    Cut,
}

impl Runtime {
    /// Starts a runtime with the tools of a configuration.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::builder(config).start().await
    }

    /// Returns a builder, for example to add tools written in Rust.
    pub fn builder(config: Config) -> RuntimeBuilder {
        RuntimeBuilder::new(config)
    }

    /// Sets the function that brings the toolbox up to date before a name counts as unknown. Only the first one counts.
    pub(crate) fn refresh_unknown_with(
        &self,
        refresh: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) {
        let _ = self.inner.refresh_unknown.set(Box::new(refresh));
    }

    /// Runs one call. Always returns an envelope and always writes exactly one log entry. Dropping
    /// the future cancels the call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # use haft::{ConfigBuilder, FunctionTool, Runtime, Tool, ToolCall, ToolOutput};
    /// # use serde_json::json;
    /// # let config = ConfigBuilder::new().folder(folder.path()).build()?;
    /// # let echo = FunctionTool::new("echo", "Returns its arguments.", json!({"type": "object"}), |args, _| async move {
    /// #     Ok(ToolOutput::from_text(args.to_string()))
    /// # });
    /// # let runtime = Runtime::builder(config).tool(echo.with_default_limits()).start().await?;
    /// let envelope = runtime.call(ToolCall::new("echo", &json!({}))).await.into_result()?;
    /// println!("{} took {} ms", envelope.execution_id, envelope.duration_ms);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call(&self, call: ToolCall) -> Envelope {
        self.inner.calls.run(&*self.inner, call).await
    }

    /// Like [`call`](Self::call), with the unmodified result of an MCP server if there is one, for gateways.
    pub async fn call_for_gateway(&self, call: ToolCall) -> CallAnswer {
        self.inner.calls.run_for_gateway(&*self.inner, call).await
    }

    /// Counts changes of the toolbox: new configurations and changed server lists.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Runs several calls, in parallel only if every tool concerned is `parallel_capable`. Answers
    /// come in the order of the calls.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # use haft::{ConfigBuilder, FunctionTool, Runtime, Tool, ToolCall, ToolOutput};
    /// # use serde_json::json;
    /// # let config = ConfigBuilder::new().folder(folder.path()).build()?;
    /// # let echo = FunctionTool::new("echo", "Returns its arguments.", json!({"type": "object"}), |args, _| async move {
    /// #     Ok(ToolOutput::from_text(args.to_string()))
    /// # });
    /// # let runtime = Runtime::builder(config).tool(echo.with_default_limits()).start().await?;
    /// let calls = (0..3).map(|n| ToolCall::new("echo", &json!({"n": n}))).collect();
    /// let envelopes = runtime.call_batch(calls).await;
    /// assert_eq!(envelopes[2].model_text(), r#"{"n":2}"#);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call_batch(&self, calls: Vec<ToolCall>) -> Vec<Envelope> {
        self.call_batch_telling(calls, |_, _| {}).await
    }

    /// Like [`call_batch`](Self::call_batch); `told` receives each answer as soon as it is
    /// available, with the index of its call.
    pub async fn call_batch_telling(
        &self,
        calls: Vec<ToolCall>,
        told: impl Fn(usize, &Envelope),
    ) -> Vec<Envelope> {
        let source: Arc<dyn ToolboxSource> = self.inner.clone();
        self.inner.calls.run_batch(&source, calls, told).await
    }

    /// The calls in flight, oldest first. Waiting calls of one tool are in their order of arrival.
    pub fn running(&self) -> Vec<RunningCall> {
        self.inner.calls.running.list()
    }

    /// Cancels the call with this id, like [`ToolCall::cancelled_by`]. Returns true if such a call
    /// was in flight; a call that is about to finish may still succeed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # use haft::{ConfigBuilder, FunctionTool, Runtime, Tool, ToolCall, ToolOutput};
    /// # use serde_json::json;
    /// # let config = ConfigBuilder::new().folder(folder.path()).build()?;
    /// # let echo = FunctionTool::new("echo", "Returns its arguments.", json!({"type": "object"}), |args, _| async move {
    /// #     Ok(ToolOutput::from_text(args.to_string()))
    /// # });
    /// # let runtime = Runtime::builder(config).tool(echo.with_default_limits()).start().await?;
    /// assert!(!runtime.cancel("no such call"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel(&self, execution_id: &str) -> bool {
        self.inner.calls.running.cancel(execution_id)
    }

    /// The tools that are offered, in a fixed order: local ones first, then by server.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # use haft::{ConfigBuilder, FunctionTool, Runtime, Tool, ToolCall, ToolOutput};
    /// # use serde_json::json;
    /// # let config = ConfigBuilder::new().folder(folder.path()).build()?;
    /// # let echo = FunctionTool::new("echo", "Returns its arguments.", json!({"type": "object"}), |args, _| async move {
    /// #     Ok(ToolOutput::from_text(args.to_string()))
    /// # });
    /// # let runtime = Runtime::builder(config).tool(echo.with_default_limits()).start().await?;
    /// let names: Vec<String> = runtime.tools().into_iter().map(|tool| tool.name).collect();
    /// assert_eq!(names, ["echo"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn tools(&self) -> Vec<ToolInfo> {
        let snapshot = self.inner.snapshot.load();
        snapshot.toolbox.tools().map(|tool| snapshot.info(tool)).collect()
    }

    /// One tool by its name.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # use haft::{ConfigBuilder, FunctionTool, Runtime, Tool, ToolCall, ToolOutput};
    /// # use serde_json::json;
    /// # let config = ConfigBuilder::new().folder(folder.path()).build()?;
    /// # let echo = FunctionTool::new("echo", "Returns its arguments.", json!({"type": "object"}), |args, _| async move {
    /// #     Ok(ToolOutput::from_text(args.to_string()))
    /// # });
    /// # let runtime = Runtime::builder(config).tool(echo.with_default_limits()).start().await?;
    /// assert!(runtime.tool("echo").is_some() && runtime.tool("other").is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn tool(&self, name: &str) -> Option<ToolInfo> {
        let snapshot = self.inner.snapshot.load();
        snapshot.toolbox.resolve(name).map(|tool| snapshot.info(tool))
    }

    /// The configured servers and their states.
    pub fn servers(&self) -> Vec<ServerInfo> {
        let snapshot = self.inner.snapshot.load();
        snapshot.server_pool.infos(snapshot.config())
    }

    /// The records of the current registration, in order. Those at
    /// [`Level::Error`](crate::registry::Level) are tools that are refused or prevent the start.
    pub fn registration(&self) -> Vec<Record> {
        self.inner.snapshot.load().said.clone()
    }

    /// Connects the servers with `start: lazy` whose tools are unknown and refreshes stale lists,
    /// so that [`tools`](Self::tools) is complete. A call of an unknown tool does the same.
    pub async fn discover(&self) {
        self.inner.discover_unlisted().await;
    }

    /// Registers the lists of servers that have just answered, which otherwise happens in the background.
    pub async fn register_changes(&self) {
        self.inner.take_over(false).await;
    }

    /// Waits until every server without a known list was tried once, and registers the tools of those that answered.
    /// Failed attempts are repeated in the background.
    pub async fn wait_for_lists(&self) {
        self.inner.snapshot.load_full().server_pool.try_unlisted().await;
        self.inner.take_over(false).await;
    }

    /// Refreshes lists that are older than their servers allow (`ttlMs`), or older than a day.
    pub async fn refresh_stale_lists(&self) {
        self.inner.snapshot.load_full().server_pool.refresh_stale().await;
        self.inner.take_over(false).await;
    }

    /// Like [`discover`](Self::discover), for a model, which can call listed tools only. Servers
    /// that do not answer at once are retried in the background, including eager ones.
    pub async fn discover_late(&self) {
        let has_answers = self.inner.snapshot.load_full().server_pool.ask_late().await;
        self.inner.take_over(has_answers).await;
    }

    /// The health of the execution log; `None` for a dry run.
    pub fn log_health(&self) -> Option<LogHealth> {
        self.inner.snapshot.load().toolbox.log.as_ref().map(ExecutionLog::health)
    }

    /// The files of the log that were shipped, for a [`Shipper`](crate::record::Shipper) of this process.
    pub fn shipped_files(&self) -> &ShippedFiles {
        &self.inner.parts.shipped
    }

    /// The memory budget for data in flight, shared with the readers of requests.
    pub fn memory(&self) -> &MemoryBudget {
        &self.inner.parts.memory
    }

    /// Questions to people from tools and calls.
    pub fn inbox(&self) -> &HumanInbox {
        &self.inner.parts.inbox
    }

    /// Replaces the configuration in one step. Calls in flight keep the snapshot they started with.
    /// On an error the old configuration stays.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # use haft::{ConfigBuilder, FunctionTool, Runtime, Tool, ToolCall, ToolOutput};
    /// # use serde_json::json;
    /// # let config = ConfigBuilder::new().folder(folder.path()).build()?;
    /// # let echo = FunctionTool::new("echo", "Returns its arguments.", json!({"type": "object"}), |args, _| async move {
    /// #     Ok(ToolOutput::from_text(args.to_string()))
    /// # });
    /// # let runtime = Runtime::builder(config).tool(echo.with_default_limits()).start().await?;
    /// let config = ConfigBuilder::new().folder(folder.path()).set("defaults.max_concurrent", 50);
    /// runtime.apply(config.build()?).await?;
    /// assert_eq!(runtime.config().defaults.max_concurrent.value, 50);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn apply(&self, config: Config) -> Result<(), StartError> {
        let _one_at_a_time = self.inner.applying.lock().await;
        let old = self.inner.snapshot.load_full();
        let new = Box::pin(start::build(config, &self.inner.parts, Some(&old))).await?;
        self.inner.publish(new, old);
        Ok(())
    }

    /// Stops accepting calls, waits up to `grace` for calls in flight, cancels the rest, and leaves
    /// no process behind.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # use haft::{ConfigBuilder, FunctionTool, Runtime, Tool, ToolCall, ToolOutput};
    /// # use serde_json::json;
    /// # let config = ConfigBuilder::new().folder(folder.path()).build()?;
    /// # let echo = FunctionTool::new("echo", "Returns its arguments.", json!({"type": "object"}), |args, _| async move {
    /// #     Ok(ToolOutput::from_text(args.to_string()))
    /// # });
    /// # let runtime = Runtime::builder(config).tool(echo.with_default_limits()).start().await?;
    /// let shutdown = runtime.shutdown(std::time::Duration::from_secs(1)).await;
    /// assert_eq!(shutdown, haft::Shutdown::Clean);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shutdown(&self, grace: Duration) -> Shutdown {
        let inner = &self.inner;
        let started = Instant::now();
        inner.calls.tasks.close();
        let ended = tokio::time::timeout(grace, inner.calls.tasks.wait()).await;
        if ended.is_err() {
            inner.calls.stop.cancel();
            // A tool that blocks its thread cannot be stopped, and must not block the shutdown.
            if tokio::time::timeout(CUT_WAIT_MAX, inner.calls.tasks.wait()).await.is_err() {
                tracing::error!("{} calls block and are left behind", inner.calls.tasks.len());
            }
        }
        let snapshot = inner.snapshot.load_full();
        for tool in snapshot.toolbox.tools() {
            tool.backend.stop().await;
        }
        inner.parts.stop_servers.cancel();
        if inner.parts.purpose == Purpose::Call {
            inner.parts.limits.save().await;
        }
        snapshot.server_pool.stop().await;
        inner.parts.warm.stop().await;
        kill_all_remaining(inner.parts.warm.scope()).await;
        if let Some(log) = &snapshot.toolbox.log {
            close(log, grace.saturating_sub(started.elapsed()).max(LOG_WAIT_MIN)).await;
        }
        if ended.is_ok() { Shutdown::Clean } else { Shutdown::Cut }
    }
}

/// Flushes the log for at most `wait_max`: a slow disk must not keep the process alive.
async fn close(log: &ExecutionLog, wait_max: Duration) {
    let problem = match tokio::time::timeout(wait_max, log.close()).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.problem(),
        Err(_) => format!("they are not written after {}", human(wait_max)),
    };
    tracing::error!("log entries are lost: {problem}");
}
