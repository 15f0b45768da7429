//! Questions to a client while one of its requests is in flight.

use std::collections::HashMap;
use std::num::NonZeroU16;

use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::outbox;
use super::peer::NotificationSender;
use crate::error::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use crate::wire;

/// Ids of one replica. They stay below 2^53, as numbers in JavaScript have to.
const REPLICA_SHIFT: u32 = 32;

type Answer = Result<Box<RawValue>, RpcError>;

/// Signals of one request that may wait. Further ones wait for room.
const SIGNALS_MAX: usize = 64;

/// The questions a client of the legacy era has been sender, by our ids.
#[derive(Default)]
pub(super) struct Asks(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    last_id: u64,
    pending: HashMap<u64, oneshot::Sender<Answer>>,
}

impl Asks {
    /// Ids of requests name the replica, as `number << 32 | n`: its client's answer may arrive at another one.
    pub(super) fn of_replica(number: NonZeroU16) -> Self {
        let last_id = u64::from(number.get()) << REPLICA_SHIFT;
        Self(Mutex::new(Waiting { last_id, ..Waiting::default() }))
    }

    /// Sends a request of ours, and waits. Dropping the future sends a cancellation.
    pub(super) async fn ask(
        &self,
        notifications: &NotificationSender,
        method: &str,
        params: Option<&RawValue>,
    ) -> Answer {
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut waiting = self.waiting();
            waiting.last_id += 1;
            let id = waiting.last_id;
            waiting.pending.insert(id, answer);
            id
        };
        let _pending = PendingQuestion { asks: self, notifications, id };
        let message = wire::request(id, method, params.map_or("{}", RawValue::get));
        let gone = || RpcError::new(INTERNAL_ERROR, "the client cannot be reached any more");
        notifications.out().send(message).await.map_err(|_| gone())?;
        answered.await.unwrap_or_else(|_| Err(gone()))
    }

    /// The client answered one of them. Returns false if the id is unknown.
    pub(super) fn answer(&self, id: &RawValue, answer: Answer) -> bool {
        let id = id.get().parse::<u64>().ok();
        let sender = id.and_then(|id| self.waiting().pending.remove(&id));
        // The receiver may have given up in the meantime.
        sender.is_some_and(|sender| sender.send(answer).is_ok())
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock()
    }
}

/// The replica that sent the request of this id.
pub(super) fn named_replica(id: &RawValue) -> Option<NonZeroU16> {
    let id = id.get().parse::<u64>().ok()?;
    NonZeroU16::new(u16::try_from(id >> REPLICA_SHIFT).ok()?)
}

/// A question in flight.
struct PendingQuestion<'a> {
    asks: &'a Asks,
    notifications: &'a NotificationSender,
    id: u64,
}

impl Drop for PendingQuestion<'_> {
    fn drop(&mut self) {
        if self.asks.waiting().pending.remove(&self.id).is_some() {
            let params =
                format!(r#"{{"requestId":{},"reason":"the request was abandoned"}}"#, self.id);
            let message = wire::notification("notifications/cancelled", &params);
            drop(self.notifications.out().try_send(message));
        }
    }
}

/// The questions of one request of the modern era, on their way into a result that asks back.
pub(super) struct Questions {
    new: outbox::Sender<Signal>,
    /// Answers that the client sent before the question, as it may if it knows the questions.
    given: Mutex<Given>,
}

#[derive(Default)]
struct Given {
    answers: HashMap<String, Box<RawValue>>,
    unnamed: u64,
}

/// A signal of the running request before its answer.
pub(super) enum Signal {
    /// It asks the client something.
    Question(Question),
    /// A server behind it works on it as a task.
    TaskStarted,
}

/// A question of one request.
pub(super) struct Question {
    pub(super) name: String,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
    pub(super) answer: oneshot::Sender<Answer>,
    /// Cancelled when the asker has its answer from elsewhere.
    pub(super) withdrawn: Option<CancellationToken>,
}

impl Question {
    /// Returns true if the asker no longer needs the client's answer. The asker drops its receiver only when its task
    /// runs next, so the token is checked as well.
    pub(super) fn is_settled(&self) -> bool {
        let is_withdrawn = self.withdrawn.as_ref().is_some_and(CancellationToken::is_cancelled);
        is_withdrawn || self.answer.is_closed()
    }
}

impl Questions {
    pub(super) fn new(given: HashMap<String, Box<RawValue>>) -> (Self, outbox::Receiver<Signal>) {
        let (new, sender) = outbox::channel(SIGNALS_MAX);
        (Self { new, given: Mutex::new(Given { answers: given, unnamed: 0 }) }, sender)
    }

    /// Reports that a server works on the request as a task.
    pub(super) fn task_started(&self) {
        // Without a receiver, the request is over.
        drop(self.new.try_send(Signal::TaskStarted));
    }

    pub(super) async fn ask(
        &self,
        name: Option<&str>,
        method: &str,
        params: Option<&RawValue>,
        withdrawn: Option<&CancellationToken>,
    ) -> Answer {
        let name = {
            let mut given = self.given.lock();
            let name = name.map_or_else(
                || {
                    given.unnamed += 1;
                    format!("input-{}", given.unnamed)
                },
                ToOwned::to_owned,
            );
            if let Some(answer) = given.answers.remove(&name) {
                return Ok(answer);
            }
            name
        };
        let (answer, answered) = oneshot::channel();
        let question = Question {
            name,
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
            answer,
            withdrawn: withdrawn.cloned(),
        };
        let gone = || RpcError::new(INVALID_PARAMS, "the client did not come back with an answer");
        self.new.send(Signal::Question(question)).await.map_err(|_| gone())?;
        match answered.await {
            Ok(answer) => answer,
            // The asker holds its answer and drops this future. An error here would race with that answer.
            Err(_) if withdrawn.is_some_and(CancellationToken::is_cancelled) => {
                std::future::pending().await
            }
            Err(_) => Err(gone()),
        }
    }
}
