//! Tasks of 2026-07-28: calls that continue after their request was answered. The client polls them, answers their
//! questions, and may cancel them. A task belongs to the key that started it; to every other key it does not exist.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU16;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::ask::{Question, Signal};
use super::dispatch::{Answer, empty, read};
use super::input::{Work, shown_questions};
use super::principal::revocation;
use crate::budget::{HeldBytes, KeptBytes};
use crate::error::{INTERNAL_ERROR, INVALID_PARAMS, MISSING_CAPABILITY, RpcError};
use crate::extension::TASKS_EXTENSION;

/// Lifetime of a task after its end.
const RESULT_TTL: Duration = Duration::from_hours(1);
/// Poll interval for clients.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Largest number of tasks, and of one key. Beyond that, calls are answered without a task.
const TASKS_MAX: usize = 1_000;
const TASKS_OF_ONE_MAX: usize = TASKS_MAX / 2;
/// Size limit of kept results for all clients, and for one key. A result beyond that is dropped.
const RESULT_BYTES_MAX: usize = 64 * 1024 * 1024;
const RESULT_BYTES_OF_ONE_MAX: usize = RESULT_BYTES_MAX / 2;
/// Largest number of questions of one task.
const QUESTIONS_MAX: usize = 64;
/// The randomness of an id. It cannot be guessed. Where there are replicas, the number of the owner follows.
const ID_BYTES: usize = 24;

/// The tasks of all clients.
pub(super) struct Tasks {
    entries: Mutex<HashMap<String, Task>>,
    tracker: TaskTracker,
    kept_bytes: KeptBytes,
    /// Named by the ids of tasks.
    replica: Option<NonZeroU16>,
}

struct Task {
    principal: Arc<str>,
    created_at: Timestamp,
    updated_at: Timestamp,
    created: Instant,
    state: State,
    /// Every key that was ever used: the client may distinguish questions by it.
    keys: HashSet<String>,
    cancel: CancellationToken,
    /// Runs the call and removes the task in the end. Dropping it ends the call.
    _driver: AbortOnDropHandle<()>,
}

enum State {
    Running { open: Vec<Question> },
    Ended { at: Instant, outcome: Outcome },
}

enum Outcome {
    Completed { result: Box<RawValue>, _memory: Option<HeldBytes> },
    Failed(RpcError),
    Cancelled,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskParams {
    task_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateParams {
    task_id: String,
    input_responses: HashMap<String, Box<RawValue>>,
}

impl Tasks {
    pub(super) fn new(kept_bytes: KeptBytes, replica: Option<NonZeroU16>) -> Arc<Self> {
        let tracker = TaskTracker::new();
        Arc::new(Self { entries: Mutex::default(), tracker, kept_bytes, replica })
    }

    /// Continues the work as a task, and returns its handle. Returns the work if there is no room for another task.
    pub(super) fn begin(self: &Arc<Self>, work: Work) -> Result<Answer, Work> {
        let mut id = [0; ID_BYTES];
        // An id that could be guessed is worse than no task.
        if getrandom::fill(&mut id).is_err() {
            return Err(work);
        }
        let owner = self.replica.map(|replica| replica.get().to_be_bytes());
        let id = BASE64_URL_SAFE_NO_PAD
            .encode([&id[..], owner.as_ref().map_or(&[], |it| &it[..])].concat());
        let mut entries = self.lock();
        let of_one = entries.values().filter(|it| it.principal == work.principal).count();
        if entries.len() >= TASKS_MAX || of_one >= TASKS_OF_ONE_MAX {
            return Err(work);
        }
        // The request is answered: nothing may be sent in its name any more.
        work.notifications.close();
        let (now, cancel) = (Timestamp::now(), CancellationToken::new());
        let principal = Arc::clone(&work.principal);
        let driver = drive(Arc::downgrade(self), id.clone(), work, cancel.clone());
        let task = Task {
            principal,
            created_at: now,
            updated_at: now,
            created: Instant::now(),
            state: State::Running { open: Vec::new() },
            keys: HashSet::new(),
            cancel,
            // Started under the lock: work that ends at once must find the entry.
            _driver: AbortOnDropHandle::new(self.tracker.spawn(driver)),
        };
        let created = task.shown(&id, ResultType::Task);
        entries.insert(id, task);
        Ok(created)
    }

    /// Answers `tasks/get`, `tasks/update` and `tasks/cancel`; nothing for another method.
    pub(super) fn answer(
        &self,
        method: &str,
        params: Option<&RawValue>,
        principal: &str,
        is_declared: bool,
    ) -> Option<Answer> {
        if !matches!(method, "tasks/get" | "tasks/update" | "tasks/cancel") {
            return None;
        }
        if !is_declared {
            return Some(Err(missing_extension()));
        }
        Some(match method {
            "tasks/get" => self.get(params, principal),
            "tasks/update" => self.update(params, principal),
            _ => self.cancel(params, principal),
        })
    }

    fn get(&self, params: Option<&RawValue>, principal: &str) -> Answer {
        let TaskParams { task_id } = read(params)?;
        let mut entries = self.lock();
        let task = find(&mut entries, &task_id, principal)?;
        if let State::Running { open } = &mut task.state {
            open.retain(|question| !question.is_settled());
        }
        task.shown(&task_id, ResultType::Complete)
    }

    fn update(&self, params: Option<&RawValue>, principal: &str) -> Answer {
        let UpdateParams { task_id, mut input_responses } = read(params)?;
        let mut entries = self.lock();
        let task = find(&mut entries, &task_id, principal)?;
        if let State::Running { open } = &mut task.state {
            for question in std::mem::take(open) {
                match input_responses.remove(&question.name) {
                    // The asker may have given up.
                    Some(answer) => drop(question.answer.send(Ok(answer))),
                    None => open.push(question),
                }
            }
            task.updated_at = Timestamp::now();
        }
        Ok(empty())
    }

    fn cancel(&self, params: Option<&RawValue>, principal: &str) -> Answer {
        let TaskParams { task_id } = read(params)?;
        let mut entries = self.lock();
        let task = find(&mut entries, &task_id, principal)?;
        task.end(Outcome::Cancelled);
        task.cancel.cancel();
        Ok(empty())
    }

    /// Shows a question of the work to the client.
    fn ask(&self, id: &str, mut question: Question) {
        let mut entries = self.lock();
        let Some(task) = entries.get_mut(id) else { return };
        let State::Running { open } = &mut task.state else { return };
        if task.keys.len() >= QUESTIONS_MAX {
            let text = format!("a task may ask at most {QUESTIONS_MAX} questions");
            drop(question.answer.send(Err(RpcError::new(INTERNAL_ERROR, text))));
            return;
        }
        // A key names one question for as long as the task lives.
        let asked_name = question.name.clone();
        let mut number = 2;
        while !task.keys.insert(question.name.clone()) {
            question.name = format!("{asked_name}-{number}");
            number += 1;
        }
        open.push(question);
        task.updated_at = Timestamp::now();
    }

    /// Keeps the answer of the work for the client.
    fn finish(&self, id: &str, answer: Answer) {
        let mut entries = self.lock();
        let Some(principal) = entries.get(id).map(|task| Arc::clone(&task.principal)) else {
            return;
        };
        let outcome = match answer {
            Ok(result) if has_room(&entries, &principal, result.get().len()) => {
                let memory = self.kept_bytes.count(&principal, result.get().len());
                Outcome::Completed { result, _memory: memory }
            }
            Ok(result) => {
                let text = format!(
                    "the tool has run, but its result of {} bytes was dropped: too many results wait \
                     for their clients",
                    result.get().len()
                );
                Outcome::Failed(RpcError::new(INTERNAL_ERROR, text))
            }
            Err(error) => Outcome::Failed(error),
        };
        if let Some(task) = entries.get_mut(id) {
            task.end(outcome);
        }
    }

    fn remove(&self, id: &str) {
        let removed = self.lock().remove(id);
        drop(removed);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Task>> {
        self.entries.lock()
    }
}

/// Runs the call of a task, and removes the task when its result has expired or its key is revoked.
async fn drive(tasks: Weak<Tasks>, id: String, work: Work, cancel: CancellationToken) {
    let revoked = work.revoked.clone();
    let running = async {
        if let Some(answer) = cancel.run_until_cancelled(run(&tasks, &id, work)).await
            && let Some(tasks) = tasks.upgrade()
        {
            tasks.finish(&id, answer);
        }
        tokio::time::sleep(RESULT_TTL).await;
    };
    tokio::select! {
        () = running => {}
        () = revocation(revoked.as_deref()) => {}
    }
    if let Some(tasks) = tasks.upgrade() {
        tasks.remove(&id);
    }
}

async fn run(tasks: &Weak<Tasks>, id: &str, mut work: Work) -> Answer {
    loop {
        tokio::select! {
            biased;
            answer = work.answer.answer() => return answer,
            signal = work.signals.recv() => match (signal, tasks.upgrade()) {
                (Signal::Question(question), Some(tasks)) => tasks.ask(id, question),
                (Signal::Question(_) | Signal::TaskStarted, _) => {}
            },
        }
    }
}

/// The replica that the id of a task names.
pub(super) fn named_replica(id: &str) -> Option<NonZeroU16> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(id).ok()?;
    let number = bytes.get(ID_BYTES..)?.try_into().ok()?;
    NonZeroU16::new(u16::from_be_bytes(number))
}

/// The task of this id, if it is this key's own. The refusal is the same for an id that never was.
fn find<'a>(
    entries: &'a mut HashMap<String, Task>,
    id: &str,
    principal: &str,
) -> Result<&'a mut Task, RpcError> {
    let task = entries.get_mut(id).filter(|task| *task.principal == *principal);
    task.ok_or_else(|| {
        RpcError::new(INVALID_PARAMS, "Invalid params: there is no such task, or it has expired")
    })
}

fn has_room(entries: &HashMap<String, Task>, principal: &str, bytes: usize) -> bool {
    let (mut all, mut own) = (bytes, bytes);
    for task in entries.values() {
        let kept = task.result_bytes();
        all = all.saturating_add(kept);
        if *task.principal == *principal {
            own = own.saturating_add(kept);
        }
    }
    all <= RESULT_BYTES_MAX && own <= RESULT_BYTES_OF_ONE_MAX
}

/// The `resultType` of an answer that shows a task.
#[derive(Clone, Copy)]
enum ResultType {
    /// The answer to the call: the handle alone.
    Task,
    /// The answer to `tasks/get`, with everything there is.
    Complete,
}

impl Task {
    /// Ends the task, if it has not ended. The open questions are withdrawn.
    fn end(&mut self, outcome: Outcome) {
        if let State::Running { .. } = self.state {
            self.state = State::Ended { at: Instant::now(), outcome };
            self.updated_at = Timestamp::now();
        }
    }

    fn result_bytes(&self) -> usize {
        match &self.state {
            State::Ended { outcome: Outcome::Completed { result, .. }, .. } => result.get().len(),
            State::Ended { .. } | State::Running { .. } => 0,
        }
    }

    fn status(&self) -> &'static str {
        match &self.state {
            State::Running { open } if open.is_empty() => "working",
            State::Running { .. } => "input_required",
            State::Ended { outcome: Outcome::Completed { .. }, .. } => "completed",
            State::Ended { outcome: Outcome::Failed(_), .. } => "failed",
            State::Ended { outcome: Outcome::Cancelled, .. } => "cancelled",
        }
    }

    fn shown(&self, id: &str, result_type: ResultType) -> Answer {
        let lasted = match self.state {
            State::Running { .. } => self.created.elapsed(),
            State::Ended { at, .. } => at.duration_since(self.created),
        };
        let mut shown = json!({
            "resultType": match result_type {
                ResultType::Task => "task",
                ResultType::Complete => "complete",
            },
            "taskId": id,
            "status": self.status(),
            "createdAt": self.created_at.to_string(),
            "lastUpdatedAt": self.updated_at.to_string(),
            // Counted from the beginning. It grows while the call runs, which the tool's timeout ends.
            "ttlMs": millis(lasted.saturating_add(RESULT_TTL)),
            "pollIntervalMs": millis(POLL_INTERVAL),
        });
        if let ResultType::Task = result_type {
            return raw(&shown);
        }
        match &self.state {
            State::Running { open } if open.is_empty() => {}
            State::Running { open } => shown["inputRequests"] = json!(shown_questions(open)),
            State::Ended { outcome: Outcome::Failed(error), .. } => {
                shown["statusMessage"] = json!(error.message);
                shown["error"] = json!(error);
            }
            State::Ended { outcome: Outcome::Cancelled, .. } => {}
            // A result passes as it is; as a value it would lose long numbers.
            State::Ended { outcome: Outcome::Completed { result, .. }, .. } => {
                return with_result(&raw(&shown)?, result);
            }
        }
        raw(&shown)
    }
}

fn with_result(shown: &RawValue, result: &RawValue) -> Answer {
    let fields = shown.get().strip_suffix('}').unwrap_or_default();
    let text = format!(r#"{fields},"result":{}}}"#, result.get());
    RawValue::from_string(text).map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))
}

fn raw(value: &serde_json::Value) -> Answer {
    to_raw_value(value).map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The refusal of a client that does not declare the extension in its request.
pub(super) fn missing_extension() -> RpcError {
    let required = json!({ "requiredCapabilities": { "extensions": { TASKS_EXTENSION: {} } } });
    RpcError {
        data: to_raw_value(&required).ok(),
        ..RpcError::new(
            MISSING_CAPABILITY,
            format!("Missing required client capability: the extension `{TASKS_EXTENSION}`"),
        )
    }
}
