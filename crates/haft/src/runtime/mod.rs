//! A running toolbox: start, call, apply a new configuration, shut down.

mod call_record;
mod info;
mod local;
mod servers;
mod snapshot;
mod start;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backend::process::kill_all_remaining;
use crate::backend::script::WarmWorkers;
use crate::call::ToolCall;
use crate::config::Config;
use crate::envelope::Envelope;
use crate::record::{Clock, ExecutionLog, LogError, LogHealth, SystemClock};
use crate::session::Sessions;
use crate::tool::Tool;

pub(crate) use call_record::CallRecord;
pub use info::{EffectiveValue, ToolInfo};
pub use servers::{ServerInfo, ServerState};
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
    /// One configuration is applied at a time.
    applying: tokio::sync::Mutex<()>,
}

impl Inner {
    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.parts.clock.now()
    }
}

/// What outlives a change of configuration.
pub(crate) struct Parts {
    functions: Vec<Arc<dyn Tool>>,
    warm: Arc<WarmWorkers>,
    clock: Arc<dyn Clock>,
    purpose: Purpose,
}

/// What a toolbox is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To run tools.
    Call,
    /// To see what it would offer: nothing is written, no call is taken.
    Look,
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

    /// Starts the toolbox.
    pub async fn start(self) -> Result<Runtime, StartError> {
        let Self { config, functions, clock, purpose } = self;
        let parts = Parts { functions, warm: WarmWorkers::new(), clock, purpose };
        let snapshot = start::build(config, &parts, None).await?;
        let inner = Inner {
            snapshot: ArcSwap::from_pointee(snapshot),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            sessions: Sessions::default(),
            parts,
            applying: tokio::sync::Mutex::new(()),
        };
        Ok(Runtime { inner: Arc::new(inner) })
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
        self.inner.snapshot.load().servers.clone()
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
