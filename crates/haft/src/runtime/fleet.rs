//! The connections to all configured servers.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::servers::ServerInfo;
use super::{ConnectFailed, ListCache, Parts, Purpose, StartError};
use crate::backend::mcp::{Connection, Lists, McpTool, Surroundings, is_app_only};
use crate::config::choices::{ConnectFailure, Mode, Start};
use crate::config::model::Config;
use crate::error::ToolFailure;
use crate::redact::Redactor;
use crate::registry::{KnownTools, Level, Record, connect_failure, skipped, would_offer};
use crate::server_state::ServerState;
use crate::tool::{Tool, ToolDefinition};

/// The time that a start which failed waits for further failures, so that its error names them all.
const OTHER_FAILURES_WAIT_MAX: Duration = Duration::from_secs(2);

/// The servers of one configuration, in its order. Those that are disabled are not in here.
#[derive(Clone, Default)]
pub(crate) struct Fleet {
    connections: Vec<Arc<Connection>>,
    /// What each of them offered when this was made, so that tools and what runs them agree.
    offered: Vec<Option<Arc<Lists>>>,
}

impl Fleet {
    /// Keeps the connections that the new configuration does not touch, and makes the others.
    pub(super) fn new(config: &Config, parts: &Parts, old: Option<&Self>) -> Self {
        let surroundings = surroundings(config, parts);
        let enabled = config.servers.iter().filter(|server| !server.disabled.value);
        let connections = enabled
            .map(|server| {
                let kept = old.and_then(|old| old.find(&server.name));
                match kept.filter(|kept| kept.is_of(server, &surroundings)) {
                    Some(kept) => Arc::clone(kept),
                    None => Connection::new(server.clone(), surroundings.clone()),
                }
            })
            .collect();
        Self { connections, offered: Vec::new() }
    }

    /// Connects the servers that start with the toolbox and that `old` did not have, in the
    /// background.
    pub(super) fn begin(&self, old: &Self) {
        let is_new =
            |it: &&Arc<Connection>| !old.connections.iter().any(|old| Arc::ptr_eq(old, it));
        for connection in self.connections.iter().filter(is_new) {
            if connection.config().start.value == Start::Eager {
                connection.begin_aloud();
            }
        }
    }

    /// Waits until every server that starts with the toolbox is connected, all at the same time.
    /// One that must be there and is not stops the start, except where the caller wants to see what is
    /// wrong with all of them. Others that fail at about the same time are named too.
    ///
    /// Where only one tool is wanted and earlier runs know which servers have it, nobody waits for
    /// the others.
    pub(super) async fn connect(
        &self,
        parts: &Parts,
        known: Option<&KnownTools>,
    ) -> Result<(), StartError> {
        let is_inspected = parts.purpose == Purpose::Inspect;
        let is_spared = |server: &str| match (parts.wanted.as_deref(), known) {
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
                    connection.begin();
                    continue;
                }
                let can_stop_it = must_be_there || connection.config().mode.value == Mode::Strict;
                if !parts.waits_for_all && !can_stop_it {
                    connection.begin_aloud();
                    continue;
                }
                connecting.spawn(async move {
                    let failed = if must_be_there {
                        connection.client().await.err()
                    } else {
                        // The rest is tried while the toolbox works already.
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
        // The order of the configuration, and not of chance.
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

    /// The same servers with what they offer now.
    pub(super) fn with_current_lists(&self) -> Self {
        let offered = self.connections.iter().map(|connection| connection.lists()).collect();
        Self { connections: self.connections.clone(), offered }
    }

    /// Whether nothing was listed since this was made.
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

    /// The tools of every server that could be asked, now or in an earlier run.
    pub(super) fn discovered(&self) -> Vec<(String, Vec<ToolDefinition>)> {
        let offering = self.offers().filter(|(it, _)| it.config().load_tools.value);
        offering
            .filter_map(|(connection, lists)| {
                let lists = lists.as_ref()?;
                let tools = lists.tools.iter().cloned().map(ToolDefinition::from).collect();
                Some((connection.name().to_owned(), tools))
            })
            .collect()
    }

    /// What runs a tool of a server, as it is registered.
    pub(super) fn backend(
        &self,
        server: &str,
        definition: &Arc<ToolDefinition>,
        app_only: &HashSet<(&str, &str)>,
    ) -> Option<Arc<dyn Tool>> {
        let connection = Arc::clone(self.find(server)?);
        let is_app_only = app_only.contains(&(server, definition.name.as_str()));
        Some(Arc::new(McpTool::new(connection, Arc::clone(definition), is_app_only)))
    }

    /// The tools that only user interfaces call, by server and the tool's own name there.
    pub(super) fn app_only(&self) -> HashSet<(&str, &str)> {
        let offers =
            self.offers().filter_map(|(connection, lists)| Some((connection, lists.as_ref()?)));
        let tools = offers.flat_map(|(connection, lists)| {
            let hidden = lists.tools.iter().filter(|tool| is_app_only(&tool.rest));
            hidden.map(|tool| (connection.name(), tool.name.as_str()))
        });
        tools.collect()
    }

    fn offers(&self) -> impl Iterator<Item = (&Arc<Connection>, &Option<Arc<Lists>>)> {
        self.connections.iter().zip(&self.offered)
    }

    /// How every server is doing.
    pub(super) fn infos(&self, config: &Config) -> Vec<ServerInfo> {
        config
            .servers
            .iter()
            .map(|server| match self.find(&server.name) {
                Some(connection) => ServerInfo::connected(connection),
                None => ServerInfo::configured(server),
            })
            .collect()
    }

    /// The connection to a server.
    pub(super) fn find(&self, name: &str) -> Option<&Arc<Connection>> {
        self.connections.iter().find(|connection| connection.name() == name)
    }

    /// Waits until somebody tried to reach a server that starts with the toolbox.
    pub(super) async fn first_attempt(&self, name: &str) {
        let is_eager = |it: &&Arc<Connection>| it.config().start.value == Start::Eager;
        if let Some(connection) = self.find(name).filter(is_eager) {
            // How it went is in the server's state.
            let _ = connection.first_attempt().await;
        }
    }

    /// All connections, in the order of the configuration.
    pub(super) fn all(&self) -> &[Arc<Connection>] {
        &self.connections
    }

    /// Connects the servers whose tools nobody knows yet: those that start late, and those that are
    /// being tried again. True if any answered.
    pub(super) async fn ask_unlisted(&self) -> bool {
        let mut asking = JoinSet::new();
        for connection in self.unlisted() {
            let connection = Arc::clone(connection);
            asking.spawn(async move {
                let is_news = connection.config().start.value == Start::Lazy;
                let failed = connection.client().await.err();
                if let Some(reason) = failed.as_ref().filter(|_| is_news) {
                    skipped(connection.name(), &reason.to_string()).emit();
                }
                failed.is_none()
            });
        }
        let (answers, ()) = tokio::join!(asking.join_all(), self.refresh_stale());
        answers.contains(&true)
    }

    /// Reads lists again that are older than their servers allow, all at the same time.
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

    /// Connects those that start late and were never listed, without waiting for servers that are being retried.
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

    /// The failure of a tool that is missing because the server that had it in earlier runs cannot be reached.
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
            let is_waited_for = connection.health().state == ServerState::Connecting;
            let is_late = connection.config().start.value == Start::Lazy;
            connection.lists().is_none() && (is_late || is_waited_for)
        };
        self.connections.iter().filter(may_have_more)
    }

    /// Ends every connection that `new` does not keep, when the calls over it have ended.
    pub(super) async fn retire(&self, new: &Self) {
        let is_kept = |it: &Arc<Connection>| new.connections.iter().any(|new| Arc::ptr_eq(new, it));
        let mut retiring = JoinSet::new();
        for connection in self.connections.iter().filter(|connection| !is_kept(connection)) {
            let connection = Arc::clone(connection);
            retiring.spawn(async move { connection.retire().await });
        }
        retiring.join_all().await;
    }

    /// Ends every connection and waits until nothing is left of them.
    pub(super) async fn stop(&self) {
        let mut stopping = JoinSet::new();
        for connection in &self.connections {
            let connection = Arc::clone(connection);
            stopping.spawn(async move { connection.stop().await });
        }
        stopping.join_all().await;
    }
}

/// The next connection that is made or failed; none after the deadline.
async fn next_within<T: 'static>(
    connecting: &mut JoinSet<T>,
    deadline: Option<Instant>,
) -> Option<Result<T, JoinError>> {
    match deadline {
        Some(deadline) => timeout_at(deadline, connecting.join_next()).await.ok().flatten(),
        None => connecting.join_next().await,
    }
}

/// What the connections need of the toolbox.
fn surroundings(config: &Config, parts: &Parts) -> Surroundings {
    let state_dir = &config.state_dir.value;
    Surroundings {
        memory: parts.memory.clone(),
        household: parts.warm.household(),
        handler: Arc::clone(&parts.server_handler),
        stop: parts.stop_servers.clone(),
        changed: Arc::clone(&parts.changed),
        cache: Some(state_dir.join("servers")),
        may_write: parts.list_cache == ListCache::Write,
        redactor: Redactor::new(config.secrets()),
        descriptions: Redactor::of_known(config.described_secrets()),
        tokens: config.tokens_dir(),
        authorizers: Arc::clone(&parts.authorizers),
        watch: parts.watch.clone(),
        nodes_max: config.limits.nodes_max(),
    }
}
