//! Runs of the agent in a service: each goes on by itself, whoever listens, until it ends or is cancelled.

mod questions;
mod run;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft::agent::{
    Agent, AgentEvent, AgentSettings, Conversation, SessionStore, StoreError, Turn, mentioned,
};
use haft::inbox::Closing;
use haft::model::{self, ModelError};
use haft::{Runtime, ToolFailure};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use questions::Questions;
pub(crate) use run::Told;
pub use run::{Run, RunSummary};

/// How many runs may go on at once.
const RUNNING_MAX: usize = 32;
/// How many runs that are over are remembered, and how much their events may be together. The oldest is
/// forgotten first.
const ENDED_MAX: usize = 200;
const ENDED_BYTES_MAX: usize = 128 * 1024 * 1024;

/// The runs of a service.
#[derive(Default)]
pub struct Runs {
    known: Mutex<BTreeMap<String, Arc<Run>>>,
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
    /// The service ends.
    #[error("Haft is shutting down")]
    Stopping,
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
        let owned = |owner: Option<&str>| wanted.is_admin || owner == Some(&*wanted.caller);
        if let Some(id) = &wanted.session {
            store.require(id, owned)?;
        }
        let said = mentioned(runtime, &wanted.input).await;
        let said = said.map_err(|failure| NoRun::Mentioned(Box::new(failure)))?;
        let mut settings = AgentSettings::from(&*config.agent);
        wanted.caller.as_ref().clone_into(&mut settings.caller);
        settings.approves_all = wanted.approved;
        settings.system = wanted.system.or(settings.system);
        settings.max_steps = wanted.max_steps.unwrap_or(u32::MAX).min(settings.max_steps);
        let agent = Agent::new(runtime.clone(), model, settings);
        let conversation = match &wanted.session {
            Some(id) => store.resume_where(id, owned)?,
            None => store.begin(agent.model().name(), &wanted.caller),
        };
        let run = self.enter(conversation.id(), &wanted.caller, agent.model().name())?;
        let (task, stop) = (Arc::clone(&run), self.stop.clone());
        self.tasks.spawn(async move { go(task, agent, conversation, said.content, stop).await });
        Ok(run)
    }

    /// A run that is known.
    pub fn get(&self, id: &str) -> Option<Arc<Run>> {
        self.lock().get(id).cloned()
    }

    /// The runs that are known, the oldest first.
    pub fn list(&self) -> Vec<Arc<Run>> {
        self.lock().values().cloned().collect()
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
    fn enter(&self, session: &str, caller: &Arc<str>, model: &str) -> Result<Arc<Run>, NoRun> {
        let mut known = self.lock();
        // Closed since: reading what the input mentions takes time.
        if self.tasks.is_closed() {
            return Err(NoRun::Stopping);
        }
        let is_running = |run: &&Arc<Run>| run.is_running();
        if known.values().filter(is_running).any(|run| run.session() == session) {
            return Err(NoRun::InUse(session.to_owned()));
        }
        if known.values().filter(is_running).count() >= RUNNING_MAX {
            return Err(NoRun::Busy);
        }
        forget(&mut known);
        let run = Arc::new(Run::new(session, caller, model));
        known.insert(run.id().to_owned(), Arc::clone(&run));
        Ok(run)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Run>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes room for one more run among those that are over.
fn forget(known: &mut BTreeMap<String, Arc<Run>>) {
    let over: Vec<_> = known.values().filter(|run| !run.is_running()).cloned().collect();
    let mut bytes: usize = over.iter().map(|run| run.bytes()).sum();
    for (at, run) in over.iter().enumerate() {
        if over.len() - at < ENDED_MAX && bytes <= ENDED_BYTES_MAX {
            return;
        }
        bytes -= run.bytes();
        known.remove(run.id());
    }
}

/// The course of a run. Questions that wait for people are told with the rest.
async fn go(
    run: Arc<Run>,
    agent: Agent,
    mut conversation: Conversation,
    said: Vec<haft::Content>,
    stop: CancellationToken,
) {
    let turn = course(&run, &agent, &mut conversation, said, &stop).await;
    // Whoever hears that it is over may go on with the conversation.
    drop(conversation);
    run.finish(turn);
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
