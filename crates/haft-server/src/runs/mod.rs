//! Runs of the agent in a service: each continues without listeners until it ends or is cancelled.

mod questions;
mod run;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use haft::human_input::CloseReason;
use haft::{AccessLists, Config, ReplicaNumber, Runtime, ToolFailure};
use haft_agent::model::{self, ModelError, ModelFailure};
use haft_agent::{
    Agent, AgentEvent, AgentSettings, Conversation, ConversationStore, OwnerCheck, SessionStore,
    SessionStoreError, Turn, mentioned,
};
use haft_postgres::Database;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use futures_util::FutureExt as _;
use questions::Questions;
pub(crate) use run::RunEvent;
pub use run::{Run, RunSummary};

use crate::gateway::LATE_WAIT_MAX;
use crate::keys::Scope;
use crate::quota::{PerKeyQuota, Permit, QuotaExceeded};
use crate::shared_conversations::{LeaseTimes, SharedConversations};

/// Largest number of active runs.
const RUNNING_MAX: usize = 32;
/// Largest number of ended runs that are kept, and largest size of their events. The oldest is dropped first.
const ENDED_MAX: usize = 200;
const ENDED_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Interval between deletions of expired conversations.
const EXPIRE_EVERY: Duration = Duration::from_hours(1);

/// The runs of a service.
pub struct Runs {
    known: Mutex<BTreeMap<String, Arc<Run>>>,
    quota: PerKeyQuota<Arc<str>>,
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Named by the ids of runs.
    replica: ReplicaNumber,
    /// The conversations of all replicas. Without it they are in files.
    shared: Option<SharedConversations>,
}

/// Parameters of a run.
#[derive(Debug, Clone)]
pub struct RunParams {
    /// In words.
    pub input: String,
    /// The caller, as the log has it.
    pub caller: Arc<str>,
    /// The owner: the caller plus the key's id, because names can be reused.
    pub owner: Arc<str>,
    /// Since when there is this caller.
    pub since: Timestamp,
    /// Ends the run when it is cancelled.
    pub until: Arc<CancellationToken>,
    /// True if the caller may continue conversations of others.
    pub is_admin: bool,
    /// The scope of the caller's key.
    pub scope: Scope,
    /// The tools and servers that the run sees.
    pub lists: Arc<AccessLists>,
    /// The conversation to continue.
    pub session: Option<String>,
    /// The system prompt, instead of the configured one.
    pub system: Option<String>,
    /// Limit on model requests, if lower than the configured one.
    pub max_steps: Option<u32>,
    /// True if every call counts as approved.
    pub approved: bool,
}

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub enum StartRunError {
    /// There is no model to ask.
    #[error("{}", .0.message)]
    Model(ModelError),
    /// The conversation cannot be resumed.
    #[error("{0}")]
    Session(#[from] SessionStoreError),
    /// Another run uses the conversation.
    #[error("the conversation `{0}` is in use by another run")]
    InUse(String),
    /// A resource that the input mentions cannot be read.
    #[error("{0}")]
    Mentioned(Box<ToolFailure>),
    /// Too many runs are active.
    #[error("{RUNNING_MAX} runs are active, the limit")]
    Busy,
    /// The caller has too many active runs.
    #[error("{0} of your runs are active, the limit for one caller")]
    BusyCaller(usize),
    /// The service ends.
    #[error("Haft is shutting down")]
    Stopping,
}

impl RunParams {
    fn owner_check(&self) -> OwnerCheck {
        let params = self.clone();
        Arc::new(move |session, owner| params.owns(session, owner))
    }

    fn owns(&self, session: &str, owner: Option<&str>) -> bool {
        let holder =
            ConversationOwner { caller: &self.caller, owner: &self.owner, since: self.since };
        self.is_admin || owner.is_some_and(|owner| holder.owns(session, owner))
    }
}

/// A caller as a conversation's file may name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConversationOwner<'a> {
    /// As the log has it.
    pub(crate) caller: &'a str,
    /// The caller plus the key's id, because names can be reused.
    pub(crate) owner: &'a str,
    /// Since when there is this caller.
    pub(crate) since: Timestamp,
}

impl ConversationOwner<'_> {
    /// Returns true if the caller owns a conversation whose file names `owner`. A file from a version that stored
    /// only names belongs to the key if it is not older than the key.
    pub(crate) fn owns(self, session: &str, owner: &str) -> bool {
        let is_newer = || began(session).is_some_and(|it| it >= self.since);
        owner == self.owner || owner == self.caller && is_newer()
    }
}

/// The start of a conversation, taken from its id.
fn began(session: &str) -> Option<Timestamp> {
    let (secs, _) = uuid::Uuid::parse_str(session).ok()?.get_timestamp()?.to_unix();
    Timestamp::from_second(i64::try_from(secs).ok()?).ok()
}

impl Default for Runs {
    fn default() -> Self {
        Self::of_replica(ReplicaNumber::ALONE, None)
    }
}

impl Runs {
    /// The runs of one of several replicas of a service: their ids carry its number, and their conversations are in the
    /// database.
    pub fn of_replica(replica: ReplicaNumber, database: Option<Database>) -> Self {
        let stop = CancellationToken::new();
        let shared = database.map(|database| {
            SharedConversations::new(database, LeaseTimes::default(), stop.clone())
        });
        Self {
            known: Mutex::default(),
            quota: PerKeyQuota::of(RUNNING_MAX),
            tasks: TaskTracker::new(),
            stop,
            replica,
            shared,
        }
    }

    /// The conversations that runs continue.
    pub fn conversations(&self, config: &Config) -> Arc<dyn ConversationStore> {
        match &self.shared {
            Some(shared) => Arc::new(shared.clone()),
            None => Arc::new(SessionStore::of(config)),
        }
    }

    /// Starts a run in the background.
    pub async fn begin(
        &self,
        runtime: &Runtime,
        params: RunParams,
    ) -> Result<Arc<Run>, StartRunError> {
        if self.tasks.is_closed() {
            return Err(StartRunError::Stopping);
        }
        let config = runtime.config();
        let model = model::open(&config.agent).map_err(StartRunError::Model)?;
        let store = self.conversations(&config);
        store.check().await?;
        if let Some(id) = &params.session {
            store.require(id, params.owner_check()).await?;
        }
        // The permit comes before slow steps: a run that waits for a resource counts too.
        let permit =
            self.quota.take(Arc::clone(&params.caller)).map_err(|exceeded| match exceeded {
                QuotaExceeded::AllTaken => StartRunError::Busy,
                QuotaExceeded::OwnTaken => StartRunError::BusyCaller(self.quota.each_max()),
            })?;
        let said = mentioned(runtime, &params.input, &params.lists).await;
        let said = said.map_err(|failure| StartRunError::Mentioned(Box::new(failure)))?;
        let mut settings = AgentSettings::from(&*config.agent);
        params.caller.as_ref().clone_into(&mut settings.caller);
        settings.owner = Some(params.owner.to_string());
        settings.lists = Arc::clone(&params.lists);
        settings.approves_all = params.approved;
        settings.scope = Some(params.scope.into());
        settings.system = params.system.clone().or(settings.system);
        settings.max_steps = params.max_steps.unwrap_or(u32::MAX).min(settings.max_steps);
        let agent = Agent::new(runtime.clone(), model, settings);
        let conversation = match &params.session {
            Some(id) => store.resume(id, params.owner_check()).await?,
            None => store.begin(agent.model().name(), &params.owner),
        };
        let run =
            self.enter(Run::new(self.replica, conversation.id(), &params, agent.model().name()))?;
        let (task, stop) = (Arc::clone(&run), self.stop.clone());
        let said = said.content;
        self.tasks.spawn(async move { go(task, permit, agent, conversation, said, stop).await });
        Ok(run)
    }

    /// A run that is known.
    pub fn get(&self, id: &str) -> Option<Arc<Run>> {
        self.lock().get(id).cloned()
    }

    /// The runs that are known, the oldest first.
    pub fn list(&self) -> Vec<Arc<Run>> {
        let mut known = self.lock();
        forget(&mut known, ENDED_MAX);
        known.values().cloned().collect()
    }

    /// Forgets the ended runs of a conversation that was deleted, if the caller may see them.
    pub fn forget_session(&self, session: &str, is_visible: impl Fn(&Run) -> bool) {
        let stays = |run: &Run| run.is_running() || run.session() != session || !is_visible(run);
        self.lock().retain(|_, run| stays(run));
    }

    /// Deletes expired conversations, now and every [`EXPIRE_EVERY`], until `stop`.
    pub async fn expire_conversations(&self, runtime: Runtime, stop: CancellationToken) {
        loop {
            let config = runtime.config();
            let store = self.conversations(&config);
            match store.delete_expired(config.agent.retain_days.value).await {
                Ok(0) => {}
                Ok(count) => tracing::info!("deleted {count} expired conversations"),
                Err(error) => tracing::warn!(%error, "could not delete expired conversations"),
            }
            if stop.run_until_cancelled(tokio::time::sleep(EXPIRE_EVERY)).await.is_none() {
                return;
            }
        }
    }

    /// Waits up to `grace` for active runs, then cancels them.
    pub async fn end(&self, grace: Duration) {
        self.tasks.close();
        if timeout(grace, self.tasks.wait()).await.is_err() {
            self.stop.cancel();
            self.tasks.wait().await;
        }
        if let Some(shared) = &self.shared {
            shared.end().await;
        }
    }

    /// Enters a run, which then has its conversation for itself.
    fn enter(&self, run: Run) -> Result<Arc<Run>, StartRunError> {
        let mut known = self.lock();
        // Closed since: reading what the input mentions takes time.
        if self.tasks.is_closed() {
            return Err(StartRunError::Stopping);
        }
        let is_running = |run: &&Arc<Run>| run.is_running();
        if known.values().filter(is_running).any(|it| it.session() == run.session()) {
            return Err(StartRunError::InUse(run.session().to_owned()));
        }
        forget(&mut known, ENDED_MAX - 1);
        let run = Arc::new(run);
        known.insert(run.id().to_owned(), Arc::clone(&run));
        Ok(run)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Run>>> {
        self.known.lock()
    }
}

/// Drops the oldest ended runs beyond `ended_max`.
fn forget(known: &mut BTreeMap<String, Arc<Run>>, ended_max: usize) {
    let over: Vec<_> = known.values().filter(|run| !run.is_running()).cloned().collect();
    let mut bytes: usize = over.iter().map(|run| run.bytes()).sum();
    for (at, run) in over.iter().enumerate() {
        if over.len() - at <= ended_max && bytes <= ENDED_BYTES_MAX {
            return;
        }
        bytes -= run.bytes();
        known.remove(run.id());
    }
}

/// Drives a run to its end. Questions for people are part of its events.
async fn go(
    run: Arc<Run>,
    permit: Permit<Arc<str>>,
    agent: Agent,
    mut conversation: Conversation,
    said: Vec<haft::Content>,
    stop: CancellationToken,
) {
    let turn_loop = turn_loop(&run, &agent, &mut conversation, said, &stop);
    // After a panic the run still ends, so that its followers do not wait forever.
    let turn =
        AssertUnwindSafe(turn_loop).catch_unwind().await.unwrap_or_else(|_| Err(crashed(&run)));
    // A follower that receives the end may resume the conversation or start another run.
    conversation.close().await;
    drop(permit);
    run.finish(turn);
}

fn crashed(run: &Run) -> ModelError {
    let error = ModelError {
        kind: ModelFailure::Rejected,
        message: "the run ended unexpectedly, by a fault of Haft".to_owned(),
        remedy: Some("look into the service's messages for the reason, and report it".to_owned()),
    };
    let ModelError { message, remedy, .. } = error.clone();
    run.tell(&AgentEvent::TurnFailed { message, remedy });
    error
}

async fn turn_loop(
    run: &Run,
    agent: &Agent,
    conversation: &mut Conversation,
    said: Vec<haft::Content>,
    stop: &CancellationToken,
) -> Result<Turn, ModelError> {
    let cancel = run.cancel.clone();
    let inbox = agent.runtime().inbox();
    let mut wake = inbox.subscribe();
    let questions = Questions::of(run, inbox);
    let tell = |event: AgentEvent| {
        questions.catch_up();
        run.tell(&event);
    };
    // The model can call only tools that it knows, and servers that start late may be missing.
    tokio::select! {
        _ = timeout(LATE_WAIT_MAX, agent.runtime().discover_late()) => {}
        () = cancel.cancelled() => {}
        () = stop.cancelled() => {}
    }
    let mut turn = std::pin::pin!(agent.turn(conversation, said, &tell, &cancel));
    let turn = loop {
        tokio::select! {
            biased;
            turn = &mut turn => break turn,
            received = wake.recv() => match received {
                Ok(_) | Err(RecvError::Lagged(_)) => questions.catch_up(),
                Err(RecvError::Closed) => break turn.await,
            },
            () = stop.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
        }
    };
    questions.catch_up();
    // The server's own task withdraws its question shortly afterwards.
    for id in run.questions() {
        run.closed(&id, Some(CloseReason::Withdrawn));
    }
    turn
}

#[cfg(test)]
mod tests {
    use haft::Config;
    use haft_agent::model::{ChatModel, ModelRequest, ModelStream};

    use super::*;

    struct Crashing;

    impl ChatModel for Crashing {
        fn name(&self) -> &'static str {
            "crashing"
        }

        fn ask(&self, _: ModelRequest) -> ModelStream {
            panic!("as if Haft had a fault");
        }
    }

    #[tokio::test]
    async fn a_crash_is_the_end_of_its_run() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().display();
        let config = format!("state_dir: '{own}'\nlog: {{dir: '{own}'}}\n");
        let config = Config::from_yaml(&config).unwrap();
        let settings = AgentSettings::from(&*config.agent);
        let runtime = Runtime::start(config).await.unwrap();
        let agent = Agent::new(runtime, Arc::new(Crashing), settings);
        let (runs, caller) = (Runs::default(), Arc::<str>::from("key:ada"));
        let conversation = Conversation::new();
        let params = RunParams {
            input: "?".to_owned(),
            caller: Arc::clone(&caller),
            owner: Arc::clone(&caller),
            since: Timestamp::UNIX_EPOCH,
            until: Arc::default(),
            is_admin: false,
            scope: Scope::Call,
            lists: Arc::default(),
            session: None,
            system: None,
            max_steps: None,
            approved: false,
        };
        let run = runs
            .enter(Run::new(ReplicaNumber::ALONE, conversation.id(), &params, "crashing"))
            .unwrap();
        let permit = runs.quota.take(caller).unwrap();
        let stop = CancellationToken::new();
        go(Arc::clone(&run), permit, agent, conversation, vec![haft::Content::text("?")], stop)
            .await;
        let summary = serde_json::to_value(run.summary()).unwrap();
        assert_eq!(summary["status"], "failed");
        assert_eq!(summary["error"]["message"], "the run ended unexpectedly, by a fault of Haft");
        let mut last = None;
        for after in 0.. {
            let Some(event) = run.event(after).await else { break };
            last = Some(event);
        }
        assert_eq!(last.unwrap().name, "turn.failed");
    }
}
