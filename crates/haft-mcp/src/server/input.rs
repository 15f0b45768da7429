//! Requests of the modern era that ask their client something: the answer is an input-required result, and the work
//! resumes when the client sends the request again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::ToolRequest;
use super::ask::{Question, Signal};
use super::outbox;
use super::peer::NotificationSender;
use super::principal::revocation;
use super::replica::Replica;
use super::state_signer::{StateBinding, StateError, StateSigner, SuspendedId};
use super::tasks::Tasks;
use crate::error::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use crate::handler::BoxFuture;

/// Time that a request waits for its client to return.
const WAIT_MAX: Duration = Duration::from_mins(10);
/// Largest number of suspended requests, and of one client.
const SUSPENDED_MAX: usize = 1_000;
const SUSPENDED_PER_PRINCIPAL_MAX: usize = SUSPENDED_MAX / 2;
/// Run time after which a call becomes a task, for clients that take tasks and did not request progress, which tasks
/// do not report.
const TASK_AFTER: Duration = Duration::from_secs(10);

type Answer = Result<Box<RawValue>, RpcError>;

/// Input from an earlier round of a request.
#[derive(Default)]
pub(super) struct Input {
    pub(super) input_responses: Option<HashMap<String, Box<RawValue>>>,
    pub(super) request_state: Option<String>,
}

/// The requests that wait for their clients.
pub(super) struct SuspendedRequests {
    signer: Option<StateSigner>,
    suspended: Mutex<HashMap<SuspendedId, SuspendedRequest>>,
    tasks: TaskTracker,
}

/// One of them. Dropping it ends its work.
struct SuspendedRequest {
    work: Work,
    principal: String,
    /// Removes it when its client does not come back or may not come back any more.
    _timer: AbortOnDropHandle<()>,
    /// Questions the client has not answered.
    open: Vec<Question>,
}

/// A request in flight that may ask.
pub(super) struct Work {
    pub(super) answer: Running,
    pub(super) signals: outbox::Receiver<Signal>,
    pub(super) notifications: Arc<NotificationSender>,
    pub(super) principal: Arc<str>,
    /// Cancelled when the client's permission ends. The work ends with it.
    pub(super) revoked: Option<Arc<CancellationToken>>,
    /// The task store, if the client takes tasks.
    pub(super) tasks: Option<Arc<Tasks>>,
    /// True if it should be a task already.
    pub(super) is_task: bool,
}

/// The work itself: driven by its waiter, until it has to continue without one.
pub(super) enum Running {
    Here(BoxFuture<'static, Answer>),
    Apart(AbortOnDropHandle<Answer>),
}

impl Running {
    pub(super) async fn answer(&mut self) -> Answer {
        match self {
            Self::Here(work) => work.await,
            Self::Apart(work) => work.await.unwrap_or_else(|_| {
                Err(RpcError::new(INTERNAL_ERROR, "the request ended without an answer"))
            }),
        }
    }
}

impl SuspendedRequests {
    pub(super) fn new(replica: Option<&Replica>) -> Self {
        // Without random numbers nothing can be signed; then nothing is suspended either.
        Self {
            signer: StateSigner::new(replica).ok(),
            suspended: Mutex::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// Waits for the answer, or for the questions that have to be answered first.
    pub(super) async fn run(
        self: &Arc<Self>,
        mut work: Work,
        binding: impl FnOnce() -> StateBinding,
    ) -> Answer {
        let task_at = Instant::now() + TASK_AFTER;
        let first = loop {
            if work.is_task
                && let Some(tasks) = work.tasks.take()
            {
                match tasks.begin(work) {
                    Ok(created) => return created,
                    // Without room for a task the client waits for its answer.
                    Err(back) => work = back,
                }
            }
            let becomes_task = work.tasks.is_some() && !work.notifications.wants_progress();
            let signal = tokio::select! {
                // What the work asks in one go is there when it rests.
                biased;
                answer = work.answer.answer() => return answer,
                signal = work.signals.recv() => signal,
                () = tokio::time::sleep_until(task_at), if becomes_task => Signal::TaskStarted,
            };
            match signal {
                Signal::Question(question) => break question,
                Signal::TaskStarted => work.is_task = true,
            }
        };
        let mut open = vec![first];
        while let Some(signal) = work.signals.try_recv() {
            match signal {
                Signal::Question(question) => open.push(question),
                Signal::TaskStarted => work.is_task = true,
            }
        }
        self.suspend(work, &binding(), open)
    }

    /// Resumes a request that is sent again.
    pub(super) async fn resume(
        self: &Arc<Self>,
        state: &str,
        binding: StateBinding,
        mut responses: HashMap<String, Box<RawValue>>,
        notifications: &NotificationSender,
        tasks: Option<Arc<Tasks>>,
    ) -> Answer {
        let signer = self.signer()?;
        let id = signer.verify(state, &binding).map_err(refused)?;
        let suspended = self.lock().remove(&id);
        let Some(SuspendedRequest { mut work, open, .. }) = suspended else {
            return Err(refused(StateError::Expired));
        };
        // Each request declares for itself if it takes tasks.
        work.tasks = tasks;
        work.notifications.follow(notifications);
        let mut unanswered = Vec::new();
        for question in open {
            match responses.remove(&question.name) {
                // The asker may have given up.
                Some(answer) => drop(question.answer.send(Ok(answer))),
                None if question.is_settled() => {}
                None => unanswered.push(question),
            }
        }
        if unanswered.is_empty() {
            self.run(work, || binding).await
        } else {
            self.suspend(work, &binding, unanswered)
        }
    }

    /// Lets the work continue in the background, and sends the client its questions.
    fn suspend(
        self: &Arc<Self>,
        work: Work,
        binding: &StateBinding,
        open: Vec<Question>,
    ) -> Answer {
        let signer = self.signer()?;
        let mut id = SuspendedId::default();
        getrandom::fill(&mut id).map_err(|error| {
            RpcError::new(INTERNAL_ERROR, format!("no random numbers: {error}"))
        })?;
        let result = asking(&open, &signer.sign(id, binding, WAIT_MAX))?;
        let mut work = work;
        work.answer = match work.answer {
            // Its time runs and its server may fail while it has no waiter.
            Running::Here(running) => {
                Running::Apart(AbortOnDropHandle::new(self.tasks.spawn(running)))
            }
            apart @ Running::Apart(_) => apart,
        };
        let suspended_requests = Arc::downgrade(self);
        let until = work.revoked.clone();
        let expiry = async move {
            tokio::select! {
                () = tokio::time::sleep(WAIT_MAX) => {}
                () = revocation(until.as_deref()) => {}
            }
            if let Some(suspended_requests) = suspended_requests.upgrade() {
                let expired = suspended_requests.lock().remove(&id);
                drop(expired);
            }
        };
        {
            let mut suspended = self.lock();
            let is_own = |it: &&SuspendedRequest| it.principal == binding.principal;
            if suspended.len() >= SUSPENDED_MAX
                || suspended.values().filter(is_own).count() >= SUSPENDED_PER_PRINCIPAL_MAX
            {
                let text = "too many requests wait for answers of their clients already";
                return Err(RpcError::new(INTERNAL_ERROR, text));
            }
            let principal = binding.principal.clone();
            // Started under the lock: a permission that ended already must find the entry.
            let timer = AbortOnDropHandle::new(self.tasks.spawn(expiry));
            suspended.insert(id, SuspendedRequest { work, principal, _timer: timer, open });
        }
        Ok(result)
    }

    fn signer(&self) -> Result<&StateSigner, RpcError> {
        let missing = || RpcError::new(INTERNAL_ERROR, "there are no random numbers to sign with");
        self.signer.as_ref().ok_or_else(missing)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SuspendedId, SuspendedRequest>> {
        self.suspended.lock()
    }
}

/// A question as the client sees it.
#[derive(Serialize)]
pub(super) struct InputRequest<'a> {
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

/// Returns questions by their names, as results show them.
pub(super) fn shown_questions(questions: &[Question]) -> BTreeMap<&str, InputRequest<'_>> {
    let shown = questions.iter().map(|it| {
        let request = InputRequest { method: &it.method, params: it.params.as_deref() };
        (it.name.as_str(), request)
    });
    shown.collect()
}

/// The result that asks.
fn asking(questions: &[Question], state: &str) -> Answer {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct InputRequired<'a> {
        result_type: &'static str,
        input_requests: BTreeMap<&'a str, InputRequest<'a>>,
        request_state: &'a str,
    }
    let result = InputRequired {
        result_type: "input_required",
        input_requests: shown_questions(questions),
        request_state: state,
    };
    to_raw_value(&result).map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()))
}

fn refused(error: StateError) -> RpcError {
    let text = match error {
        StateError::Foreign => {
            "Invalid params: `requestState` is not one of this server, or belongs to another request"
        }
        StateError::Expired => {
            "Invalid params: `requestState` was used already or has expired; send the request again without it"
        }
    };
    RpcError::new(INVALID_PARAMS, text)
}

/// The part of a request's parameters that is the same in every round, as text.
pub(super) fn lasting(call: Option<&ToolRequest>, params: Option<&RawValue>) -> String {
    let mut value = if let Some(ToolRequest { name, arguments }) = call {
        // A call has no other parameters that stay and have an effect.
        let text = arguments.as_deref().map_or("{}", RawValue::get);
        // Text that is not a value, such as 1e400, is compared as it is.
        let arguments: Value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
        json!({ "name": name, "arguments": arguments })
    } else {
        let params = params.map_or("{}", RawValue::get);
        let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(params) else {
            return params.to_owned();
        };
        for changing in ["_meta", "inputResponses", "requestState"] {
            fields.remove(changing);
        }
        Value::Object(fields)
    };
    // Whether a client keeps the order of its keys is its own affair.
    value.sort_all_objects();
    value.to_string()
}
