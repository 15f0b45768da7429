//! A running toolbox: start, call, apply a new configuration, shut down.

mod builder;
mod builtin;
mod change;
mod choice;
mod figures;
#[cfg_attr(not(feature = "mcp"), path = "fleet_without_mcp.rs")]
mod fleet;
#[cfg(feature = "mcp")]
mod forward;
mod info;
mod instructions;
mod local;
mod reconnect;
#[cfg(feature = "mcp")]
mod remote;
mod servers;
mod snapshot;
mod start;

#[cfg(feature = "mcp")]
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
#[cfg(feature = "mcp")]
use haft_mcp::oauth::Authorizer;
use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

#[cfg(feature = "mcp")]
use crate::backend::mcp::{ServerHandler, ServerWatch};
use crate::backend::process::kill_all_remaining;
use crate::backend::script::WarmWorkers;
use crate::call::{Calls, Observer, RunningCall, ToolCall, Toolbox, ToolboxSource};
use crate::config::Config;
use crate::envelope::Envelope;
use crate::error::{ToolFailure, human};
use crate::inbox::Inbox;
use crate::memory::MemoryBudget;
use crate::record::{Clock, ExecutionLog, LogHealth};
use crate::registry::Record;
use crate::sight::Sight;
use crate::tool::{BoxFuture, Tool};

pub use builder::RuntimeBuilder;
pub use figures::{Figures, ToolFigures};
#[cfg(feature = "mcp")]
pub use forward::{Offer, Registration, ToolOffer};
pub use info::{EffectiveValue, ToolInfo};
pub use instructions::INSTRUCTIONS_BYTES_MAX;
pub use reconnect::ReconnectError;
#[cfg(feature = "mcp")]
pub use remote::{PromptInfo, ResourceInfo};
pub use servers::{ServerIdentity, ServerInfo};
pub(crate) use snapshot::Snapshot;
pub use start::{ConnectFailed, StartError};

/// How long calls that were cancelled at shutdown may take to end.
const CUT_WAIT_MAX: Duration = Duration::from_secs(2);

/// How long the shutdown waits for the log if the grace period is over.
const LOG_WAIT_MIN: Duration = Duration::from_secs(1);

/// A running toolbox. Clones share it.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    snapshot: ArcSwap<Snapshot>,
    calls: Arc<Calls>,
    parts: Parts,
    /// What goes on beside the calls.
    background: TaskTracker,
    /// One configuration is applied at a time.
    applying: Arc<tokio::sync::Mutex<()>>,
    /// How often the snapshot was replaced.
    changes: watch::Sender<u64>,
}

impl Inner {
    /// A toolbox that follows its servers.
    fn new(snapshot: Snapshot, parts: Parts) -> Arc<Self> {
        let config = snapshot.config();
        parts.inbox.configure(&config.inbox, config.secrets());
        parts.limit_memory(config);
        let clock = Arc::clone(&parts.clock);
        let calls =
            Calls::new(parts.memory.clone(), parts.inbox.clone(), clock, parts.observer.clone());
        let inner = Arc::new(Self {
            snapshot: ArcSwap::from_pointee(snapshot),
            calls: Arc::new(calls),
            parts,
            background: TaskTracker::new(),
            applying: Arc::default(),
            changes: watch::Sender::new(0),
        });
        inner.background.spawn(follow_changes(Arc::downgrade(&inner)));
        inner
    }

    /// Puts a new state in place of the old one.
    fn publish(self: &Arc<Self>, new: Snapshot, old: Arc<Snapshot>) {
        self.replace(new);
        // Calls under way may still use what the new configuration has dropped.
        let inner = Arc::clone(self);
        self.background.spawn(async move {
            let new = inner.snapshot.load_full();
            old.fleet.retire(&new.fleet).await;
        });
    }

    /// Takes over what the servers offer now, if that is something else than before.
    pub(crate) async fn refresh(&self) {
        let _one_at_a_time = self.applying.lock().await;
        let old = self.snapshot.load_full();
        if !old.fleet.is_current() {
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

    /// Asks the servers that start late and were never asked. True if the toolbox may have grown.
    async fn discover_unlisted(&self) -> bool {
        let has_answers = self.snapshot.load_full().fleet.ask_unlisted().await;
        self.take_over(has_answers).await
    }

    /// True if the toolbox may have grown.
    async fn take_over(&self, has_answers: bool) -> bool {
        // A server that was listed a moment ago may not be in use yet.
        let has_news = has_answers || !self.snapshot.load().fleet.is_current();
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
        Box::pin(async move {
            self.discover_unlisted().await;
        })
    }

    fn unavailable(&self, tool: &str, sight: &Sight) -> Option<ToolFailure> {
        self.snapshot.load().unavailable(tool, sight)
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
    /// The memory for everything in flight.
    pub(crate) memory: MemoryBudget,
    functions: Vec<Arc<dyn Tool>>,
    warm: Arc<WarmWorkers>,
    clock: Arc<dyn Clock>,
    /// Questions to people.
    inbox: Inbox,
    /// Hears of every call that is over.
    observer: Option<Observer>,
    purpose: Purpose,
    /// Whether the lists of servers that start late are kept for the next run.
    #[cfg(feature = "mcp")]
    list_cache: ListCache,
    /// Whether others than the person who started it can call tools.
    is_served: bool,
    /// Whether `code_execution` needs approval where no file configures it.
    asks_before_code: bool,
    /// Ends every connection; cancelled when the runtime is gone.
    stop_servers: CancellationToken,
    _stop_with_us: DropGuard,
    /// The one tool that is wanted, where it is only one.
    wanted: Option<String>,
    /// Whether the start waits for servers that cannot stop it.
    waits_for_all: bool,
    /// Told when the tools of a server are others than before.
    changed: Arc<Notify>,
    #[cfg(feature = "mcp")]
    server_handler: Arc<dyn ServerHandler>,
    #[cfg(feature = "mcp")]
    authorizers: Authorizers,
    #[cfg(feature = "mcp")]
    watch: Option<ServerWatch>,
}

impl Parts {
    fn limit_memory(&self, config: &Config) {
        self.memory.set_limit(config.limits.in_flight_bytes());
    }
}

/// Who gives requests their token, by server.
#[cfg(feature = "mcp")]
type Authorizers = Arc<HashMap<String, Arc<dyn Authorizer>>>;

/// Whether the lists of servers that start late are kept for the next run.
#[cfg(feature = "mcp")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListCache {
    Write,
    ReadOnly,
}

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

impl Runtime {
    /// Starts a toolbox with the tools of a configuration.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::builder(config).start().await
    }

    /// Starts a toolbox with tools of one's own.
    pub fn builder(config: Config) -> RuntimeBuilder {
        RuntimeBuilder::new(config)
    }

    /// Runs one call. Always answers, and always leaves exactly one log entry. Dropping the future
    /// cancels the call.
    pub async fn call(&self, call: ToolCall) -> Envelope {
        self.inner.calls.run(&*self.inner, call).await.0
    }

    /// The same, with the whole answer of an MCP server as it wrote it, for those who hand it on
    /// untouched. Nothing for a tool of another kind, and for an answer that was refused.
    pub async fn call_raw(&self, call: ToolCall) -> (Envelope, Option<Box<RawValue>>) {
        self.inner.calls.run(&*self.inner, call).await
    }

    /// Counts how often the toolbox became another one: by a new configuration, or because a server
    /// offers something else.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// Runs several calls, in parallel only where every tool concerned is `parallel_capable`.
    /// Answers come in the order of the calls.
    pub async fn call_batch(&self, calls: Vec<ToolCall>) -> Vec<Envelope> {
        self.call_batch_telling(calls, |_, _| {}).await
    }

    /// The same; `told` hears each answer as soon as it is there, with the place of its call.
    pub async fn call_batch_telling(
        &self,
        calls: Vec<ToolCall>,
        told: impl Fn(usize, &Envelope),
    ) -> Vec<Envelope> {
        let source: Arc<dyn ToolboxSource> = self.inner.clone();
        self.inner.calls.run_batch(&source, calls, told).await
    }

    /// The calls in flight, the oldest first: those of one tool that wait are in the order in which
    /// they came.
    pub fn running(&self) -> Vec<RunningCall> {
        self.inner.calls.running.list()
    }

    /// Ends the call with this id as `Cancelled`, in the same way as [`ToolCall::cancelled_by`]. Returns whether
    /// such a call was in flight; one that is about to answer may still do so.
    pub fn cancel(&self, execution_id: &str) -> bool {
        self.inner.calls.running.cancel(execution_id)
    }

    /// The tools that are offered, in a fixed order: local ones first, then by server.
    pub fn tools(&self) -> Vec<ToolInfo> {
        let snapshot = self.inner.snapshot.load();
        snapshot.toolbox.tools().map(|tool| snapshot.info(tool)).collect()
    }

    /// One tool by its name.
    pub fn tool(&self, name: &str) -> Option<ToolInfo> {
        let snapshot = self.inner.snapshot.load();
        snapshot.toolbox.resolve(name).map(|tool| snapshot.info(tool))
    }

    /// The configured servers and how each is doing.
    pub fn servers(&self) -> Vec<ServerInfo> {
        let snapshot = self.inner.snapshot.load();
        snapshot.fleet.infos(snapshot.config())
    }

    /// What registration had to say about the tools there are now, in its order. What is at
    /// [`Level::Error`](crate::registry::Level) is a tool that is refused or stops the start.
    pub fn registration(&self) -> Vec<Record> {
        self.inner.snapshot.load().said.clone()
    }

    /// Connects the servers with `start: lazy` whose tools are not known yet and reads lists again that are
    /// too old, so that [`tools`](Self::tools) is complete. A call of an unknown tool does the same.
    pub async fn discover(&self) {
        self.inner.discover_unlisted().await;
    }

    /// Reads the lists again that are older than their servers allow (`ttlMs`), or older than a day.
    pub async fn refresh_stale_lists(&self) {
        self.inner.snapshot.load_full().fleet.refresh_stale().await;
        self.inner.take_over(false).await;
    }

    /// The same for a model, which can call only what it is told of. A server that does not answer at once is
    /// tried again while the toolbox works already, and so are those that start with the toolbox.
    pub async fn discover_late(&self) {
        let has_answers = self.inner.snapshot.load_full().fleet.ask_late().await;
        self.inner.take_over(has_answers).await;
    }

    /// How the execution log is doing; nothing for a toolbox that only looks.
    pub fn log_health(&self) -> Option<LogHealth> {
        self.inner.snapshot.load().toolbox.log.as_ref().map(ExecutionLog::health)
    }

    /// The memory for everything in flight, shared with the readers of requests.
    pub fn memory(&self) -> &MemoryBudget {
        &self.inner.parts.memory
    }

    /// Questions to people, asked by tools and calls.
    pub fn inbox(&self) -> &Inbox {
        &self.inner.parts.inbox
    }

    /// Replaces the configuration in one step. Calls under way keep what they began with; if the
    /// new one cannot be used, the old one stays.
    pub async fn apply(&self, config: Config) -> Result<(), StartError> {
        let _one_at_a_time = self.inner.applying.lock().await;
        let old = self.inner.snapshot.load_full();
        let new = Box::pin(start::build(config, &self.inner.parts, Some(&old))).await?;
        self.inner.publish(new, old);
        Ok(())
    }

    /// Stops taking calls, lets those under way finish within `grace`, cancels the rest, and leaves
    /// no process behind.
    pub async fn shutdown(&self, grace: Duration) -> Shutdown {
        let inner = &self.inner;
        let started = Instant::now();
        inner.calls.tasks.close();
        let ended = tokio::time::timeout(grace, inner.calls.tasks.wait()).await;
        if ended.is_err() {
            inner.calls.stop.cancel();
            // A tool that blocks its thread cannot be stopped, and must not stop the shutdown.
            if tokio::time::timeout(CUT_WAIT_MAX, inner.calls.tasks.wait()).await.is_err() {
                tracing::error!("{} calls block and are left behind", inner.calls.tasks.len());
            }
        }
        let snapshot = inner.snapshot.load_full();
        for tool in snapshot.toolbox.tools() {
            tool.backend.stop().await;
        }
        inner.parts.stop_servers.cancel();
        snapshot.fleet.stop().await;
        inner.parts.warm.stop().await;
        kill_all_remaining(inner.parts.warm.household()).await;
        if let Some(log) = &snapshot.toolbox.log {
            close(log, grace.saturating_sub(started.elapsed()).max(LOG_WAIT_MIN)).await;
        }
        if ended.is_ok() { Shutdown::Clean } else { Shutdown::Cut }
    }
}

/// Writes what the log still holds, for at most `wait_max`: a slow disk must not keep the process.
async fn close(log: &ExecutionLog, wait_max: Duration) {
    let problem = match tokio::time::timeout(wait_max, log.close()).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.problem(),
        Err(_) => format!("they are not written after {}", human(wait_max)),
    };
    tracing::error!("log entries are lost: {problem}");
}
