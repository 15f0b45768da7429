//! What a toolbox is started with.

#[cfg(feature = "mcp")]
use std::collections::HashMap;
use std::sync::Arc;

#[cfg(feature = "mcp")]
use haft_mcp::oauth::Authorizer;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "mcp")]
use super::ListCache;
use super::{Inner, Parts, Purpose, Runtime, StartError, start};
#[cfg(feature = "mcp")]
use crate::backend::mcp::{Health, RefuseServers, ServerHandler, ServerWatch};
use crate::backend::process::kill_all_remaining;
use crate::backend::script::WarmWorkers;
use crate::call::{CallSummary, Observer};
use crate::config::Config;
use crate::inbox::Inbox;
use crate::memory::MemoryBudget;
use crate::record::{Clock, SystemClock};
use crate::tool::Tool;

/// Collects what a runtime needs beside its configuration.
pub struct RuntimeBuilder {
    config: Config,
    functions: Vec<Arc<dyn Tool>>,
    clock: Arc<dyn Clock>,
    inbox: Inbox,
    observer: Option<Observer>,
    purpose: Purpose,
    #[cfg(feature = "mcp")]
    list_cache: ListCache,
    wanted: Option<String>,
    waits_for_all: bool,
    is_served: bool,
    asks_before_code: bool,
    cancel: CancellationToken,
    #[cfg(feature = "mcp")]
    server_handler: Arc<dyn ServerHandler>,
    #[cfg(feature = "mcp")]
    authorizers: HashMap<String, Arc<dyn Authorizer>>,
    #[cfg(feature = "mcp")]
    watch: Option<ServerWatch>,
}

impl RuntimeBuilder {
    pub(super) fn new(config: Config) -> Self {
        Self {
            config,
            functions: Vec::new(),
            clock: Arc::new(SystemClock),
            inbox: Inbox::default(),
            observer: None,
            purpose: Purpose::Call,
            #[cfg(feature = "mcp")]
            list_cache: ListCache::ReadOnly,
            wanted: None,
            waits_for_all: true,
            is_served: false,
            asks_before_code: false,
            cancel: CancellationToken::new(),
            #[cfg(feature = "mcp")]
            server_handler: Arc::new(RefuseServers),
            #[cfg(feature = "mcp")]
            authorizers: HashMap::new(),
            #[cfg(feature = "mcp")]
            watch: None,
        }
    }

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

    /// Asks people in this inbox, which somebody may have before the toolbox starts.
    #[must_use]
    pub fn inbox(mut self, inbox: Inbox) -> Self {
        self.inbox = inbox;
        self
    }

    /// Hears of every call that is over, exactly once, as its entry goes to the log: also of one
    /// whose future was dropped. `observer` must return at once, for the call's answer comes after it.
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(&CallSummary<'_>) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
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

    /// Keeps the lists of servers that start late for the next run, also in a toolbox that is only inspected.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn keep_lists(mut self) -> Self {
        self.list_cache = ListCache::Write;
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

    /// Waits at the start only for servers that can stop it: those that must be there, and strict ones,
    /// whose tools may not be configured. The others are connected while the toolbox works already.
    #[must_use]
    pub fn without_waiting(mut self) -> Self {
        self.waits_for_all = false;
        self
    }

    /// Says that others than the person who starts it can call tools, over a network. `code_execution` is
    /// then there only where a file asks for built-in tools.
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
            memory: MemoryBudget::new(self.config.limits.in_flight_bytes()),
            functions: self.functions,
            warm: WarmWorkers::new(),
            clock: self.clock,
            inbox: self.inbox,
            observer: self.observer,
            purpose: self.purpose,
            #[cfg(feature = "mcp")]
            list_cache: match self.purpose {
                Purpose::Call => ListCache::Write,
                Purpose::Look | Purpose::Inspect => self.list_cache,
            },
            _stop_with_us: stop_servers.clone().drop_guard(),
            stop_servers,
            wanted: self.wanted,
            waits_for_all: self.waits_for_all,
            is_served: self.is_served,
            asks_before_code: self.asks_before_code,
            changed: Arc::new(Notify::new()),
            #[cfg(feature = "mcp")]
            server_handler: self.server_handler,
            #[cfg(feature = "mcp")]
            authorizers: Arc::new(self.authorizers),
            #[cfg(feature = "mcp")]
            watch: self.watch,
        };
        // A configuration is large, and so is what is made of it.
        let building = Box::pin(start::build(self.config, &parts, None));
        let snapshot = tokio::select! {
            biased;
            built = building => built?,
            () = self.cancel.cancelled() => {
                parts.stop_servers.cancel();
                kill_all_remaining(parts.warm.household()).await;
                return Err(StartError::Cancelled);
            }
        };
        Ok(Runtime { inner: Inner::new(snapshot, parts) })
    }
}
