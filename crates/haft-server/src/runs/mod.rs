//! Runs of the agent in a service: each goes on by itself, whoever listens, until it ends or is cancelled.

mod questions;
mod run;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use haft::agent::{
    Agent, AgentEvent, AgentSettings, Conversation, SessionStore, StoreError, Turn, mentioned,
};
use haft::inbox::Closing;
use haft::model::{self, ModelError, ModelFailure};
use haft::{Runtime, ToolFailure};
use jiff::Timestamp;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use futures_util::FutureExt as _;
use questions::Questions;
pub(crate) use run::Told;
pub use run::{Run, RunSummary};

use crate::gateway::LATE_WAIT_MAX;
use crate::shares::{NoShare, Share, Shares};

/// How many runs may go on at once, altogether.
const RUNNING_MAX: usize = 32;
/// How many runs that are over are remembered, and how much their events may be together. The oldest is
/// forgotten first.
const ENDED_MAX: usize = 200;
const ENDED_BYTES_MAX: usize = 128 * 1024 * 1024;

/// How often expired conversations are deleted.
const EXPIRE_EVERY: Duration = Duration::from_hours(1);

/// The runs of a service.
pub struct Runs {
    known: Mutex<BTreeMap<String, Arc<Run>>>,
    places: Shares<Arc<str>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// In words.
    pub input: String,
    /// Who wants it, as the log has it.
    pub caller: Arc<str>,
    /// Whose it will be: the same with what tells a key from others of its name.
    pub owner: Arc<str>,
    /// Since when there is this caller.
    pub since: Timestamp,
    /// Ends the run when it is cancelled.
    pub until: Arc<CancellationToken>,
    /// Whether the caller may go on with conversations of others.
    pub is_admin: bool,
    /// The conversation to go on with.
    pub session: Option<String>,
    /// What the model is told before everything else, in place of what the configuration says.
    pub system: Option<String>,
    /// How often the model may be asked, where that is less than the configuration says.
    pub max_steps: Option<u32>,
    /// Whether every call counts as approved.
    pub approved: bool,
}

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub enum NoRun {
    /// There is no model to ask.
    #[error("{}", .0.message)]
    Model(ModelError),
    /// The conversation cannot be gone on with.
    #[error("{0}")]
    Session(#[from] StoreError),
    /// Another run goes on with the conversation.
    #[error("another run is going on in the conversation `{0}`")]
    InUse(String),
    /// A resource that the input mentions cannot be read.
    #[error("{0}")]
    Mentioned(Box<ToolFailure>),
    /// Too many go on.
    #[error("{RUNNING_MAX} runs are going on, the limit")]
    Busy,
    /// Too many of this caller go on.
    #[error("{0} of your runs are going on, the limit for one caller")]
    BusyCaller(usize),
    /// The service ends.
    #[error("Haft is shutting down")]
    Stopping,
}

impl Wanted {
    fn owns(&self, session: &str, owner: Option<&str>) -> bool {
        let holder = Holder { caller: &self.caller, owner: &self.owner, since: self.since };
        self.is_admin || owner.is_some_and(|owner| holder.owns(session, owner))
    }
}

/// A caller as a conversation's file may name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holder<'a> {
    /// As the log has it.
    pub(crate) caller: &'a str,
    /// The same with what tells a key from others of its name.
    pub(crate) owner: &'a str,
    /// Since when there is this caller.
    pub(crate) since: Timestamp,
}

impl Holder<'_> {
    /// Whether a conversation is the caller's, which its file says is `owner`'s. A file that was written
    /// when names were enough is the key's if it is not older than that.
    pub(crate) fn owns(self, session: &str, owner: &str) -> bool {
        let is_newer = || began(session).is_some_and(|it| it >= self.since);
        owner == self.owner || owner == self.caller && is_newer()
    }
}

/// When a conversation began: its id says so.
fn began(session: &str) -> Option<Timestamp> {
    let (secs, _) = uuid::Uuid::parse_str(session).ok()?.get_timestamp()?.to_unix();
    Timestamp::from_second(i64::try_from(secs).ok()?).ok()
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            places: Shares::of(RUNNING_MAX),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }
}

impl Runs {
    /// Begins a run, which then goes on by itself.
    pub async fn begin(&self, runtime: &Runtime, wanted: Wanted) -> Result<Arc<Run>, NoRun> {
        if self.tasks.is_closed() {
            return Err(NoRun::Stopping);
        }
        let config = runtime.config();
        let model = model::open(&config.agent).map_err(NoRun::Model)?;
        let store = SessionStore::of(&config);
        if let Some(id) = &wanted.session {
            store.require(id, |owner| wanted.owns(id, owner))?;
        }
        // Before what takes time: whoever waits for a resource takes a place too.
        let place =
            self.places.take(Arc::clone(&wanted.caller)).map_err(|no_share| match no_share {
                NoShare::AllTaken => NoRun::Busy,
                NoShare::OwnTaken => NoRun::BusyCaller(self.places.each_max()),
            })?;
        let said = mentioned(runtime, &wanted.input).await;
        let said = said.map_err(|failure| NoRun::Mentioned(Box::new(failure)))?;
        let mut settings = AgentSettings::from(&*config.agent);
        wanted.caller.as_ref().clone_into(&mut settings.caller);
        settings.approves_all = wanted.approved;
        settings.system = wanted.system.clone().or(settings.system);
        settings.max_steps = wanted.max_steps.unwrap_or(u32::MAX).min(settings.max_steps);
        let agent = Agent::new(runtime.clone(), model, settings);
        let conversation = match &wanted.session {
            Some(id) => store.resume_where(id, |owner| wanted.owns(id, owner))?,
            None => store.begin(agent.model().name(), &wanted.owner),
        };
        let run = self.enter(Run::new(conversation.id(), &wanted, agent.model().name()))?;
        let (task, stop) = (Arc::clone(&run), self.stop.clone());
        let said = said.content;
        self.tasks.spawn(async move { go(task, place, agent, conversation, said, stop).await });
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

    /// Forgets the ended runs of a conversation that was deleted.
    pub fn forget_session(&self, session: &str) {
        self.lock().retain(|_, run| run.is_running() || run.session() != session);
    }

    /// Deletes expired conversations, now and every [`EXPIRE_EVERY`], until `stop`.
    pub async fn expire_conversations(runtime: Runtime, stop: CancellationToken) {
        loop {
            let config = runtime.config();
            let (store, days) = (SessionStore::of(&config), config.agent.retain_days.value);
            let expiring = move || store.delete_expired(days, SystemTime::now());
            match tokio::task::spawn_blocking(expiring).await {
                Ok(0) => {}
                Ok(count) => tracing::info!("deleted {count} expired conversations"),
                Err(error) => tracing::warn!(%error, "could not delete expired conversations"),
            }
            if stop.run_until_cancelled(tokio::time::sleep(EXPIRE_EVERY)).await.is_none() {
                return;
            }
        }
    }

    /// Lets what goes on come to its end, for as long as `grace`; then it is broken off.
    pub async fn end(&self, grace: Duration) {
        self.tasks.close();
        if timeout(grace, self.tasks.wait()).await.is_err() {
            self.stop.cancel();
            self.tasks.wait().await;
        }
    }

    /// Enters a run, which then has its conversation for itself.
    fn enter(&self, run: Run) -> Result<Arc<Run>, NoRun> {
        let mut known = self.lock();
        // Closed since: reading what the input mentions takes time.
        if self.tasks.is_closed() {
            return Err(NoRun::Stopping);
        }
        let is_running = |run: &&Arc<Run>| run.is_running();
        if known.values().filter(is_running).any(|it| it.session() == run.session()) {
            return Err(NoRun::InUse(run.session().to_owned()));
        }
        forget(&mut known, ENDED_MAX - 1);
        let run = Arc::new(run);
        known.insert(run.id().to_owned(), Arc::clone(&run));
        Ok(run)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Run>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the oldest runs that are over, but for so many.
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

/// The course of a run. Questions that wait for people are told with the rest.
async fn go(
    run: Arc<Run>,
    place: Share<Arc<str>>,
    agent: Agent,
    mut conversation: Conversation,
    said: Vec<haft::Content>,
    stop: CancellationToken,
) {
    let course = course(&run, &agent, &mut conversation, said, &stop);
    // Whatever is wrong with Haft, nobody shall wait for the end of a run that nobody works on.
    let turn = AssertUnwindSafe(course).catch_unwind().await.unwrap_or_else(|_| Err(crashed(&run)));
    // Whoever hears that it is over may go on with the conversation, or begin another run.
    drop((conversation, place));
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

async fn course(
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
    // The model can call only what it is told of, and servers that start late may not be known yet.
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
            heard = wake.recv() => match heard {
                Ok(_) | Err(RecvError::Lagged(_)) => questions.catch_up(),
                Err(RecvError::Closed) => break turn.await,
            },
            () = stop.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
        }
    };
    questions.catch_up();
    // What a server asked is withdrawn by whoever serves that server, a moment later.
    for id in run.questions() {
        run.closed(&id, Some(Closing::Withdrawn));
    }
    turn
}

#[cfg(test)]
mod tests {
    use haft::Config;
    use haft::model::{ChatModel, ModelRequest, ModelStream};

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
        let wanted = Wanted {
            input: "?".to_owned(),
            caller: Arc::clone(&caller),
            owner: Arc::clone(&caller),
            since: Timestamp::UNIX_EPOCH,
            until: Arc::default(),
            is_admin: false,
            session: None,
            system: None,
            max_steps: None,
            approved: false,
        };
        let run = runs.enter(Run::new(conversation.id(), &wanted, "crashing")).unwrap();
        let place = runs.places.take(caller).unwrap();
        let stop = CancellationToken::new();
        go(Arc::clone(&run), place, agent, conversation, vec![haft::Content::text("?")], stop)
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
