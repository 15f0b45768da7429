//! Questions to people: asked by tools, calls and servers, answered by whoever attends.
//!
//! Knows nobody who answers. A terminal or a served API attends, lists what is open, and answers.

mod approval;
mod error;
mod item;
#[cfg_attr(not(feature = "mcp"), path = "webhook_without_mcp.rs")]
mod webhook;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::{broadcast, oneshot};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::agent::InboxConfig;
use crate::error::Violation;
use crate::redact::Redactor;
use crate::schema::Schema;
use approval::{Agreed, Standing};
pub use error::{AnswerError, NoAnswer};
pub use item::{Answer, Ask, Closing, InboxEvent, Item, Kind};
use webhook::Webhook;

/// How many questions may wait at once.
pub const OPEN_MAX: usize = 1000;
/// How many of them may be of one caller, so that nobody can take the inbox from the others.
pub const OPEN_OF_ONE_CALLER_MAX: usize = 100;
/// How much they may be together; the arguments of a call are part of its question.
pub const OPEN_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How much news may wait for a slow subscriber.
const NEWS_MAX: usize = 64;
/// How long a question waits where no configuration says so: before the toolbox has started.
const TIMEOUT_DEFAULT: Duration = Duration::from_hours(1);

/// Questions to people. Clones share it.
#[derive(Clone)]
pub struct Inbox(Arc<Shared>);

struct Shared {
    /// By id, which sorts by time. What happens to it is told while it is locked, so that the order is
    /// the same for everybody.
    open: Mutex<BTreeMap<String, Open>>,
    news: broadcast::Sender<InboxEvent>,
    attending: AtomicUsize,
    /// Whether only those who are asked beside it can answer.
    is_unseen: bool,
    settings: ArcSwapOption<Settings>,
    standing: Standing,
}

struct Settings {
    config: InboxConfig,
    /// Masked in what the webhook receives.
    secrets: Vec<String>,
    webhook: Option<Webhook>,
}

struct Open {
    item: Item,
    schema: Option<Arc<Schema>>,
    bytes: usize,
    agreed: Option<Agreed>,
    answer: oneshot::Sender<Answer>,
    /// Cancelled as soon as the answer is sent, for those who are asked beside the inbox.
    closed: CancellationToken,
}

impl Open {
    /// Sends the answer. The asker may have stopped waiting at the same time.
    fn resolve(self, answer: Answer) {
        drop(self.answer.send(answer));
        // Only now: a client that comes back after this must find the answer.
        self.closed.cancel();
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Self::new(false)
    }
}

impl Inbox {
    fn new(is_unseen: bool) -> Self {
        Self(Arc::new(Shared {
            open: Mutex::default(),
            news: broadcast::Sender::new(NEWS_MAX),
            attending: AtomicUsize::new(0),
            is_unseen,
            settings: ArcSwapOption::empty(),
            standing: Standing::default(),
        }))
    }

    /// An inbox that nobody sees who could answer, unless they [attend](Self::attend). Its webhook is told nothing,
    /// else a call would wait for somebody who can only look on.
    pub fn unseen() -> Self {
        Self::new(true)
    }

    /// Asks, and waits for the answer. Whoever stops waiting withdraws the question.
    pub async fn ask(&self, ask: Ask) -> Result<Value, NoAnswer> {
        if !self.is_attended() {
            return Err(NoAnswer::Unattended);
        }
        let (_, waiting) = self.put(ask).await?;
        self.wait(waiting).await
    }

    /// The same, while somebody else is asked too, who answers here like everybody. Where `other` gives up, the
    /// question waits for those who attend; without any, it ends with the reason.
    pub(crate) async fn ask_beside(
        &self,
        ask: Ask,
        other: impl AsyncFnOnce(&Item, &CancellationToken) -> Result<(), NoAnswer>,
    ) -> Result<Value, NoAnswer> {
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

    /// Waits for the answer to a question that was put in.
    async fn wait(&self, mut waiting: Waiting) -> Result<Value, NoAnswer> {
        let after = waiting.after;
        let answer = match tokio::time::timeout(after, &mut waiting.answer).await {
            Ok(answer) => answer.ok(),
            Err(_) if self.close(&waiting.id, Closing::Expired).is_some() => None,
            // Answered in the very last moment.
            Err(_) => waiting.answer.try_recv().ok(),
        };
        match answer {
            Some(Answer::Given(answer)) => Ok(answer),
            Some(Answer::Refused { reason }) => Err(NoAnswer::Refused { reason }),
            None => Err(NoAnswer::Expired { after }),
        }
    }

    /// The open questions, the oldest first.
    pub fn open(&self) -> Vec<Item> {
        self.lock().values().map(|open| open.item.clone()).collect()
    }

    /// One open question.
    pub fn item(&self, id: &str) -> Option<Item> {
        self.lock().get(id).map(|open| open.item.clone())
    }

    /// Answers a question on behalf of `by`, which the log names. The first answer counts; one that does
    /// not fit changes nothing.
    pub async fn answer(&self, id: &str, answer: Answer, by: &str) -> Result<Item, AnswerError> {
        if let Answer::Given(value) = &answer {
            self.check(id, value).await?;
        }
        let how = match &answer {
            Answer::Given(_) => Closing::Answered,
            Answer::Refused { .. } => Closing::Refused,
        };
        let closed = self.close(id, how).ok_or(AnswerError::Unknown)?;
        let item = closed.item.clone();
        tracing::info!(id, by, how = ?how, "a question to a person was answered");
        if let Some(agreed) = closed.agreed.as_ref().filter(|_| approval::is_for_good(&answer)) {
            self.agree_for_good(agreed);
        }
        closed.resolve(answer);
        Ok(item)
    }

    /// Hears what happens from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<InboxEvent> {
        self.0.news.subscribe()
    }

    /// The open questions, and what happens to them from this moment on.
    pub fn follow(&self) -> (Vec<Item>, broadcast::Receiver<InboxEvent>) {
        let open = self.lock();
        let news = self.subscribe();
        (open.values().map(|open| open.item.clone()).collect(), news)
    }

    /// Says that somebody sees the questions and can answer them, for as long as the guard lives.
    pub fn attend(&self) -> Attendance {
        self.0.attending.fetch_add(1, Ordering::AcqRel);
        Attendance(self.clone())
    }

    /// Whether somebody can be asked: somebody attends, or is told by the webhook.
    pub fn is_attended(&self) -> bool {
        let is_told = || {
            let settings = self.0.settings.load();
            settings.as_ref().is_some_and(|settings| settings.webhook.is_some())
        };
        self.0.attending.load(Ordering::Acquire) > 0 || is_told()
    }

    /// Follows the configuration in use. Questions that wait already keep their time.
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

    /// Puts a question in, and tells everybody.
    async fn put(&self, ask: Ask) -> Result<(Item, Waiting), NoAnswer> {
        let schema = match &ask.schema {
            Some(schema) => {
                let compiled = Schema::compile_bounded(schema).await;
                Some(compiled.map_err(|problem| NoAnswer::Schema { problem })?)
            }
            None => None,
        };
        let settings = self.0.settings.load_full();
        let timeout_max =
            settings.as_ref().map_or(TIMEOUT_DEFAULT, |settings| settings.config.timeout.value);
        let after = ask.within.map_or(timeout_max, |within| within.min(timeout_max));
        let agreed = ask.agreed.clone();
        let item = item(ask, after);
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
        let is_own = |open: &&Open| item.caller.is_some() && open.item.caller == item.caller;
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
            return Err(NoAnswer::Full { reason });
        }
        open.insert(
            item.id.clone(),
            Open { item: item.clone(), schema, bytes, agreed, answer: tell, closed },
        );
        // Nobody listens where nobody subscribed.
        drop(self.0.news.send(InboxEvent::Asked(item.clone())));
        drop(open);
        let Item { id, kind, tool, server, execution_id, .. } = &item;
        tracing::info!(id, kind = ?kind, tool, server, execution_id, "asked a person");
        if let Some(webhook) = settings.as_ref().and_then(|settings| settings.webhook.as_ref()) {
            webhook.tell(self, &item);
        }
        Ok((item, waiting))
    }

    /// Whether an answer fits. Looks at a copy: a check may take its time.
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
            // Nothing at all is no answer, unless a schema says so.
            return if value.is_null() { Err(AnswerError::missing()) } else { Ok(()) };
        };
        let checked = schema.check_bounded(value, value.to_string().len()).await;
        checked.map_err(|violations| AnswerError::Invalid { violations })
    }

    /// Takes a question out, and tells everybody. Nothing where somebody else was faster.
    fn close(&self, id: &str, how: Closing) -> Option<Open> {
        let mut open = self.lock();
        let closed = open.remove(id)?;
        drop(self.0.news.send(InboxEvent::Closed { id: id.to_owned(), how }));
        drop(open);
        match how {
            // Said by whoever knows who it was.
            Closing::Answered | Closing::Refused => {}
            Closing::Expired => tracing::info!(id, "nobody answered a question in time"),
            Closing::Withdrawn => tracing::info!(id, "a question to a person was withdrawn"),
        }
        Some(closed)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Open>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("open", &self.lock().len()).finish_non_exhaustive()
    }
}

/// Somebody who can answer. Dropped, they are gone.
#[derive(Debug)]
#[must_use = "nobody attends any more once this is dropped"]
pub struct Attendance(Inbox);

impl Drop for Attendance {
    fn drop(&mut self) {
        self.0.0.attending.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whoever waits for an answer. Dropped, the question is withdrawn.
struct Waiting {
    inbox: Inbox,
    id: String,
    after: Duration,
    answer: oneshot::Receiver<Answer>,
    closed: CancellationToken,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.inbox.close(&self.id, Closing::Withdrawn);
    }
}

fn item(ask: Ask, after: Duration) -> Item {
    let Ask {
        kind,
        question,
        options,
        schema,
        tool,
        arguments,
        server,
        execution_id,
        caller,
        session,
        within: _,
        agreed: _,
    } = ask;
    let asked = Timestamp::now();
    let wait = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
    let expires = asked.saturating_add(wait).unwrap_or(Timestamp::MAX);
    Item {
        id: Uuid::now_v7().to_string(),
        kind,
        question,
        options,
        schema,
        tool,
        arguments,
        server,
        execution_id,
        caller,
        session,
        asked,
        expires,
    }
}

/// What an item takes in memory, about.
fn size(item: &Item) -> usize {
    let options: usize = item.options.iter().map(String::len).sum();
    let schema = item.schema.as_ref().map_or(0, |schema| schema.to_string().len());
    let arguments = item.arguments.as_ref().map_or(0, |arguments| arguments.get().len());
    item.question.len() + options + schema + arguments
}
