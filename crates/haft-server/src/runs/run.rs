//! One run: what happened in it so far, for whoever listens now or later.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft::agent::{AgentEvent, Turn, TurnEnd};
use haft::inbox::{Closing, Item};
use haft::model::{ModelError, Usage};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Wanted;

/// How many events are kept for whoever comes late, and how much they may be together. Beyond, pieces of
/// texts are not kept: the whole texts are.
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
    course: Mutex<Course>,
    /// How many events there are.
    count: watch::Sender<usize>,
}

#[derive(Default)]
struct Course {
    events: Vec<Arc<Told>>,
    bytes: usize,
    questions: Vec<Item>,
    /// The event that ends the turn, told together with the outcome: who hears it and looks, or goes on with the
    /// conversation, must not find the run still going on.
    last: Option<Told>,
    outcome: Option<(Timestamp, Result<Turn, ModelError>)>,
}

/// An event as it is told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) name: String,
    pub(crate) data: String,
}

/// How a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It goes on.
    Running,
    /// The model answered, or stopped for a reason that `end` names.
    Completed,
    /// The model could not be asked.
    Failed,
    /// Somebody broke it off.
    Cancelled,
}

/// A run as it is shown.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct RunSummary {
    /// Its id.
    pub id: String,
    /// How it is doing.
    pub status: RunStatus,
    /// The conversation it belongs to; give it to the next run to go on.
    pub session: String,
    /// Who wanted it.
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
    /// How often the model was asked.
    pub steps: Option<u32>,
    /// What it cost, in tokens.
    #[schema(value_type = Option<Object>)]
    pub usage: Option<Usage>,
    /// Why it failed, with `message` and `remedy`.
    #[schema(value_type = Option<Object>)]
    pub error: Option<serde_json::Value>,
    /// What waits for a person; answer at `POST /api/v1/inbox/{id}`.
    #[schema(value_type = Vec<Object>)]
    pub questions: Vec<Item>,
}

impl Run {
    pub(super) fn new(session: &str, wanted: &Wanted, model: &str) -> Self {
        Self {
            id: uuid::Uuid::now_v7().to_string(),
            session: session.to_owned(),
            caller: Arc::clone(&wanted.caller),
            owner: Arc::clone(&wanted.owner),
            model: model.to_owned(),
            started: Timestamp::now(),
            cancel: wanted.until.child_token(),
            course: Mutex::default(),
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

    /// Who wanted it.
    pub(super) fn caller(&self) -> &str {
        &self.caller
    }

    /// Whose it is: who wanted it, and which of the keys that ever had this name.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Whether it goes on.
    pub fn is_running(&self) -> bool {
        self.lock().outcome.is_none()
    }

    /// How much its events take, in bytes.
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
        let course = self.lock();
        let (ended, turn) = match &course.outcome {
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
            questions: course.questions.clone(),
        }
    }

    /// The event after so many. Nothing where the run is over and everything was told.
    pub(crate) async fn event(&self, after: usize) -> Option<Arc<Told>> {
        let mut count = self.count.subscribe();
        loop {
            {
                let course = self.lock();
                if let Some(event) = course.events.get(after) {
                    return Some(Arc::clone(event));
                }
                if course.outcome.is_some() {
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
        let told = Told { name, data: data.to_string() };
        if is_last {
            self.lock().last = Some(told);
        } else {
            self.add(told, is_piece);
        }
    }

    pub(super) fn asked(&self, item: &Item) {
        let mut course = self.lock();
        if course.questions.iter().any(|known| known.id == item.id) {
            return;
        }
        course.questions.push(item.clone());
        drop(course);
        let data = json!({"type": "question.asked", "item": item}).to_string();
        self.add(Told { name: "question.asked".to_owned(), data }, false);
    }

    /// The questions that are known to wait.
    pub(super) fn questions(&self) -> Vec<String> {
        self.lock().questions.iter().map(|item| item.id.clone()).collect()
    }

    pub(super) fn closed(&self, id: &str, how: Option<Closing>) {
        let mut course = self.lock();
        let before = course.questions.len();
        course.questions.retain(|item| item.id != id);
        let is_ours = course.questions.len() < before;
        drop(course);
        if is_ours {
            let data = json!({"type": "question.closed", "id": id, "how": how}).to_string();
            self.add(Told { name: "question.closed".to_owned(), data }, false);
        }
    }

    pub(super) fn finish(&self, turn: Result<Turn, ModelError>) {
        let mut course = self.lock();
        course.questions.clear();
        if let Some(last) = course.last.take() {
            course.push(last);
        }
        course.outcome = Some((Timestamp::now(), turn));
        let events = course.events.len();
        drop(course);
        self.count.send_replace(events);
    }

    fn add(&self, told: Told, is_piece: bool) {
        let mut course = self.lock();
        let is_full = course.events.len() >= EVENTS_MAX || course.bytes >= EVENTS_BYTES_MAX;
        if is_piece && is_full {
            return;
        }
        course.push(told);
        let events = course.events.len();
        drop(course);
        self.count.send_replace(events);
    }

    fn lock(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Course {
    fn push(&mut self, told: Told) {
        self.bytes += told.data.len();
        self.events.push(Arc::new(told));
    }
}
