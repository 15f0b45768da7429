//! One run and its events, for current and later followers.

use std::sync::Arc;

use haft::ReplicaNumber;
use haft::human_input::{CloseReason, InboxItem};
use haft_agent::model::{ModelError, Usage};
use haft_agent::{AgentEvent, Turn, TurnEnd};
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::RunParams;

/// Largest number of events kept for late followers, and their largest total size. Beyond that, deltas are dropped;
/// `*.completed` events are always kept.
const EVENTS_MAX: usize = 20_000;
const EVENTS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A run of the agent.
pub struct Run {
    id: String,
    session: String,
    caller: Arc<str>,
    owner: Arc<str>,
    model: String,
    started: Timestamp,
    pub(super) cancel: CancellationToken,
    state: Mutex<RunState>,
    /// Number of events.
    count: watch::Sender<usize>,
}

#[derive(Default)]
struct RunState {
    events: Vec<Arc<RunEvent>>,
    bytes: usize,
    questions: Vec<InboxItem>,
    /// The event that ends the turn, published together with the outcome: a client that receives it and queries the
    /// run, or resumes the conversation, must not find the run active.
    last: Option<RunEvent>,
    outcome: Option<(Timestamp, Result<Turn, ModelError>)>,
}

/// A serialized event.
#[derive(Debug)]
pub(crate) struct RunEvent {
    pub(crate) name: String,
    pub(crate) data: String,
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Active.
    Running,
    /// The model answered, or stopped for a reason that `end` names.
    Completed,
    /// The model could not be asked.
    Failed,
    /// Cancelled by a caller.
    Cancelled,
}

/// A run as it is shown.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct RunSummary {
    /// Its id.
    pub id: String,
    /// Its state.
    pub status: RunStatus,
    /// Its conversation; pass it to the next run to continue.
    pub session: String,
    /// The caller that started it.
    pub caller: String,
    /// The model that is asked.
    pub model: String,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    pub started: String,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended: Option<String>,
    /// The model's answer.
    pub text: Option<String>,
    /// Why it ended: `answered`, `length`, `refused`, `max_steps`, `repetition`, `cancelled`.
    #[schema(value_type = Option<String>)]
    pub end: Option<TurnEnd>,
    /// Number of model requests.
    pub steps: Option<u32>,
    /// Its cost in tokens.
    #[schema(value_type = Option<Object>)]
    pub usage: Option<Usage>,
    /// Why it failed, with `message` and `remedy`.
    #[schema(value_type = Option<Object>)]
    pub error: Option<serde_json::Value>,
    /// Open questions for people; answer at `POST /api/v1/inbox/{id}`.
    #[schema(value_type = Vec<Object>)]
    pub questions: Vec<InboxItem>,
}

impl Run {
    pub(super) fn new(
        replica: ReplicaNumber,
        session: &str,
        params: &RunParams,
        model: &str,
    ) -> Self {
        Self {
            id: replica.new_id().to_string(),
            session: session.to_owned(),
            caller: Arc::clone(&params.caller),
            owner: Arc::clone(&params.owner),
            model: model.to_owned(),
            started: Timestamp::now(),
            cancel: params.until.child_token(),
            state: Mutex::default(),
            count: watch::Sender::new(0),
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The conversation it belongs to.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The caller that started it.
    pub(super) fn caller(&self) -> &str {
        &self.caller
    }

    /// The owner: the caller plus the key's id, because names can be reused.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns true if it is active.
    pub fn is_running(&self) -> bool {
        self.lock().outcome.is_none()
    }

    /// Size of its events in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Breaks it off. False where it is over.
    pub fn cancel(&self) -> bool {
        let is_running = self.is_running();
        self.cancel.cancel();
        is_running
    }

    /// The run as it is shown.
    pub fn summary(&self) -> RunSummary {
        let state = self.lock();
        let (ended, turn) = match &state.outcome {
            Some((at, turn)) => (Some(at.to_string()), Some(turn)),
            None => (None, None),
        };
        let status = match turn {
            None => RunStatus::Running,
            Some(Ok(Turn { end: TurnEnd::Cancelled, .. })) => RunStatus::Cancelled,
            Some(Ok(_)) => RunStatus::Completed,
            Some(Err(_)) => RunStatus::Failed,
        };
        let answered = turn.and_then(|turn| turn.as_ref().ok());
        let failed = turn.and_then(|turn| turn.as_ref().err());
        RunSummary {
            id: self.id.clone(),
            status,
            session: self.session.clone(),
            caller: self.caller.to_string(),
            model: self.model.clone(),
            started: self.started.to_string(),
            ended,
            text: answered.map(|turn| turn.text.clone()),
            end: answered.map(|turn| turn.end),
            steps: answered.map(|turn| turn.steps),
            usage: answered.map(|turn| turn.usage),
            error: failed.map(|error| json!({"message": error.message, "remedy": error.remedy})),
            questions: state.questions.clone(),
        }
    }

    /// The event after the first `after`. None if the run is over and has no further event.
    pub(crate) async fn event(&self, after: usize) -> Option<Arc<RunEvent>> {
        let mut count = self.count.subscribe();
        loop {
            {
                let state = self.lock();
                if let Some(event) = state.events.get(after) {
                    return Some(Arc::clone(event));
                }
                if state.outcome.is_some() {
                    return None;
                }
            }
            count.changed().await.ok()?;
        }
    }

    pub(super) fn tell(&self, event: &AgentEvent) {
        let is_piece = matches!(
            event,
            AgentEvent::Text { .. }
                | AgentEvent::Reasoning { .. }
                | AgentEvent::ToolProgress { .. }
        );
        let is_last =
            matches!(event, AgentEvent::TurnCompleted { .. } | AgentEvent::TurnFailed { .. });
        let mut data = serde_json::to_value(event).unwrap_or_default();
        if matches!(event, AgentEvent::TurnStarted { .. }) {
            // Who begins a run as a stream sees no headers.
            data["run"] = json!(self.id);
        }
        let name = data["type"].as_str().unwrap_or("event").to_owned();
        let told = RunEvent { name, data: data.to_string() };
        if is_last {
            self.lock().last = Some(told);
        } else {
            self.add(told, is_piece);
        }
    }

    pub(super) fn asked(&self, item: &InboxItem) {
        let mut state = self.lock();
        if state.questions.iter().any(|known| known.id == item.id) {
            return;
        }
        state.questions.push(item.clone());
        drop(state);
        let data = json!({"type": "question.asked", "item": item}).to_string();
        self.add(RunEvent { name: "question.asked".to_owned(), data }, false);
    }

    /// The questions that are known to wait.
    pub(super) fn questions(&self) -> Vec<String> {
        self.lock().questions.iter().map(|item| item.id.clone()).collect()
    }

    pub(super) fn closed(&self, id: &str, how: Option<CloseReason>) {
        let mut state = self.lock();
        let before = state.questions.len();
        state.questions.retain(|item| item.id != id);
        let is_ours = state.questions.len() < before;
        drop(state);
        if is_ours {
            let data = json!({"type": "question.closed", "id": id, "how": how}).to_string();
            self.add(RunEvent { name: "question.closed".to_owned(), data }, false);
        }
    }

    pub(super) fn finish(&self, turn: Result<Turn, ModelError>) {
        let mut state = self.lock();
        state.questions.clear();
        if let Some(last) = state.last.take() {
            state.push(last);
        }
        state.outcome = Some((Timestamp::now(), turn));
        let events = state.events.len();
        drop(state);
        self.count.send_replace(events);
    }

    fn add(&self, told: RunEvent, is_piece: bool) {
        let mut state = self.lock();
        let is_full = state.events.len() >= EVENTS_MAX || state.bytes >= EVENTS_BYTES_MAX;
        if is_piece && is_full {
            return;
        }
        state.push(told);
        let events = state.events.len();
        drop(state);
        self.count.send_replace(events);
    }

    fn lock(&self) -> MutexGuard<'_, RunState> {
        self.state.lock()
    }
}

impl RunState {
    fn push(&mut self, told: RunEvent) {
        self.bytes += told.data.len();
        self.events.push(Arc::new(told));
    }
}
