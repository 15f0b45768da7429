//! One server for as long as the toolbox lives: a client when it is there, a reason when it is not.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use haft_bounds::heavy;
use haft_mcp::oauth::Authorizer;
use haft_mcp::{Client, Identity, RequestError, TransportError};
use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::anomalies::Anomalies;
use super::events::Events;
use super::freshness::ReadAt;
use super::handler::ServerHandler;
use super::health::{Health, Reason, ServerState};
use super::lists::{Lists, Resources};
use super::under_way::UnderWay;
use super::{convert, failure, supervisor};
use crate::backend::process::{Household, ProcessTree, SharedTail};
use crate::config::choices::Start;
use crate::config::model::ServerConfig;
use crate::content::{Content, Message};
use crate::error::{Diagnosis, ToolFailure};
use crate::memory::MemoryBudget;
use crate::redact::Redactor;
use crate::registry::skipped;

/// How long calls under way may keep a connection that is no longer configured.
const RETIRE_WAIT_MAX: Duration = Duration::from_mins(5);

/// How long the last words of a process that is gone may take to be read.
const DRAIN_WAIT_MAX: Duration = Duration::from_millis(500);

/// Hears how a server is doing: its name and its state.
pub type ServerWatch = Arc<dyn Fn(&str, &Health) + Send + Sync>;

/// What a connection needs of its toolbox.
#[derive(Clone)]
pub struct Surroundings {
    /// The memory for everything in flight.
    pub memory: MemoryBudget,
    /// Which processes end together.
    pub household: Household,
    /// Who answers the servers' requests.
    pub handler: Arc<dyn ServerHandler>,
    /// Ends every connection of the toolbox.
    pub stop: CancellationToken,
    /// Told when the tools of a server are others than before.
    pub changed: Arc<Notify>,
    /// Where lists of servers that start late are kept between runs.
    pub cache: Option<PathBuf>,
    /// Whether anything may be written there.
    pub may_write: bool,
    /// Where `haft login` keeps its tokens.
    pub tokens: PathBuf,
    /// Knows the secrets of the configuration, which servers may repeat.
    pub redactor: Redactor,
    /// The same for what servers say about themselves and their tools.
    pub descriptions: Redactor,
    /// Who gives requests to a server their token, where the embedding program does.
    pub authorizers: Arc<HashMap<String, Arc<dyn Authorizer>>>,
    /// Told of every change of state.
    pub watch: Option<ServerWatch>,
    /// How many values and keys one message of a server may have.
    pub nodes_max: usize,
}

/// A configured server and the connection to it.
pub struct Connection {
    pub(super) config: ServerConfig,
    pub(super) surroundings: Surroundings,
    pub(super) client: ArcSwapOption<Client>,
    pub(super) lists: ArcSwapOption<Lists>,
    /// How many rounds of connecting are over; a change wakes whoever waits for a client.
    pub(super) rounds: watch::Sender<u64>,
    /// How many attempts to connect have failed.
    pub(super) failures: watch::Sender<u64>,
    /// When the lists were read.
    pub(super) read_at: ReadAt,
    /// How many times the lists were read, or could not be.
    pub(super) refreshes: watch::Sender<u64>,
    /// Hears and answers the server.
    pub(super) events: Arc<Events>,
    /// Its resources, as they were last asked for.
    pub(super) resources: Arc<ArcSwapOption<Resources>>,
    /// The resources somebody wants to hear of, and how many do.
    pub(super) watched: Mutex<HashMap<String, usize>>,
    pub(super) watching: tokio::sync::Mutex<()>,
    pub(super) under_way: UnderWay,
    pub(super) wanted: Notify,
    pub(super) stale: Arc<Notify>,
    pub(super) lost: Notify,
    /// Wishes for a new connection.
    pub(super) wishes: watch::Sender<Wishes>,
    pub(super) tail: SharedTail,
    /// The server's process, where it is one of ours.
    pub(super) process: Arc<tokio::sync::Mutex<Option<ProcessTree>>>,
    pub(super) stop: CancellationToken,
    /// Gets tokens with the configured client, for all attempts to connect.
    pub(super) client_credentials: OnceLock<Arc<dyn Authorizer>>,
    pub(super) tasks: TaskTracker,
    /// What reads the standard error of processes, until nobody has it open any more.
    pub(super) drains: TaskTracker,
    health: Mutex<Health>,
    /// Which client was found to be lost, and why.
    last_loss: Mutex<Option<(Weak<Client>, TransportError)>>,
    /// The calls under way.
    calls: TaskTracker,
}

/// Wishes for a new connection, counted: the first so many were made, taken up, tried.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    pub(super) made: u64,
    pub(super) taken_up: u64,
    pub(super) tried: u64,
}

impl Connection {
    /// A server that nobody tried to reach yet. One that starts late may be known from an earlier
    /// run.
    pub fn new(config: ServerConfig, surroundings: Surroundings) -> Arc<Self> {
        let cached = match config.start.value {
            Start::Lazy => Lists::load_cached(&config, &surroundings),
            Start::Eager => None,
        };
        let (lists, read_at) = cached.unzip();
        let stop = surroundings.stop.child_token();
        let (stale, resources, under_way) = (Arc::default(), Arc::default(), UnderWay::default());
        let events = Arc::new(Events {
            server: config.name.clone(),
            sampling: config.sampling.value,
            list_changed: config.list_changed.value,
            handler: Arc::clone(&surroundings.handler),
            redactor: surroundings.redactor.clone(),
            stale: Arc::clone(&stale),
            resources: Arc::clone(&resources),
            under_way: under_way.clone(),
            troubles: Mutex::new(0),
            anomalies: Anomalies::default(),
        });
        let connection = Arc::new(Self {
            config,
            surroundings,
            client: ArcSwapOption::empty(),
            lists: ArcSwapOption::from_pointee(lists),
            rounds: watch::Sender::new(0),
            failures: watch::Sender::new(0),
            read_at: ReadAt::new(read_at),
            refreshes: watch::Sender::new(0),
            events,
            resources,
            watched: Mutex::default(),
            watching: tokio::sync::Mutex::default(),
            under_way,
            wanted: Notify::new(),
            stale,
            lost: Notify::new(),
            wishes: watch::Sender::default(),
            tail: SharedTail::default(),
            process: Arc::default(),
            stop,
            client_credentials: OnceLock::new(),
            tasks: TaskTracker::new(),
            drains: TaskTracker::new(),
            health: Mutex::new(Health::new(ServerState::Configured)),
            last_loss: Mutex::new(None),
            calls: TaskTracker::new(),
        });
        connection.tasks.spawn(supervisor::run(Arc::clone(&connection)));
        connection
    }

    /// The server's name in the configuration.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// How it is configured.
    pub fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Connects in the background, without anybody waiting for it.
    pub fn begin(&self) {
        // At once and not when the supervisor comes to it: a call that misses a tool waits for
        // servers that are being connected.
        self.set(ServerState::Connecting, None, 0);
        self.wanted.notify_one();
    }

    /// The same, and says if the first attempt fails.
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
    pub async fn client(&self) -> Result<Arc<Client>, Reason> {
        if let Some(client) = self.ready() {
            return Ok(client);
        }
        let mut rounds = self.rounds.subscribe();
        let seen = *rounds.borrow_and_update();
        self.wanted.notify_one();
        loop {
            if let Some(client) = self.ready() {
                return Ok(client);
            }
            if *rounds.borrow_and_update() > seen {
                return Err(self.reason());
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err("it was stopped".to_owned().into()),
                _ = rounds.changed() => {}
            }
        }
    }

    /// Waits for the first attempt to connect, and not for those that may follow a failure.
    pub async fn first_attempt(&self) -> Result<(), Reason> {
        let mut failures = self.failures.subscribe();
        let connected = self.client();
        tokio::select! {
            biased;
            connected = connected => connected.map(drop),
            _ = failures.wait_for(|failures| *failures > 0) => Err(self.reason()),
        }
    }

    /// Drops the connection there is, makes a new one at once, and waits for the first attempt.
    pub async fn reconnect(&self) {
        let mut wishes = self.wishes.subscribe();
        self.wishes.send_modify(|wishes| wishes.made += 1);
        let mine = wishes.borrow_and_update().made;
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            _ = wishes.wait_for(|wishes| wishes.tried >= mine) => {}
        }
    }

    /// An attempt to connect is over, and its outcome can be seen.
    pub(super) fn tried(&self) {
        self.wishes.send_modify(|wishes| wishes.tried = wishes.taken_up);
    }

    /// What the server offers, if it was ever asked.
    pub fn lists(&self) -> Option<Arc<Lists>> {
        self.lists.load_full()
    }

    /// Who the server says it is, while it is connected, without known secrets.
    pub fn identity(&self) -> Option<Identity> {
        let mut identity = self.ready()?.identity().clone();
        let redactor = &self.surroundings.descriptions;
        let Identity { era: _, protocol_version, name, version, capabilities, instructions } =
            &mut identity;
        let texts = [name, version, instructions].into_iter().flatten().chain([protocol_version]);
        texts.for_each(|text| redactor.mask(text));
        redactor.mask_value(capabilities);
        Some(identity)
    }

    /// How it is doing.
    pub fn health(&self) -> Health {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The end of what the server wrote to its standard error, if it wrote anything.
    pub fn stderr_tail(&self) -> Option<String> {
        Some(self.tail.text())
            .filter(|tail| !tail.trim().is_empty())
            .map(|tail| self.surroundings.redactor.text(&tail).into_owned())
    }

    /// How many lines the server wrote that are not messages.
    pub fn stray_lines(&self) -> u64 {
        self.events.anomalies.stray_lines()
    }

    /// What may be the reason that a request got no answer since `began`.
    pub(super) fn diagnosis_since(&self, began: Instant) -> Option<Diagnosis> {
        self.events.anomalies.since(began, self.name(), &self.config.endpoint)
    }

    /// Asks the server for a sign of life; connects if need be.
    pub async fn ping(&self) -> Result<(), ToolFailure> {
        self.with_client("ping", async |client| client.ping().await).await
    }

    /// A prompt with its arguments filled in.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: &RawValue,
    ) -> Result<Vec<Message>, ToolFailure> {
        self.with_client(name, async |client| {
            let raw = client.get_prompt(name, arguments).await?;
            heavy::run(raw.get().len(), move || convert::prompt_messages(&raw)).await
        })
        .await
    }

    /// The resources and templates the server has now.
    pub async fn resources(&self) -> Result<Arc<Resources>, ToolFailure> {
        let mut resources =
            self.with_client("resources", async |client| Resources::load(client).await).await?;
        resources.mask(&self.surroundings.descriptions);
        let resources = Arc::new(resources);
        self.resources.store(Some(Arc::clone(&resources)));
        Ok(resources)
    }

    /// A resource's content.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<Content>, ToolFailure> {
        self.with_client(uri, async |client| {
            let raw = client.read_resource(uri).await?;
            heavy::run(raw.get().len(), move || convert::resource_contents(&raw)).await
        })
        .await
    }

    /// Ends the connection in the way the server expects, and waits until nothing of it is left.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.drains.close();
        // A process that got away may hold the pipe open for as long as it likes.
        let _ = tokio::time::timeout(DRAIN_WAIT_MAX, self.drains.wait()).await;
    }

    /// Ends the connection when the calls under way have ended.
    pub async fn retire(&self) {
        self.calls.close();
        let _ = tokio::time::timeout(RETIRE_WAIT_MAX, self.calls.wait()).await;
        self.stop().await;
    }

    /// Whether `config` describes this very connection.
    pub fn is_of(&self, config: &ServerConfig, surroundings: &Surroundings) -> bool {
        self.config.is_same_connection(config)
            && self.surroundings.nodes_max == surroundings.nodes_max
    }

    /// The failure of whoever needs this server now.
    pub fn unavailable(&self) -> ToolFailure {
        failure::unavailable(self, &self.reason())
    }

    async fn with_client<T>(
        &self,
        what: &str,
        ask: impl AsyncFnOnce(&Client) -> Result<T, RequestError>,
    ) -> Result<T, ToolFailure> {
        let _under_way = self.used();
        let _noted = self.under_way.note_own();
        let client = self.client().await.map_err(|reason| failure::unavailable(self, &reason))?;
        ask(&client).await.map_err(|error| {
            self.note(&client, &error);
            failure::of_call(self, what, &error).without_secrets(&self.surroundings.redactor)
        })
    }

    pub(super) fn lock_watched(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client, if there is one and its connection lives.
    pub(super) fn ready(&self) -> Option<Arc<Client>> {
        self.client.load_full().filter(|client| !client.has_ended())
    }

    /// A call that uses the connection, for as long as the guard lives.
    pub(super) fn used(&self) -> TaskTrackerToken {
        self.calls.token()
    }

    /// What masks the secrets of the configuration.
    pub(super) fn redactor(&self) -> &Redactor {
        &self.surroundings.redactor
    }

    /// How often a lost connection is tried again.
    pub(super) fn retries_max(&self) -> u32 {
        self.config.reconnect.attempts.value
    }

    /// Notes that a request failed in a way that says the connection is gone. Other requests under
    /// way keep the client and may still succeed.
    pub(super) fn note(&self, client: &Arc<Client>, error: &RequestError) {
        let RequestError::Transport(error) = error else { return };
        if !error.ends_connection() {
            return;
        }
        let current = self.client.load_full();
        if current.is_some_and(|current| Arc::ptr_eq(&current, client)) {
            *self.last_loss.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((Arc::downgrade(client), error.clone()));
            self.client.store(None);
            self.lost.notify_one();
        }
    }

    /// Why this client is lost, if somebody found out. What was said of an earlier one is stale.
    pub(super) fn take_loss(&self, client: &Arc<Client>) -> Option<TransportError> {
        let (of, loss) = self.last_loss.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        std::ptr::eq(of.as_ptr(), Arc::as_ptr(client)).then_some(loss)
    }

    pub(super) fn set(&self, state: ServerState, reason: Option<Reason>, retries: u32) {
        let new = Health { reason, retries, ..Health::new(state) };
        let is_news = {
            let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
            let is_news = (health.state, &health.reason) != (new.state, &new.reason);
            // The time is that of the last change, and not of the last look.
            if is_news {
                *health = new.clone();
            } else {
                health.retries = retries;
            }
            is_news
        };
        if let Some(watch) = self.surroundings.watch.as_ref().filter(|_| is_news) {
            watch(self.name(), &new);
        }
    }

    fn reason(&self) -> Reason {
        self.health().reason.unwrap_or_else(|| "it cannot be reached".to_owned().into())
    }
}
