//! Builder for a [`Runtime`].

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use haft_mcp::oauth::Authorizer;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::ListCache;
use super::redactors::Redactors;
use super::{Inner, Parts, Purpose, Runtime, StartError, start};
use crate::backend::mcp::{Health, RefuseServers, ServerHandler, ServerWatch};
use crate::backend::process::kill_all_remaining;
use crate::backend::script::WarmWorkers;
use crate::call::{CallSummary, Observer};
use crate::call_limit::LimitTable;
use crate::caller_access::CallerDirectory;
use crate::config::Config;
use crate::human_input::HumanInbox;
use crate::memory::MemoryBudget;
use crate::outputs::OutputStore;
use crate::record::{Clock, ShippedFiles, SystemClock};
use crate::replica_number::ReplicaNumber;
use crate::tool::Tool;

/// Collects the parts of a runtime besides its configuration.
pub struct RuntimeBuilder {
    config: Config,
    functions: Vec<Arc<dyn Tool>>,
    clock: Arc<dyn Clock>,
    inbox: HumanInbox,
    observer: Option<Observer>,
    callers: Option<Arc<dyn CallerDirectory>>,
    purpose: Purpose,
    list_cache: ListCache,
    wanted: Option<String>,
    waits_for_all: bool,
    is_served: bool,
    asks_before_code: bool,
    cancel: CancellationToken,
    server_handler: Arc<dyn ServerHandler>,
    authorizers: HashMap<String, Arc<dyn Authorizer>>,
    watch: Option<ServerWatch>,
    sandbox_launcher: Option<PathBuf>,
    replica: ReplicaNumber,
}

impl RuntimeBuilder {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            functions: Vec::new(),
            clock: Arc::new(SystemClock),
            inbox: HumanInbox::default(),
            observer: None,
            callers: None,
            purpose: Purpose::Call,
            list_cache: ListCache::ReadOnly,
            wanted: None,
            waits_for_all: true,
            is_served: false,
            asks_before_code: false,
            cancel: CancellationToken::new(),
            server_handler: Arc::new(RefuseServers),
            authorizers: HashMap::new(),
            watch: None,
            sandbox_launcher: None,
            replica: ReplicaNumber::ALONE,
        }
    }

    /// Adds a tool written in Rust. It needs limits of its own ([`Tool::settings`]) or an entry in `tools`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// use haft::{ConfigBuilder, FunctionTool, Runtime, ToolOutput};
    /// use serde_json::json;
    ///
    /// let ping = FunctionTool::new("ping", "Answers pong.", json!({"type": "object"}), |_, _| async {
    ///     Ok(ToolOutput::from_text("pong"))
    /// });
    /// let config = ConfigBuilder::new().folder(folder.path()).build()?;
    /// let runtime = Runtime::builder(config).tool(ping.with_default_limits()).start().await?;
    /// assert_eq!(runtime.tools().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
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

    /// Uses this inbox for questions to people. The caller may share it before the runtime starts.
    #[must_use]
    pub fn inbox(mut self, inbox: HumanInbox) -> Self {
        self.inbox = inbox;
        self
    }

    /// Calls `observer` exactly once for every finished call when its record is logged, including
    /// calls whose future was dropped. The answer waits for `observer`, so it must return at once.
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(&CallSummary<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Limits callers by the owner of their calls ([`ToolCall::owner`](crate::ToolCall::owner)).
    #[must_use]
    pub fn callers(mut self, callers: Arc<dyn CallerDirectory>) -> Self {
        self.callers = Some(callers);
        self
    }

    /// Lists the offered tools only: writes no file and refuses every call.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.purpose = Purpose::DryRun;
        self
    }

    /// Diagnoses the configuration: like [`dry_run`](Self::dry_run), but connects every server,
    /// including lazy ones, and starts despite failures. Problems that would prevent a start appear
    /// in [`Runtime::servers`] and [`Runtime::registration`] instead of the log.
    #[must_use]
    pub fn inspect(mut self) -> Self {
        self.purpose = Purpose::Inspect;
        self
    }

    /// Caches the lists of servers for the next run, also when the runtime only inspects.
    #[must_use]
    pub fn keep_lists(mut self) -> Self {
        self.list_cache = ListCache::Write;
        self
    }

    /// Cancels the start through `cancel`. A cancelled start leaves no process behind.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Answers requests from servers and receives their notifications.
    #[must_use]
    pub fn server_handler(mut self, handler: impl ServerHandler) -> Self {
        self.server_handler = Arc::new(handler);
        self
    }

    /// Provides the tokens for requests to one server, instead of those that `haft login` stored.
    #[must_use]
    pub fn authorizer(mut self, server: impl Into<String>, authorizer: impl Authorizer) -> Self {
        self.authorizers.insert(server.into(), Arc::new(authorizer));
        self
    }

    /// Calls `watch` on every state change of a server, including during the start.
    #[must_use]
    pub fn watch_servers(mut self, watch: impl Fn(&str, &Health) + Send + Sync + 'static) -> Self {
        self.watch = Some(Arc::new(watch));
        self
    }

    /// Waits at the start only for servers that can prevent it: required servers, and strict ones,
    /// whose tools may be unconfigured. The others connect in the background; until then the tools that an earlier run
    /// saw are offered, and a call waits for its server.
    #[must_use]
    pub fn without_waiting(mut self) -> Self {
        self.waits_for_all = false;
        self
    }

    /// Declares that callers other than the operator can reach the runtime over a network.
    /// `code_execution` is then available only if a file enables it.
    #[must_use]
    pub fn served(mut self) -> Self {
        self.is_served = true;
        self
    }

    /// Requires approval of each call of `code_execution`, unless a file configures the tool. For toolboxes
    /// whose calls a model chooses.
    #[must_use]
    pub fn ask_before_code(mut self) -> Self {
        self.asks_before_code = true;
        self
    }

    /// Restricts the start to one tool: servers that are known not to have the tool stay
    /// unconnected. A call of an unknown tool connects them after all.
    #[must_use]
    pub fn for_tool(mut self, tool: impl Into<String>) -> Self {
        self.wanted = Some(tool.into());
        self
    }

    /// Names the program that puts others into a sandbox: one whose `main` calls
    /// [`sandbox::launcher::main`](crate::sandbox::launcher::main) first, usually
    /// [`current_exe`](std::env::current_exe). Without it, programs with `sandbox: landlock` or with
    /// resource limits do not start.
    #[must_use]
    pub fn sandbox_launcher(mut self, program: impl Into<PathBuf>) -> Self {
        self.sandbox_launcher = Some(program.into());
        self
    }

    /// Names one of several replicas of a service: the ids of calls carry its number. The inbox has its own
    /// ([`HumanInbox::of_replica`]).
    #[must_use]
    pub fn replica(mut self, replica: ReplicaNumber) -> Self {
        self.replica = replica;
        self
    }

    /// Starts the runtime.
    pub async fn start(self) -> Result<Runtime, StartError> {
        // Boxed because a configuration and the state built from it are large.
        Box::pin(self.start_in_place()).await
    }

    async fn start_in_place(self) -> Result<Runtime, StartError> {
        let stop_servers = CancellationToken::new();
        let state_dir = &self.config.state_dir.value;
        let limits = LimitTable::open(state_dir, Arc::clone(&self.clock), self.callers);
        let parts = Parts {
            limits: Arc::new(limits),
            memory: MemoryBudget::new(self.config.limits.in_flight_bytes()),
            functions: self.functions,
            warm: WarmWorkers::new(),
            clock: self.clock,
            shipped: ShippedFiles::default(),
            inbox: self.inbox,
            outputs: OutputStore::default(),
            observer: self.observer,
            purpose: self.purpose,
            list_cache: match self.purpose {
                Purpose::Call => ListCache::Write,
                Purpose::DryRun | Purpose::Inspect => self.list_cache,
            },
            _stop_with_us: stop_servers.clone().drop_guard(),
            stop_servers,
            wanted: self.wanted,
            waits_for_all: self.waits_for_all,
            is_served: self.is_served,
            asks_before_code: self.asks_before_code,
            changed: Arc::new(Notify::new()),
            server_handler: self.server_handler,
            authorizers: Arc::new(self.authorizers),
            watch: self.watch,
            sandbox_launcher: self.sandbox_launcher,
            redactors: Redactors::default(),
            replica: self.replica,
        };
        let building = Box::pin(start::build(self.config, &parts, None));
        let snapshot = tokio::select! {
            biased;
            built = building => built?,
            () = self.cancel.cancelled() => {
                parts.stop_servers.cancel();
                kill_all_remaining(parts.warm.scope()).await;
                return Err(StartError::Cancelled);
            }
        };
        Ok(Runtime { inner: Inner::new(snapshot, parts) })
    }
}
