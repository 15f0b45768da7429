//! Questions to people: asked by tools, calls and servers, answered by an attending client.
//!
//! This module does not know its answerers. A terminal or the HTTP API attends, lists open
//! questions, and answers.

mod approval;
mod error;
mod item;
mod standing;
mod webhook;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use jiff::{SignedDuration, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::{broadcast, oneshot};
use tokio_util::sync::CancellationToken;

use crate::config::agent::InboxConfig;
use crate::error::Violation;
use crate::replica_number::ReplicaNumber;
pub use error::{AnswerError, HumanInputError};
use haft_config::redact::Redactor;
use haft_config::schema::Schema;
pub use item::{CloseReason, HumanAnswer, HumanQuestion, InboxEvent, InboxItem, ItemKind};
use standing::StandingApprovals;
// For the crates of this workspace that share approvals between replicas.
#[doc(hidden)]
pub use standing::{ApprovalStore, STANDING_MAX, StandingApproval};
use webhook::Webhook;

/// Maximum number of open questions.
pub const OPEN_MAX: usize = 1000;
/// Maximum number of open questions per caller, so that one caller cannot fill the inbox.
pub const OPEN_OF_ONE_CALLER_MAX: usize = 100;
/// Maximum combined size of open questions; the arguments of a call are part of its question.
pub const OPEN_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Maximum number of queued events for a slow subscriber.
const EVENTS_MAX: usize = 64;
/// Default timeout of a question, before the configuration is known.
const TIMEOUT_DEFAULT: Duration = Duration::from_hours(1);

/// Questions to people. Clones share it.
#[derive(Clone)]
pub struct HumanInbox(Arc<Shared>);

struct Shared {
    /// By id, which sorts by time. Events are sent under the lock, so that all subscribers see the
    /// same order.
    open: Mutex<BTreeMap<String, OpenItem>>,
    events: broadcast::Sender<InboxEvent>,
    attending: AtomicUsize,
    /// True if only clients that are asked in parallel can answer.
    is_unseen: bool,
    /// Named by the ids of questions.
    replica: ReplicaNumber,
    settings: ArcSwapOption<Settings>,
    standing: StandingApprovals,
}

struct Settings {
    config: InboxConfig,
    /// Masked in what the webhook receives.
    secrets: Vec<String>,
    webhook: Option<Webhook>,
}

struct OpenItem {
    item: InboxItem,
    schema: Option<Arc<Schema>>,
    bytes: usize,
    agreed: Option<StandingApproval>,
    answer: oneshot::Sender<HumanAnswer>,
    /// Cancelled as soon as the answer is sent, for clients that are asked in parallel.
    closed: CancellationToken,
}

/// A question that was answered.
#[derive(Debug, Clone)]
pub struct AnsweredItem {
    /// The question.
    pub item: InboxItem,
    /// The reason why the answer `always` counts for this call alone: it could not be shared with other replicas.
    pub warning: Option<String>,
}

impl OpenItem {
    /// Sends the answer. The asker may have stopped waiting in the meantime.
    fn resolve(self, answer: HumanAnswer) {
        drop(self.answer.send(answer));
        // After the send: a client that returns after this must find the answer.
        self.closed.cancel();
    }
}

impl Default for HumanInbox {
    fn default() -> Self {
        Self::of_replica(ReplicaNumber::ALONE)
    }
}

impl HumanInbox {
    fn new(is_unseen: bool, replica: ReplicaNumber) -> Self {
        Self(Arc::new(Shared {
            open: Mutex::default(),
            events: broadcast::Sender::new(EVENTS_MAX),
            attending: AtomicUsize::new(0),
            is_unseen,
            replica,
            settings: ArcSwapOption::empty(),
            standing: StandingApprovals::default(),
        }))
    }

    /// Creates an inbox without answerers, unless one [attends](Self::attend). Its webhook is not
    /// notified, because a call would then wait for a person who cannot answer.
    pub fn unseen() -> Self {
        Self::new(true, ReplicaNumber::ALONE)
    }

    /// Creates the inbox of one of several replicas of a service: the ids of questions carry its number.
    pub fn of_replica(replica: ReplicaNumber) -> Self {
        Self::new(false, replica)
    }

    /// Asks a question and waits for the answer. Dropping the future withdraws the question.
    pub async fn ask(&self, ask: HumanQuestion) -> Result<Value, HumanInputError> {
        if !self.is_attended() {
            return Err(HumanInputError::Unattended);
        }
        let (_, waiting) = self.put(ask).await?;
        self.wait(waiting).await
    }

    /// Asks a question that no caller waits for, so it may stay open until a person attends.
    pub(crate) async fn post(&self, ask: HumanQuestion) -> Result<Value, HumanInputError> {
        let (_, waiting) = self.put(ask).await?;
        self.wait(waiting).await
    }

    /// Asks a question here and through `other` in parallel; `other` submits its answer to this
    /// inbox. If `other` fails, the question waits for attending clients; without any, it fails
    /// with the reason.
    pub(crate) async fn ask_beside(
        &self,
        ask: HumanQuestion,
        other: impl AsyncFnOnce(&InboxItem, &CancellationToken) -> Result<(), HumanInputError>,
    ) -> Result<Value, HumanInputError> {
        let (item, waiting) = self.put(ask).await?;
        let closed = waiting.closed.clone();
        let mut waiting = std::pin::pin!(self.wait(waiting));
        tokio::select! {
            biased;
            answer = &mut waiting => return answer,
            ended = other(&item, &closed) => match ended {
                Err(reason) if !self.is_attended() => return Err(reason),
                Err(reason) => tracing::info!(id = item.id, %reason, "a question stays in the inbox"),
                Ok(()) => {}
            }
        }
        waiting.await
    }

    /// Waits for the answer to a submitted question.
    async fn wait(&self, mut waiting: Waiting) -> Result<Value, HumanInputError> {
        let after = waiting.after;
        let answer = match tokio::time::timeout(after, &mut waiting.answer).await {
            Ok(answer) => answer.ok(),
            Err(_) if self.close(&waiting.id, CloseReason::Expired).is_some() => None,
            // The answer arrived just before the timeout.
            Err(_) => waiting.answer.try_recv().ok(),
        };
        match answer {
            Some(HumanAnswer::Given(answer)) => Ok(answer),
            Some(HumanAnswer::Refused { reason }) => Err(HumanInputError::Refused { reason }),
            None => Err(HumanInputError::Expired { after }),
        }
    }

    /// The open questions, oldest first.
    pub fn open(&self) -> Vec<InboxItem> {
        self.lock().values().map(|open| open.item.clone()).collect()
    }

    /// One open question.
    pub fn item(&self, id: &str) -> Option<InboxItem> {
        self.lock().get(id).map(|open| open.item.clone())
    }

    /// Answers a question on behalf of `by`, which the log names. The first valid answer wins; an
    /// invalid one changes nothing.
    pub async fn answer(
        &self,
        id: &str,
        answer: HumanAnswer,
        by: &str,
    ) -> Result<AnsweredItem, AnswerError> {
        if let HumanAnswer::Given(value) = &answer {
            self.check(id, value).await?;
        }
        let how = match &answer {
            HumanAnswer::Given(_) => CloseReason::Answered,
            HumanAnswer::Refused { .. } => CloseReason::Refused,
        };
        let closed = self.close(id, how).ok_or(AnswerError::Unknown)?;
        let item = closed.item.clone();
        tracing::info!(id, by, how = ?how, "a question to a person was answered");
        let standing = closed.agreed.clone().filter(|_| approval::is_standing(&answer));
        let standing = standing.filter(|agreed| self.grant_standing(agreed));
        // The call does not wait for the store.
        closed.resolve(answer);
        let warning = match standing {
            Some(agreed) => self.0.standing.settle(&agreed).await.err(),
            None => None,
        };
        if let Some(warning) = &warning {
            tracing::warn!(id, "`always` counts for this call alone: {warning}");
        }
        Ok(AnsweredItem { item, warning })
    }

    /// Subscribes to events from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<InboxEvent> {
        self.0.events.subscribe()
    }

    /// Returns the open questions and a subscription that continues from exactly this state.
    pub fn follow(&self) -> (Vec<InboxItem>, broadcast::Receiver<InboxEvent>) {
        let open = self.lock();
        let events = self.subscribe();
        (open.values().map(|open| open.item.clone()).collect(), events)
    }

    /// Declares that a client can see and answer questions, while the guard lives.
    pub fn attend(&self) -> Attendance {
        self.0.attending.fetch_add(1, Ordering::AcqRel);
        Attendance(self.clone())
    }

    /// Returns true if a person can be asked: a client attends, or a webhook is notified.
    pub fn is_attended(&self) -> bool {
        let is_told = || {
            let settings = self.0.settings.load();
            settings.as_ref().is_some_and(|settings| settings.webhook.is_some())
        };
        self.0.attending.load(Ordering::Acquire) > 0 || is_told()
    }

    /// Applies a configuration. Open questions keep their timeouts.
    pub(crate) fn configure(&self, config: &InboxConfig, secrets: Vec<String>) {
        let old = self.0.settings.load();
        if old.as_ref().is_some_and(|old| old.config == *config && old.secrets == secrets) {
            return;
        }
        let redactor = Redactor::new(secrets.iter().cloned());
        let webhook = if self.0.is_unseen { None } else { Webhook::of(config, redactor) };
        let settings = Settings { config: config.clone(), secrets, webhook };
        self.0.settings.store(Some(Arc::new(settings)));
    }

    /// Adds a question and notifies subscribers.
    async fn put(&self, ask: HumanQuestion) -> Result<(InboxItem, Waiting), HumanInputError> {
        let schema = match &ask.schema {
            Some(schema) => {
                let compiled = Schema::compile_bounded(schema).await;
                Some(compiled.map_err(|problem| HumanInputError::Schema { problem })?)
            }
            None => None,
        };
        let settings = self.0.settings.load_full();
        let timeout_max =
            settings.as_ref().map_or(TIMEOUT_DEFAULT, |settings| settings.config.timeout.value);
        let after = ask.within.map_or(timeout_max, |within| within.min(timeout_max));
        let agreed = ask.agreed.clone();
        let item = item(self.0.replica, ask, after);
        let bytes = size(&item);
        let (tell, answer) = oneshot::channel();
        let closed = CancellationToken::new();
        let waiting = Waiting {
            inbox: self.clone(),
            id: item.id.clone(),
            after,
            answer,
            closed: closed.clone(),
        };
        let mut open = self.lock();
        let used: usize = open.values().map(|open| open.bytes).sum();
        let is_own = |open: &&OpenItem| item.caller.is_some() && open.item.caller == item.caller;
        let reason = if open.len() >= OPEN_MAX {
            Some(format!("there are {OPEN_MAX} questions"))
        } else if open.values().filter(is_own).count() >= OPEN_OF_ONE_CALLER_MAX {
            Some(format!("{OPEN_OF_ONE_CALLER_MAX} of them are of this caller"))
        } else if used + bytes > OPEN_BYTES_MAX {
            Some(format!("they would have more than {OPEN_BYTES_MAX} bytes"))
        } else {
            None
        };
        if let Some(reason) = reason {
            return Err(HumanInputError::Full { reason });
        }
        open.insert(
            item.id.clone(),
            OpenItem { item: item.clone(), schema, bytes, agreed, answer: tell, closed },
        );
        // Fails only without subscribers.
        drop(self.0.events.send(InboxEvent::Asked(item.clone())));
        drop(open);
        let InboxItem { id, kind, tool, server, execution_id, .. } = &item;
        tracing::info!(id, kind = ?kind, tool, server, execution_id, "asked a person");
        if let Some(webhook) = settings.as_ref().and_then(|settings| settings.webhook.as_ref()) {
            webhook.notify(self, &item);
        }
        Ok((item, waiting))
    }

    /// Validates an answer. Uses a copy of the schema, because a check may take long.
    async fn check(&self, id: &str, value: &Value) -> Result<(), AnswerError> {
        let (options, schema) = {
            let open = self.lock();
            let open = open.get(id).ok_or(AnswerError::Unknown)?;
            (open.item.options.clone(), open.schema.clone())
        };
        let is_option =
            |value: &Value| value.as_str().is_some_and(|it| options.iter().any(|o| o == it));
        if !options.is_empty() && !is_option(value) {
            let problem = format!("expected one of {}", Value::from(options));
            let violations = vec![Violation { pointer: String::new(), problem }];
            return Err(AnswerError::Invalid { violations });
        }
        let Some(schema) = schema else {
            // A missing answer is valid only if the schema allows null.
            return if value.is_null() { Err(AnswerError::missing()) } else { Ok(()) };
        };
        let checked = schema.check_bounded(value, value.to_string().len()).await;
        checked.map_err(|violations| AnswerError::Invalid { violations })
    }

    /// Removes a question and notifies subscribers. Returns `None` if it is already closed.
    fn close(&self, id: &str, how: CloseReason) -> Option<OpenItem> {
        let mut open = self.lock();
        let closed = open.remove(id)?;
        drop(self.0.events.send(InboxEvent::Closed { id: id.to_owned(), how }));
        drop(open);
        match how {
            // Logged by the caller, which knows the answerer.
            CloseReason::Answered | CloseReason::Refused => {}
            CloseReason::Expired => tracing::info!(id, "a question to a person expired"),
            CloseReason::Withdrawn => tracing::info!(id, "a question to a person was withdrawn"),
        }
        Some(closed)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, OpenItem>> {
        self.0.open.lock()
    }
}

impl fmt::Debug for HumanInbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HumanInbox").field("open", &self.lock().len()).finish_non_exhaustive()
    }
}

/// A client that can answer. Dropping it ends the attendance.
#[derive(Debug)]
#[must_use = "the attendance ends when this is dropped"]
pub struct Attendance(HumanInbox);

impl Drop for Attendance {
    fn drop(&mut self) {
        self.0.0.attending.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A waiting asker. Dropping it withdraws the question.
struct Waiting {
    inbox: HumanInbox,
    id: String,
    after: Duration,
    answer: oneshot::Receiver<HumanAnswer>,
    closed: CancellationToken,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.inbox.close(&self.id, CloseReason::Withdrawn);
    }
}

fn item(replica: ReplicaNumber, ask: HumanQuestion, after: Duration) -> InboxItem {
    let HumanQuestion {
        kind,
        question,
        options,
        schema,
        tool,
        arguments,
        server,
        rule,
        execution_id,
        caller,
        session,
        within: _,
        agreed: _,
    } = ask;
    let asked = Timestamp::now();
    let wait = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
    let expires = asked.saturating_add(wait).unwrap_or(Timestamp::MAX);
    InboxItem {
        id: replica.new_id().to_string(),
        kind,
        question,
        options,
        schema,
        tool,
        arguments,
        server,
        rule,
        execution_id,
        caller,
        session,
        asked,
        expires,
    }
}

/// Approximate memory use of an item.
fn size(item: &InboxItem) -> usize {
    let options: usize = item.options.iter().map(String::len).sum();
    let schema = item.schema.as_ref().map_or(0, |schema| schema.to_string().len());
    let arguments = item.arguments.as_ref().map_or(0, |arguments| arguments.get().len());
    item.question.len() + options + schema + arguments
}
