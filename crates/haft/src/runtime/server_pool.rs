//! The connections to all configured servers.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::lock_gate::LockGate;
use super::servers::ServerInfo;
use super::{ConnectFailed, ListCache, Parts, Purpose, StartError};
use crate::backend::mcp::{
    Connection, ConnectionContext, Lists, McpTool, is_app_only, tool_definition,
};
use crate::config::choices::{ConnectFailure, Mode, Start};
use crate::config::model::Config;
use crate::error::ToolFailure;
use crate::registry::{KnownTools, Level, Record, connect_failure, skipped, would_offer};
use crate::server_state::ServerState;
use crate::tool::{Tool, ToolDefinition};

/// Time to wait for further failures after the first one, so that the error names them all.
const OTHER_FAILURES_WAIT_MAX: Duration = Duration::from_secs(2);

/// The enabled servers of one configuration, in its order.
#[derive(Clone, Default)]
pub(crate) struct ServerPool {
    pub(super) connections: Vec<Arc<Connection>>,
    /// The lists of each server as of construction, so that tools and their backends agree.
    pub(super) offered: Vec<Option<Arc<Lists>>>,
    /// The approved definitions of each.
    pub(super) gates: Vec<LockGate>,
}

impl ServerPool {
    /// Reuses the connections of unchanged servers and creates the others.
    pub(super) fn new(config: &Config, parts: &Parts, old: Option<&Self>) -> Self {
        let context = context(config, parts);
        let enabled = config.servers.iter().filter(|server| !server.disabled.value);
        let connections = enabled
            .map(|server| {
                let kept = old.and_then(|old| old.find(&server.name));
                match kept.filter(|kept| kept.is_of(server, &context)) {
                    Some(kept) => Arc::clone(kept),
                    None => Connection::new(server.clone(), context.clone()),
                }
            })
            .collect();
        Self { connections, offered: Vec::new(), gates: Vec::new() }
    }

    /// Connects eager servers that `old` did not have, in the background.
    pub(super) fn begin(&self, old: &Self) {
        let is_new =
            |it: &&Arc<Connection>| !old.connections.iter().any(|old| Arc::ptr_eq(old, it));
        for connection in self.connections.iter().filter(is_new) {
            if connection.config().start.value == Start::Eager {
                connection.begin_aloud();
            }
        }
    }

    /// Waits until every eager server is connected, concurrently. A required server that fails
    /// prevents the start, unless the runtime inspects. Other failures at about the same time are
    /// named too.
    ///
    /// If only one tool is wanted, servers that do not have it stay unconnected: all of them for a
    /// local tool, otherwise those that earlier runs have listed without it.
    pub(super) async fn connect(
        &self,
        parts: &Parts,
        config: &Config,
        known: Option<&KnownTools>,
    ) -> Result<(), StartError> {
        let is_inspected = parts.purpose == Purpose::Inspect;
        let is_local = |tool: &str| config.local.iter().any(|it| it.definition.name == tool);
        let is_spared = |server: &str| match (parts.wanted.as_deref(), known) {
            (Some(tool), _) if is_local(tool) => true,
            (Some(tool), Some(known)) => known.of(server).is_some() && !known.had(server, tool),
            _ => false,
        };
        let mut connecting = JoinSet::new();
        for (at, connection) in self.connections.iter().enumerate() {
            if is_inspected || connection.config().start.value == Start::Eager {
                let connection = Arc::clone(connection);
                let must_be_there = is_inspected
                    || connection.config().on_connect_failure.value == ConnectFailure::Exit;
                if !must_be_there && is_spared(connection.name()) {
                    // The call connects it after all if no other server has the tool.
                    continue;
                }
                let can_stop_it = must_be_there || connection.config().mode.value == Mode::Strict;
                if !parts.waits_for_all && !can_stop_it {
                    connection.begin_aloud();
                    continue;
                }
                connecting.spawn(async move {
                    let failed = if must_be_there {
                        connection.connect().await.err()
                    } else {
                        // Further attempts happen in the background.
                        connection.first_attempt().await.err()
                    };
                    (at, failed.map(|reason| reason.to_string()))
                });
            }
        }
        let mut failed = Vec::new();
        let mut deadline = None;
        while let Some(joined) = next_within(&mut connecting, deadline).await {
            if let Ok((at, Some(reason))) = joined {
                let required = self.connections[at].config().on_connect_failure.value;
                failed.push((at, reason));
                if required == ConnectFailure::Exit && !is_inspected {
                    deadline.get_or_insert_with(|| Instant::now() + OTHER_FAILURES_WAIT_MAX);
                }
            }
        }
        if is_inspected {
            return Ok(());
        }
        // Configuration order, so that the error is deterministic.
        failed.sort_unstable();
        let mut stops = Vec::new();
        for (at, reason) in failed {
            let config = self.connections[at].config();
            let (server, endpoint) = (&config.name, &config.endpoint);
            match config.on_connect_failure.value {
                ConnectFailure::Exit => {
                    let text = connect_failure(server, endpoint, &reason);
                    Record { level: Level::Error, text: text.clone() }.emit();
                    stops.push(ConnectFailed { server: server.clone(), text });
                }
                ConnectFailure::Skip => skipped(server, &reason).emit(),
            }
        }
        if stops.is_empty() { Ok(()) } else { Err(StartError::Connect { failed: stops }) }
    }

    /// Returns true if no list changed since construction.
    pub(super) fn is_current(&self) -> bool {
        let is_same = |connection: &Arc<Connection>, offered: &Option<Arc<Lists>>| match (
            connection.lists(),
            offered,
        ) {
            (Some(now), Some(then)) => Arc::ptr_eq(&now, then),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        self.connections.len() == self.offered.len()
            && self.offers().all(|(connection, offered)| is_same(connection, offered))
    }

    /// The tools of every listed server, from this run or an earlier one.
    pub(super) fn discovered(&self) -> Vec<(String, Vec<ToolDefinition>)> {
        let offering = self.offers().filter(|(it, _)| it.config().load_tools.value);
        offering
            .filter_map(|(connection, lists)| {
                let lists = self.offered_lists(connection, lists.as_ref())?;
                let tools = lists.tools.iter().cloned().map(tool_definition).collect();
                Some((connection.name().to_owned(), tools))
            })
            .collect()
    }

    /// The backend of a server's tool, as registered.
    pub(super) fn backend(
        &self,
        server: &str,
        definition: &Arc<ToolDefinition>,
        app_only: &HashSet<(&str, &str)>,
    ) -> Option<Arc<dyn Tool>> {
        let connection = Arc::clone(self.find(server)?);
        let is_app_only = app_only.contains(&(server, definition.name.as_str()));
        let approval = self.approved(server).and_then(|it| it.approval(&definition.name));
        let tool = McpTool::new(connection, Arc::clone(definition), is_app_only);
        Some(Arc::new(tool.approved(approval)))
    }

    /// The tools that only user interfaces call, by server and the tool's own name.
    pub(super) fn app_only(&self) -> HashSet<(&str, &str)> {
        let offers = self.offers().filter_map(|(connection, lists)| {
            Some((connection, self.offered_lists(connection, lists.as_ref())?))
        });
        let tools = offers.flat_map(|(connection, lists)| {
            let hidden = lists.tools.iter().filter(|tool| is_app_only(&tool.rest));
            hidden.map(|tool| (connection.name(), tool.name.as_str()))
        });
        tools.collect()
    }

    fn offers(&self) -> impl Iterator<Item = (&Arc<Connection>, &Option<Arc<Lists>>)> {
        self.connections.iter().zip(&self.offered)
    }

    /// The state of every server.
    pub(super) fn infos(&self, config: &Config) -> Vec<ServerInfo> {
        let usable = config.servers.iter().map(|server| match self.find(&server.name) {
            Some(connection) => ServerInfo::connected(connection),
            None => ServerInfo::configured(server),
        });
        usable.chain(config.misconfigured.iter().map(ServerInfo::misconfigured)).collect()
    }

    /// The connection to a server.
    pub(super) fn find(&self, name: &str) -> Option<&Arc<Connection>> {
        self.connections.iter().find(|connection| connection.name() == name)
    }

    /// Waits for the first connection attempt of an eager server.
    pub(super) async fn first_attempt(&self, name: &str) {
        let is_eager = |it: &&Arc<Connection>| it.config().start.value == Start::Eager;
        if let Some(connection) = self.find(name).filter(is_eager) {
            // The server's state holds the result.
            let _ = connection.first_attempt().await;
        }
    }

    /// The connection of an eager server whose lists no attempt of this run has confirmed yet.
    pub(super) fn unconfirmed(&self, name: &str) -> Option<Arc<Connection>> {
        let is_unconfirmed = |it: &&Arc<Connection>| {
            it.config().start.value == Start::Eager && it.has_cached_lists()
        };
        self.find(name).filter(is_unconfirmed).cloned()
    }

    /// Tries every server without lists once, concurrently: lazy ones and those being connected.
    pub(super) async fn try_unlisted(&self) {
        let mut trying = JoinSet::new();
        for connection in self.unlisted() {
            let connection = Arc::clone(connection);
            trying.spawn(async move {
                let is_news = connection.config().start.value == Start::Lazy;
                if let Err(reason) = connection.first_attempt().await
                    && is_news
                {
                    skipped(connection.name(), &reason.to_string()).emit();
                }
            });
        }
        trying.join_all().await;
    }

    /// All connections, in the order of the configuration.
    pub(super) fn all(&self) -> &[Arc<Connection>] {
        &self.connections
    }

    /// Connects servers without a list: lazy ones, those that the start left out, and those being
    /// retried. Returns true if any answered.
    pub(super) async fn ask_unlisted(&self) -> bool {
        let mut asking = JoinSet::new();
        for connection in self.unlisted() {
            let connection = Arc::clone(connection);
            asking.spawn(async move {
                let state = connection.health().state;
                let is_news = connection.config().start.value == Start::Lazy
                    || state == ServerState::Configured;
                let failed = connection.connect().await.err();
                if let Some(reason) = failed.as_ref().filter(|_| is_news) {
                    skipped(connection.name(), &reason.to_string()).emit();
                }
                failed.is_none()
            });
        }
        let (answers, ()) = tokio::join!(asking.join_all(), self.refresh_stale());
        answers.contains(&true)
    }

    /// Refreshes stale lists, concurrently.
    pub(super) async fn refresh_stale(&self) {
        let mut refreshing = JoinSet::new();
        for connection in self.connections.iter().filter(|it| it.has_stale_lists()) {
            let connection = Arc::clone(connection);
            refreshing.spawn(async move {
                if let Err(reason) = connection.refresh_stale_lists().await {
                    skipped(connection.name(), &reason.to_string()).emit();
                }
            });
        }
        refreshing.join_all().await;
    }

    /// Connects lazy servers that were never listed, without waiting for servers that are being
    /// retried.
    pub(super) async fn ask_late(&self) -> bool {
        let mut asking = JoinSet::new();
        let is_late = |it: &&Arc<Connection>| it.config().start.value == Start::Lazy;
        for connection in self.unlisted().filter(is_late) {
            let connection = Arc::clone(connection);
            asking.spawn(async move {
                let failed = connection.first_attempt().await.err();
                if let Some(reason) = &failed {
                    skipped(connection.name(), &reason.to_string()).emit();
                }
                failed.is_none()
            });
        }
        let (answers, ()) = tokio::join!(asking.join_all(), self.refresh_stale());
        answers.contains(&true)
    }

    /// The failure of a tool whose server had it in earlier runs and is unreachable now.
    pub(super) fn missing(
        &self,
        tool: &str,
        config: &Config,
        known: &KnownTools,
        is_shown: impl Fn(&str) -> bool,
    ) -> Option<ToolFailure> {
        let is_gone = |it: &&Arc<Connection>| {
            it.lists().is_none()
                && would_offer(config, it.config(), known, tool)
                && is_shown(it.name())
        };
        self.connections.iter().find(is_gone).map(|connection| connection.unavailable())
    }

    fn unlisted(&self) -> impl Iterator<Item = &Arc<Connection>> {
        let may_have_more = |connection: &&Arc<Connection>| {
            let state = connection.health().state;
            let is_waited_for = state == ServerState::Connecting;
            let is_late =
                connection.config().start.value == Start::Lazy || state == ServerState::Configured;
            connection.lists().is_none() && (is_late || is_waited_for)
        };
        self.connections.iter().filter(may_have_more)
    }

    /// Closes every connection that `new` does not keep, once its calls have ended.
    pub(super) async fn retire(&self, new: &Self) {
        let is_kept = |it: &Arc<Connection>| new.connections.iter().any(|new| Arc::ptr_eq(new, it));
        let mut retiring = JoinSet::new();
        for connection in self.connections.iter().filter(|connection| !is_kept(connection)) {
            let connection = Arc::clone(connection);
            retiring.spawn(async move { connection.retire().await });
        }
        retiring.join_all().await;
    }

    /// Closes every connection and waits for all of its tasks and processes.
    pub(super) async fn stop(&self) {
        let mut stopping = JoinSet::new();
        for connection in &self.connections {
            let connection = Arc::clone(connection);
            stopping.spawn(async move { connection.stop().await });
        }
        stopping.join_all().await;
    }
}

/// The next finished connection attempt; `None` after the deadline.
async fn next_within<T: 'static>(
    connecting: &mut JoinSet<T>,
    deadline: Option<Instant>,
) -> Option<Result<T, JoinError>> {
    match deadline {
        Some(deadline) => timeout_at(deadline, connecting.join_next()).await.ok().flatten(),
        None => connecting.join_next().await,
    }
}

/// The parts of the runtime that connections need.
fn context(config: &Config, parts: &Parts) -> ConnectionContext {
    let state_dir = &config.state_dir.value;
    ConnectionContext {
        memory: parts.memory.clone(),
        scope: parts.warm.scope(),
        handler: Arc::clone(&parts.server_handler),
        stop: parts.stop_servers.clone(),
        changed: Arc::clone(&parts.changed),
        cache: Some(state_dir.join("servers")),
        may_write: parts.list_cache == ListCache::Write,
        announces: parts.purpose == Purpose::Call,
        offers_cached: !parts.waits_for_all,
        redactor: parts.redactors.log(config),
        descriptions: parts.redactors.descriptions(config),
        tokens: config.tokens_dir(),
        authorizers: Arc::clone(&parts.authorizers),
        watch: parts.watch.clone(),
        nodes_max: config.limits.nodes_max(),
        sandbox: parts.sandbox_context(config),
    }
}
