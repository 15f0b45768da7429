//! Tasks: calls whose server answers with a handle and finishes later. The client polls until the task ends, and answers
//! what the server asks meanwhile. Both the extension of 2026-07-28 and the core feature of 2025-11-25.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::input::{InputRequest, ROUNDS_MAX, answers};
use super::result::{self, ResultKind};
use super::{Client, Params};
use crate::error::{RequestError, RpcError, Sent, TransportError};
use crate::extension::TASKS_EXTENSION;
use crate::handler::{BoxFuture, Handler, ServerRequest};
use crate::session::{RequestOptions, Session};
use crate::tool::ToolDescription;
use crate::transport::Era;

/// The pause between two polls: what the server suggests, within these bounds.
const POLL_MIN: Duration = Duration::from_millis(100);
const POLL_MAX: Duration = Duration::from_secs(30);
const POLL_DEFAULT: Duration = Duration::from_secs(1);
/// Largest number of polls in a row that may fail for a transient reason.
const POLL_FAILURES_MAX: u32 = 3;
/// Lifetime that is requested for a task of a server of the legacy era.
const LEGACY_TTL_MS: u64 = 60 * 60 * 1000;
/// Where a result of the legacy era names its task.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// The longest id of a task.
const TASK_ID_BYTES_MAX: usize = 1024;
/// The time limit for cancelling an abandoned task.
const CANCEL_WAIT_MAX: Duration = Duration::from_secs(5);
/// JSON-RPC: the request was cancelled.
const CANCELLED: i64 = -32800;

/// The state of a task, as far as it is used here. The two eras name the interval differently.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskState<'a> {
    #[serde(borrow)]
    task_id: Cow<'a, str>,
    status: Status,
    #[serde(default, alias = "pollInterval")]
    poll_interval_ms: Option<f64>,
    #[serde(borrow, default)]
    status_message: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    input_requests: Option<BTreeMap<String, InputRequest<'a>>>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<RpcError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl<'a> TaskState<'a> {
    fn read(json: &'a RawValue) -> Result<Self, RequestError> {
        let state: Self = serde_json::from_str(json.get()).map_err(|error| {
            RequestError::protocol(format!("the state of a task cannot be read: {error}"))
        })?;
        if state.task_id.len() > TASK_ID_BYTES_MAX {
            return Err(RequestError::protocol(format!(
                "the id of a task has more than {TASK_ID_BYTES_MAX} bytes"
            )));
        }
        Ok(state)
    }

    fn pause(&self) -> Duration {
        let suggested = self.poll_interval_ms.filter(|ms| ms.is_finite() && *ms >= 0.0);
        let suggested = suggested.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok());
        suggested.unwrap_or(POLL_DEFAULT).clamp(POLL_MIN, POLL_MAX)
    }

    /// Returns when a new task is polled: one that needs something, or has ended already, at once.
    fn first_poll(&self) -> Instant {
        let pause = match self.status {
            Status::Working => self.pause(),
            Status::InputRequired | Status::Completed | Status::Failed | Status::Cancelled => {
                Duration::ZERO
            }
        };
        Instant::now() + pause
    }

    /// Returns what a task that has ended amounts to.
    fn outcome(self) -> Result<Box<RawValue>, RequestError> {
        let missing =
            |field: &str| RequestError::protocol(format!("a task that has ended lacks `{field}`"));
        match self.status {
            Status::Completed => Ok(self.result.ok_or_else(|| missing("result"))?.to_owned()),
            Status::Failed => Err(self.error.ok_or_else(|| missing("error"))?.into()),
            Status::Cancelled => {
                let why = self.status_message.as_deref().unwrap_or("no reason given");
                let text = format!("the server cancelled the task: {why}");
                Err(RpcError::new(CANCELLED, text).into())
            }
            Status::Working | Status::InputRequired => {
                Err(RequestError::protocol("the task has not ended"))
            }
        }
    }
}

/// Returns true if a server of the legacy era runs a tool as a task only.
pub(super) fn requires_task(tool: &ToolDescription) -> bool {
    let support = tool.rest.get("execution").and_then(|it| it.get("taskSupport"));
    support.and_then(Value::as_str) == Some("required")
}

impl Client {
    /// Returns true if the server may answer a call with a task: both sides declare the extension.
    pub(super) fn negotiated_tasks(&self, handler: &dyn Handler) -> bool {
        handler.takes_tasks() && self.identity.has_extension(TASKS_EXTENSION)
    }

    /// Returns true if a call of this tool has to ask for a task.
    pub(super) fn must_ask_for_task(&self, tool: &str) -> bool {
        let declared = self.identity.capabilities.pointer("/tasks/requests/tools/call");
        self.identity.era == Era::Legacy
            && declared.is_some_and(|it| !it.is_null())
            && self.task_tools().contains(tool)
    }

    /// Follows a task of the modern era to its end.
    pub(super) async fn follow_task(
        &self,
        created: &RawValue,
        options: RequestOptions,
        handler: &Arc<dyn Handler>,
    ) -> Result<Box<RawValue>, RequestError> {
        let created = TaskState::read(created)?;
        let mut task = RunningTask::new(self, &created, options);
        handler.task_started();
        let mut next_poll = created.first_poll();
        let mut asked = HashSet::new();
        let mut asking: Option<BoxFuture<'static, Result<String, RequestError>>> = None;
        // The caller has the time limit and drops the future.
        loop {
            tokio::select! {
                biased;
                answers = answered(&mut asking), if asking.is_some() => {
                    asking = None;
                    task.update(&answers?).await?;
                    continue;
                }
                () = tokio::time::sleep_until(next_poll) => {}
            }
            let polled = task.poll().await;
            let polled = task.ended_if_refused(polled)?;
            let state = TaskState::read(&polled)?;
            match state.status {
                Status::InputRequired if asking.is_none() => {
                    let questions = new_questions(&state, &mut asked)?;
                    if !questions.is_empty() {
                        asking = Some(Box::pin(answers(questions, Arc::clone(handler))));
                    }
                }
                Status::Working | Status::InputRequired => {}
                Status::Completed | Status::Failed | Status::Cancelled => {
                    task.is_running = false;
                    return state.outcome();
                }
            }
            next_poll = Instant::now() + state.pause();
        }
    }

    /// Calls a tool that a server of the legacy era runs as a task, and waits for its result.
    pub(super) async fn call_as_task(
        &self,
        params: Params,
        options: RequestOptions,
    ) -> Result<Box<RawValue>, RequestError> {
        #[derive(Deserialize)]
        struct Created<'a> {
            #[serde(borrow, default)]
            task: Option<&'a RawValue>,
        }
        let handler = options.handler.clone();
        let handler = handler.as_ref().unwrap_or_else(|| self.session.router().handler());
        let params = params.raw("task", &format!(r#"{{"ttl":{LEGACY_TTL_MS}}}"#));
        let answer = self.send("tools/call", &params, options.clone()).await?;
        let created: Created<'_> = serde_json::from_str(answer.get()).map_err(|error| {
            RequestError::protocol(format!("the answer to `tools/call` is malformed: {error}"))
        })?;
        // A server may have the result at once.
        let Some(created) = created.task else { return Ok(answer) };
        let created = TaskState::read(created)?;
        let mut task = RunningTask::new(self, &created, options);
        handler.task_started();
        let mut next_poll = created.first_poll();
        let mut status = created.status;
        while status == Status::Working {
            tokio::time::sleep_until(next_poll).await;
            let polled = task.poll().await;
            let polled = task.ended_if_refused(polled)?;
            let state = TaskState::read(&polled)?;
            next_poll = Instant::now() + state.pause();
            status = state.status;
            if status == Status::Cancelled {
                task.is_running = false;
                return state.outcome();
            }
        }
        // In this era the server asks while it is asked for the result.
        let result = task.result().await;
        let result = task.ended_if_refused(result)?;
        task.is_running = false;
        Ok(without_related_task(result))
    }
}

/// Removes the server's own id of the task from a result (legacy era). It is of no use to the caller. All else
/// stays as it was sent.
fn without_related_task(result: Box<RawValue>) -> Box<RawValue> {
    #[derive(Deserialize)]
    struct Parts<'a> {
        #[serde(borrow, default, rename = "_meta")]
        meta: Option<&'a RawValue>,
    }
    let text = result.get();
    if memchr::memmem::find(text.as_bytes(), RELATED_TASK.as_bytes()).is_none() {
        return result;
    }
    let meta = serde_json::from_str::<Parts<'_>>(text).ok().and_then(|parts| parts.meta);
    let Some(meta) = meta.map(RawValue::get) else { return result };
    let kept = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(meta).ok();
    let kept = kept.and_then(|mut fields| {
        fields.remove(RELATED_TASK)?;
        serde_json::to_string(&fields).ok()
    });
    let Some(kept) = kept else { return result };
    // The field is a part of the text.
    let at = meta.as_ptr().addr() - text.as_ptr().addr();
    let text = [&text[..at], &kept, &text[at + meta.len()..]].concat();
    RawValue::from_string(text).unwrap_or(result)
}

async fn answered(
    asking: &mut Option<BoxFuture<'static, Result<String, RequestError>>>,
) -> Result<String, RequestError> {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}

/// Returns the questions that were not asked before. A server repeats them until it has their answers.
fn new_questions(
    state: &TaskState<'_>,
    asked: &mut HashSet<String>,
) -> Result<Vec<ServerRequest>, RequestError> {
    let requests = state.input_requests.iter().flatten();
    let new = requests.filter(|(key, _)| asked.insert((*key).clone()));
    let questions: Vec<_> = new.map(|(key, request)| request.named(key)).collect();
    if asked.len() > ROUNDS_MAX {
        return Err(RequestError::protocol(format!(
            "the server asked more than {ROUNDS_MAX} questions in one task"
        )));
    }
    Ok(questions)
}

/// A task at the server. Dropped before its end, it is cancelled there.
struct RunningTask<'a> {
    client: &'a Client,
    id: String,
    options: RequestOptions,
    is_running: bool,
}

impl<'a> RunningTask<'a> {
    fn new(client: &'a Client, created: &TaskState<'_>, options: RequestOptions) -> Self {
        let id = created.task_id.clone().into_owned();
        Self { client, id, options, is_running: true }
    }

    /// A task about which the server answers with an error has ended, or is unknown there.
    fn ended_if_refused<T>(&mut self, answer: Result<T, RequestError>) -> Result<T, RequestError> {
        if let Err(RequestError::Rpc(_)) = answer {
            self.is_running = false;
        }
        answer
    }

    /// Asks for the state. Transient failures are retried: the task does not depend on the connection.
    async fn poll(&self) -> Result<Box<RawValue>, RequestError> {
        let mut failures = 0;
        loop {
            match self.request("tasks/get", self.params()).await {
                Err(RequestError::Transport(error))
                    if failures < POLL_FAILURES_MAX
                        && error.is_transient()
                        && !self.client.has_ended() =>
                {
                    failures += 1;
                    tokio::time::sleep(POLL_DEFAULT).await;
                }
                answer => return answer,
            }
        }
    }

    async fn update(&self, answers: &str) -> Result<(), RequestError> {
        let params = self.params().raw("inputResponses", answers);
        self.request("tasks/update", params).await.map(drop)
    }

    /// Waits for the result (legacy era), however long it takes: the caller has the limit.
    async fn result(&self) -> Result<Box<RawValue>, RequestError> {
        let options =
            RequestOptions { progress: None, param_headers: Vec::new(), ..self.options.clone() };
        let answer = self.client.send("tasks/result", &self.params(), options).await;
        answer.map_err(after_call)
    }

    /// One request about the task, with the limits of an ordinary one.
    async fn request(&self, method: &str, params: Params) -> Result<Box<RawValue>, RequestError> {
        let options = RequestOptions {
            progress: None,
            handler: self.options.handler.clone(),
            trace: self.options.trace.clone(),
            answer_bytes: self.options.answer_bytes.clone(),
            ..self.client.limited(Some(&self.id))
        };
        let answer = self.client.send(method, &params, options).await.map_err(after_call)?;
        match self.client.identity.era {
            Era::Modern if result::kind(&answer)? != ResultKind::Complete => {
                Err(RequestError::protocol(format!(
                    "the answer to `{method}` is not a complete result"
                )))
            }
            Era::Modern | Era::Legacy => Ok(answer),
        }
    }

    fn params(&self) -> Params {
        Params::new().text("taskId", &self.id)
    }
}

/// The server accepted the call itself, so no failure about its task means that nothing was done.
fn after_call(error: RequestError) -> RequestError {
    match error {
        RequestError::Transport(error) => TransportError { sent: Sent::Maybe, ..error }.into(),
        other => other,
    }
}

impl Drop for RunningTask<'_> {
    fn drop(&mut self) {
        let is_over = !self.is_running || self.client.has_ended();
        if is_over || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let session: Session = self.client.session.clone();
        let params = self.params().json(&self.client.meta, None);
        let options = RequestOptions {
            timeout: Some(CANCEL_WAIT_MAX),
            name: Some(self.id.clone()),
            ..RequestOptions::default()
        };
        let telling = session.router().tellings().token();
        self.client.session.router().spawn(async move {
            let _telling = telling;
            let id = session.next_id();
            if session.request(id, "tasks/cancel", &params, options).await.is_err() {
                session.router().report_anomaly("a task could not be cancelled at the server");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_own_task_id_is_removed() {
        let removed = |json: &str| {
            let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
            without_related_task(raw).get().to_owned()
        };
        let related = r#""io.modelcontextprotocol/related-task":{"taskId":"1"}"#;
        assert_eq!(
            removed(&format!(r#"{{"a": 1e400, "_meta" : {{"b":2, {related}}},"c":[]}}"#)),
            r#"{"a": 1e400, "_meta" : {"b":2},"c":[]}"#
        );
        for same in [r#"{"_meta":{}}"#, &format!(r#"{{"content":{{{related}}}}}"#)] {
            assert_eq!(removed(same), same);
        }
    }

    #[test]
    fn the_suggested_interval_is_bounded() {
        let pause = |fields: &str| {
            let json = format!(r#"{{"taskId":"a","status":"working"{fields}}}"#);
            let raw: Box<RawValue> = serde_json::from_str(&json).unwrap();
            TaskState::read(&raw).unwrap().pause()
        };
        assert_eq!(pause(""), POLL_DEFAULT);
        assert_eq!(pause(r#","pollIntervalMs":null"#), POLL_DEFAULT);
        assert_eq!(pause(r#","pollIntervalMs":250"#), Duration::from_millis(250));
        assert_eq!(pause(r#","pollInterval":2000"#), Duration::from_secs(2));
        assert_eq!(pause(r#","pollIntervalMs":0"#), POLL_MIN);
        assert_eq!(pause(r#","pollIntervalMs":-5"#), POLL_DEFAULT);
        assert_eq!(pause(r#","pollIntervalMs":1e300"#), POLL_DEFAULT);
        assert_eq!(pause(r#","pollIntervalMs":3600000"#), POLL_MAX);
    }
}
