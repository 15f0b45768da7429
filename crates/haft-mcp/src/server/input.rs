//! Requests of the modern era that ask their client something: the answer is a result that asks back,
//! and the work goes on where it stopped when the client sends the request again.

use haft_bounds::parse_error::describe;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::ask::{Question, Signal};
use super::peer::Line;
use super::principal::revocation;
use super::seal::{Bound, Broken, ParkedId, Seal};
use super::tasks::Tasks;
use crate::error::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use crate::handler::BoxFuture;

/// How long a request waits for its client to come back.
const WAIT_MAX: Duration = Duration::from_mins(10);
/// How many requests may wait for their clients at once, and how many of one client.
const PARKED_MAX: usize = 1_000;
const PARKED_OF_ONE_MAX: usize = PARKED_MAX / 2;
/// How long a call may run before it becomes a task, for clients that take tasks and did not ask for progress, which
/// tasks do not report.
const TASK_AFTER: Duration = Duration::from_secs(10);

type Answer = Result<Box<RawValue>, RpcError>;

/// What a request brings along from an earlier round.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Input {
    #[serde(default)]
    pub(super) input_responses: Option<HashMap<String, Box<RawValue>>>,
    #[serde(default)]
    pub(super) request_state: Option<String>,
}

impl Input {
    pub(super) fn read(params: Option<&RawValue>) -> Result<Self, RpcError> {
        let params = params.map_or("{}", RawValue::get);
        let has = |word: &str| memchr::memmem::find(params.as_bytes(), word.as_bytes()).is_some();
        // Nearly every request is a first round: then there is nothing to read.
        if !has("inputResponses") && !has("requestState") && !has("\\u") {
            return Ok(Self::default());
        }
        serde_json::from_str(params).map_err(|error| {
            RpcError::new(INVALID_PARAMS, format!("Invalid params: {}", describe(&error)))
        })
    }
}

/// The requests that wait for their clients.
pub(super) struct Parking {
    seal: Option<Seal>,
    parked: Mutex<HashMap<ParkedId, Parked>>,
    tasks: TaskTracker,
}

/// One of them. Dropping it ends its work.
struct Parked {
    work: Work,
    principal: String,
    /// Removes it when its client does not come back or may not come back any more.
    _timer: AbortOnDropHandle<()>,
    /// Questions the client has not answered.
    open: Vec<Question>,
}

/// A request under way that may ask.
pub(super) struct Work {
    pub(super) answer: Running,
    pub(super) signals: mpsc::UnboundedReceiver<Signal>,
    pub(super) line: Arc<Line>,
    pub(super) principal: Arc<str>,
    /// Cancelled when the client's permission ends. The work ends with it.
    pub(super) revoked: Option<Arc<CancellationToken>>,
    /// Where it goes on as a task, if the client takes tasks.
    pub(super) tasks: Option<Arc<Tasks>>,
    /// Whether it should be a task already.
    pub(super) is_task: bool,
}

/// The work itself: driven by whoever waits for it, until it has to go on without.
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

impl Parking {
    pub(super) fn new() -> Self {
        // Without random numbers nothing can be signed; then nothing is parked either.
        Self { seal: Seal::new().ok(), parked: Mutex::default(), tasks: TaskTracker::new() }
    }

    /// Waits for the answer, or for the questions that have to be answered first.
    pub(super) async fn run(
        self: &Arc<Self>,
        mut work: Work,
        bound: impl FnOnce() -> Bound,
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
            let becomes_task = work.tasks.is_some() && !work.line.wants_progress();
            let signal = tokio::select! {
                // What the work asks in one go is there when it rests.
                biased;
                answer = work.answer.answer() => return answer,
                Some(signal) = work.signals.recv() => signal,
                () = tokio::time::sleep_until(task_at), if becomes_task => Signal::TaskStarted,
            };
            match signal {
                Signal::Question(question) => break question,
                Signal::TaskStarted => work.is_task = true,
            }
        };
        let mut open = vec![first];
        while let Ok(signal) = work.signals.try_recv() {
            match signal {
                Signal::Question(question) => open.push(question),
                Signal::TaskStarted => work.is_task = true,
            }
        }
        self.park(work, &bound(), open)
    }

    /// Goes on with a request that comes again.
    pub(super) async fn resume(
        self: &Arc<Self>,
        state: &str,
        bound: Bound,
        mut responses: HashMap<String, Box<RawValue>>,
        line: &Line,
        tasks: Option<Arc<Tasks>>,
    ) -> Answer {
        let seal = self.seal()?;
        let id = seal.open(state, &bound).map_err(refused)?;
        let parked = self.lock().remove(&id);
        let Some(Parked { mut work, open, .. }) = parked else {
            return Err(refused(Broken::Expired));
        };
        // Each request says for itself whether it takes tasks.
        work.tasks = tasks;
        work.line.follow(line);
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
            self.run(work, || bound).await
        } else {
            self.park(work, &bound, unanswered)
        }
    }

    /// Lets the work go on by itself, and tells the client what it has to answer.
    fn park(self: &Arc<Self>, work: Work, bound: &Bound, open: Vec<Question>) -> Answer {
        let seal = self.seal()?;
        let mut id = ParkedId::default();
        getrandom::fill(&mut id).map_err(|error| {
            RpcError::new(INTERNAL_ERROR, format!("no random numbers: {error}"))
        })?;
        let result = asking(&open, &seal.close(id, bound, WAIT_MAX))?;
        let mut work = work;
        work.answer = match work.answer {
            // Its time runs and its server may fail while nobody waits here.
            Running::Here(running) => {
                Running::Apart(AbortOnDropHandle::new(self.tasks.spawn(running)))
            }
            apart @ Running::Apart(_) => apart,
        };
        let parking = Arc::downgrade(self);
        let until = work.revoked.clone();
        let expiry = async move {
            tokio::select! {
                () = tokio::time::sleep(WAIT_MAX) => {}
                () = revocation(until.as_deref()) => {}
            }
            if let Some(parking) = parking.upgrade() {
                let expired = parking.lock().remove(&id);
                drop(expired);
            }
        };
        {
            let mut parked = self.lock();
            let is_own = |it: &&Parked| it.principal == bound.principal;
            if parked.len() >= PARKED_MAX
                || parked.values().filter(is_own).count() >= PARKED_OF_ONE_MAX
            {
                let text = "too many requests wait for answers of their clients already";
                return Err(RpcError::new(INTERNAL_ERROR, text));
            }
            let principal = bound.principal.clone();
            // Started under the lock: a permission that ended already must find the entry.
            let timer = AbortOnDropHandle::new(self.tasks.spawn(expiry));
            parked.insert(id, Parked { work, principal, _timer: timer, open });
        }
        Ok(result)
    }

    fn seal(&self) -> Result<&Seal, RpcError> {
        let missing = || RpcError::new(INTERNAL_ERROR, "there are no random numbers to sign with");
        self.seal.as_ref().ok_or_else(missing)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ParkedId, Parked>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
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

fn refused(broken: Broken) -> RpcError {
    let text = match broken {
        Broken::Foreign => {
            "Invalid params: `requestState` is not one of this server, or belongs to another request"
        }
        Broken::Expired => {
            "Invalid params: `requestState` was used already or has expired; send the request anew \
             without it"
        }
    };
    RpcError::new(INVALID_PARAMS, text)
}

/// What stays the same in a request's parameters from round to round, as text.
pub(super) fn lasting(params: Option<&RawValue>) -> String {
    let params = params.map_or("{}", RawValue::get);
    let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(params) else {
        return params.to_owned();
    };
    for changing in ["_meta", "inputResponses", "requestState"] {
        fields.remove(changing);
    }
    let mut value = Value::Object(fields);
    // Whether a client keeps the order of its keys is its own affair.
    value.sort_all_objects();
    value.to_string()
}
