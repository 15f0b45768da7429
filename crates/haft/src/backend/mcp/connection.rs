//! The handle of one server for as long as the toolbox lives. The supervisor owns the connection itself; the handle
//! sends it commands and reads the state it publishes.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use haft_mcp::oauth::Authorizer;
use haft_mcp::{Identity, RequestError};
use jiff::Timestamp;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::commands::CommandSender;
use super::events::Events;
use super::handler::ServerHandler;
use super::health::{Health, Reason, ServerState};
use super::link::{Link, Status};
use super::lists::Lists;
use super::live_client::LiveClient;
use super::process::ServerProcess;
use super::subscriptions::Subscriptions;
use super::{failure, supervisor};
use crate::backend::process::ProcessScope;
use crate::backend::sandbox::SandboxContext;
use crate::config::choices::{ConnectFailure, Mode, Start};
use crate::config::model::ServerConfig;
use crate::error::{Diagnosis, ToolFailure};
use crate::memory::MemoryBudget;
use crate::registry::skipped;
use haft_config::redact::Redactor;

/// The longest time that calls in flight may keep a connection that is no longer configured.
const RETIRE_WAIT_MAX: Duration = Duration::from_mins(5);

/// Receives the name and the health of a server after each change.
pub type ServerWatch = Arc<dyn Fn(&str, &Health) + Send + Sync>;

/// The parts of the toolbox that a connection uses.
#[derive(Clone)]
pub struct ConnectionContext {
    /// The memory for everything in flight.
    pub memory: MemoryBudget,
    /// The processes that end together.
    pub scope: ProcessScope,
    /// Answers the requests of servers.
    pub handler: Arc<dyn ServerHandler>,
    /// Ends every connection of the toolbox.
    pub stop: CancellationToken,
    /// Notified when the tools of a server change.
    pub changed: Arc<Notify>,
    /// The folder for the lists of servers, between runs.
    pub cache: Option<PathBuf>,
    /// True if that folder may be written to.
    pub may_write: bool,
    /// True if the log has a line for each connection.
    pub announces: bool,
    /// True if the lists of an earlier run are offered until an eager server is connected.
    pub offers_cached: bool,
    /// The folder for the tokens of `haft login`.
    pub tokens: PathBuf,
    /// Masks the secrets of the configuration, which servers may repeat.
    pub redactor: Redactor,
    /// Masks them in what servers send about themselves and their tools.
    pub descriptions: Redactor,
    /// Give requests to a server their token, if the embedding program does that.
    pub authorizers: Arc<HashMap<String, Arc<dyn Authorizer>>>,
    /// Receives every change of state.
    pub watch: Option<ServerWatch>,
    /// The number of values and keys that one message of a server may have.
    pub nodes_max: usize,
    /// Facts that the sandboxes of server processes share.
    pub sandbox: SandboxContext,
}

/// A configured server and the connection to it.
pub struct Connection {
    pub(super) config: ServerConfig,
    pub(super) context: ConnectionContext,
    /// The state, written by the supervisor alone.
    pub(super) published: watch::Receiver<Published>,
    /// Handles messages of the server, and sends commands to the supervisor.
    pub(super) events: Arc<Events>,
    pub(super) process: ServerProcess,
    pub(super) subscriptions: Subscriptions,
    /// Gets tokens with the configured client, for all attempts to connect.
    pub(super) client_credentials: OnceLock<Arc<dyn Authorizer>>,
    /// The supervisor, and background requests.
    pub(super) tasks: TaskTracker,
    /// The calls that use the connection.
    calls: TaskTracker,
    stop: CancellationToken,
}

/// The published state of a connection.
pub(super) struct Published {
    pub(super) status: Status<Arc<LiveClient>, KnownLists>,
    /// The time of the last change of health.
    pub(super) since: Timestamp,
    /// The last changes of health, the oldest first.
    pub(super) history: VecDeque<Health>,
}

/// Lists with the time at which they were read.
#[derive(Clone)]
pub(super) struct KnownLists {
    pub(super) lists: Arc<Lists>,
    read_at: SystemTime,
    /// True if an earlier run read them, and this one has not confirmed them yet.
    is_cached: bool,
}

impl KnownLists {
    pub(super) fn read_now(lists: Arc<Lists>) -> Self {
        Self { lists, read_at: SystemTime::now(), is_cached: false }
    }

    pub(super) fn is_cached(&self) -> bool {
        self.is_cached
    }

    /// The age of the lists. Lists from the future are older than any limit: the clock was set back since.
    pub(super) fn age(&self) -> Duration {
        SystemTime::now().duration_since(self.read_at).unwrap_or(Duration::MAX)
    }
}

impl Connection {
    /// A server that no caller needed yet. Its lists may be known from an earlier run.
    pub fn new(config: ServerConfig, context: ConnectionContext) -> Arc<Self> {
        let cached = if uses_cache(&config, &context) {
            Lists::load_cached(&config, &context)
        } else {
            None
        };
        let lists = cached.map(|(lists, read_at)| KnownLists {
            lists: Arc::new(lists),
            read_at,
            is_cached: true,
        });
        let status = Status::new(lists);
        let (sender, published) =
            watch::channel(Published { status, since: Timestamp::now(), history: VecDeque::new() });
        let commands = CommandSender::default();
        let received = commands.subscribe();
        let connection = Arc::new(Self {
            published,
            events: Arc::new(Events::new(&config, &context, commands)),
            process: ServerProcess::default(),
            subscriptions: Subscriptions::default(),
            client_credentials: OnceLock::new(),
            tasks: TaskTracker::new(),
            calls: TaskTracker::new(),
            stop: context.stop.child_token(),
            config,
            context,
        });
        connection.tasks.spawn(supervisor::run(Arc::clone(&connection), received, sender));
        connection
    }

    /// The server's name in the configuration.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// The server's configuration.
    pub fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Connects in the background.
    pub fn begin(&self) {
        let rounds = self.published.borrow().status.rounds;
        self.events.commands.connect(rounds);
    }

    /// Connects in the background, and logs a failure of the first attempt.
    pub fn begin_aloud(self: &Arc<Self>) {
        self.begin();
        let connection = Arc::clone(self);
        self.tasks.spawn(async move {
            if let Err(reason) = connection.first_attempt().await
                && !connection.stop.is_cancelled()
            {
                skipped(connection.name(), &reason.to_string()).emit();
            }
        });
    }

    /// The connected client. Connects, or waits for the connection being made.
    pub(super) async fn client(&self) -> Result<Arc<LiveClient>, Reason> {
        if let Some(client) = self.ready() {
            return Ok(client);
        }
        let mut published = self.published.clone();
        let seen = published.borrow_and_update().status.rounds;
        self.events.commands.connect(seen);
        loop {
            {
                let published = published.borrow_and_update();
                if let Some(client) = usable(&published.status.link) {
                    return Ok(client);
                }
                if published.status.rounds > seen {
                    return Err(reason(&published.status.link));
                }
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err("it was stopped".to_owned().into()),
                _ = published.changed() => {}
            }
        }
    }

    /// Connects, or waits for the connection being made.
    pub async fn connect(&self) -> Result<(), Reason> {
        self.client().await.map(drop)
    }

    /// Waits for the first attempt to connect, and not for those that may follow a failure.
    pub async fn first_attempt(&self) -> Result<(), Reason> {
        let mut published = self.published.clone();
        tokio::select! {
            biased;
            connected = self.connect() => connected,
            _ = published.wait_for(|it| it.status.failed_attempts > 0) => Err(self.reason()),
        }
    }

    /// Drops the connection there is, makes a new one at once, and waits for the first attempt.
    pub async fn reconnect(&self) {
        let mut published = self.published.clone();
        let ticket = self.events.commands.reconnect();
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            _ = published.wait_for(|it| it.status.reconnects >= ticket) => {}
        }
    }

    /// The lists of the server, if they were ever read.
    pub fn lists(&self) -> Option<Arc<Lists>> {
        self.published.borrow().status.lists.as_ref().map(|known| Arc::clone(&known.lists))
    }

    /// True if an attempt to connect is over, whatever its outcome.
    pub fn was_tried(&self) -> bool {
        let published = self.published.borrow();
        published.status.rounds > 0 || published.status.failed_attempts > 0
    }

    /// True if the lists are those of an earlier run.
    pub fn has_cached_lists(&self) -> bool {
        self.published.borrow().status.lists.as_ref().is_some_and(|known| known.is_cached)
    }

    pub(super) fn known_lists(&self) -> Option<KnownLists> {
        self.published.borrow().status.lists.clone()
    }

    /// The identity the server reports, while it is connected, without known secrets.
    pub fn identity(&self) -> Option<Identity> {
        let mut identity = self.ready()?.identity().clone();
        let redactor = &self.context.descriptions;
        let Identity { era: _, protocol_version, name, version, capabilities, instructions } =
            &mut identity;
        let texts = [name, version, instructions].into_iter().flatten().chain([protocol_version]);
        texts.for_each(|text| redactor.mask(text));
        redactor.mask_value(capabilities);
        Some(identity)
    }

    /// The state of the server, with its reason.
    pub fn health(&self) -> Health {
        let published = self.published.borrow();
        let (state, reason, retries) = published.status.link.health();
        // A server that the supervisor has not begun to connect yet counts as connecting, because a call that misses a
        // tool waits for such servers.
        if state == ServerState::Configured && self.events.commands.wants_connection() {
            return Health::new(ServerState::Connecting);
        }
        Health { state, reason: reason.cloned(), since: published.since, retries }
    }

    /// The last changes of the state, the oldest first.
    pub fn history(&self) -> Vec<Health> {
        self.published.borrow().history.iter().cloned().collect()
    }

    /// The end of what the server wrote to its standard error, if it wrote anything.
    pub fn stderr_tail(&self) -> Option<String> {
        Some(self.process.tail.text())
            .filter(|tail| !tail.trim().is_empty())
            .map(|tail| self.context.redactor.text(&tail).into_owned())
    }

    /// The number of lines the server wrote that are not messages.
    pub fn stray_lines(&self) -> u64 {
        self.events.anomalies.stray_lines()
    }

    /// A possible reason for a request without an answer since `began`.
    pub(super) fn diagnosis_since(&self, began: Instant) -> Option<Diagnosis> {
        self.events.anomalies.since(began, self.name(), &self.config.endpoint)
    }

    /// Ends the connection in the way the server expects, and waits until nothing of it is left.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.process.drain().await;
    }

    /// Ends the connection when the calls in flight have ended.
    pub async fn retire(&self) {
        self.calls.close();
        let _ = tokio::time::timeout(RETIRE_WAIT_MAX, self.calls.wait()).await;
        self.stop().await;
    }

    /// True if `config` describes this very connection.
    pub fn is_of(&self, config: &ServerConfig, context: &ConnectionContext) -> bool {
        self.config.is_same_connection(config) && self.context.nodes_max == context.nodes_max
    }

    /// The failure of a call that needs this server now.
    pub fn unavailable(&self) -> ToolFailure {
        failure::unavailable(self, &self.reason())
    }

    /// The client, if there is one and its connection is alive.
    pub(super) fn ready(&self) -> Option<Arc<LiveClient>> {
        usable(&self.published.borrow().status.link)
    }

    /// Keeps the connection from being retired for as long as the guard lives.
    pub(super) fn in_use(&self) -> TaskTrackerToken {
        self.calls.token()
    }

    /// Cancelled when the connection is stopped.
    pub(super) fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Masks the secrets of the configuration.
    pub(super) fn redactor(&self) -> &Redactor {
        &self.context.redactor
    }

    /// The number of retries after a loss.
    pub(super) fn retries_max(&self) -> u32 {
        self.config.reconnect.attempts.value
    }

    /// Reports the connection as lost if a request failed in a way that shows it. Other requests in flight keep the
    /// client and may still succeed.
    pub(super) fn report_if_lost(&self, client: &LiveClient, error: &RequestError) {
        let RequestError::Transport(error) = error else { return };
        if error.ends_connection() && client.withdraw(error.clone()) {
            self.events.commands.lost(client.attempt());
        }
    }

    fn reason(&self) -> Reason {
        reason(&self.published.borrow().status.link)
    }
}

/// A server that can prevent the start is judged by what it offers now, never by an earlier run.
fn uses_cache(config: &ServerConfig, context: &ConnectionContext) -> bool {
    let can_stop_start = config.on_connect_failure.value == ConnectFailure::Exit
        || config.mode.value == Mode::Strict;
    match config.start.value {
        Start::Lazy => true,
        Start::Eager => context.offers_cached && !can_stop_start,
    }
}

fn usable(link: &Link<Arc<LiveClient>>) -> Option<Arc<LiveClient>> {
    match link {
        Link::Ready { client, .. } => Some(client).filter(|client| client.is_usable()).cloned(),
        Link::Idle | Link::Connecting { .. } | Link::Down { .. } | Link::Stopped => None,
    }
}

fn reason<C>(link: &Link<C>) -> Reason {
    let (_, reason, _) = link.health();
    reason.cloned().unwrap_or_else(|| "it cannot be reached".to_owned().into())
}
