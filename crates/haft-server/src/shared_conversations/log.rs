//! The messages of one open conversation, written with its lease.

use std::sync::Arc;
use std::time::Duration;

use haft::BoxFuture;
use haft_agent::model::ChatMessage;
use haft_agent::{ConversationLog, LogError, title_of};
use haft_postgres::{DatabaseError, NewConversation};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::Context;
use super::lease::Lease;

/// Pause between attempts while the database does not respond.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Writes the messages of a conversation.
pub(super) struct DatabaseLog {
    context: Arc<Context>,
    state: LogState,
    /// Number of the next message.
    next: i32,
}

enum LogState {
    /// Not stored yet.
    New {
        id: Uuid,
        holder: Uuid,
        model: String,
        owner: String,
    },
    Held(Lease),
    Lost,
}

/// A statement failed.
enum WriteError {
    /// It is repeated until the lease expires.
    Transient(DatabaseError),
    Lost(String),
}

impl DatabaseLog {
    /// A conversation that is stored with its first message.
    pub(super) fn begin(context: Arc<Context>, id: Uuid, model: &str, owner: &str) -> Self {
        let (model, owner) = (model.to_owned(), owner.to_owned());
        let state = LogState::New { id, holder: Uuid::now_v7(), model, owner };
        Self { context, state, next: 0 }
    }

    /// A conversation that was taken. `next` is the number of the next message.
    pub(super) fn resumed(context: Arc<Context>, lease: Lease, next: i32) -> Self {
        Self { context, state: LogState::Held(lease), next }
    }

    async fn write(&mut self, message: &ChatMessage) -> Result<(), LogError> {
        let body = serde_json::to_string(message).map_err(|error| lost(error.to_string()))?;
        // Text of the database has no null characters; JSON escapes them.
        let title = title_of(message).unwrap_or_default().replace('\0', " ");
        let until = Instant::now() + self.context.times.lease;
        loop {
            match self.try_write(&body, &title).await {
                Ok(()) => {
                    self.next += 1;
                    return Ok(());
                }
                Err(WriteError::Lost(reason)) => return Err(self.lose(reason)),
                Err(WriteError::Transient(error)) => {
                    let is_over = Instant::now() >= until || self.context.stop.is_cancelled();
                    if is_over || self.check().is_err() {
                        return Err(self.lose(error.to_string()));
                    }
                }
            }
            sleep(RETRY_PAUSE).await;
        }
    }

    async fn try_write(&mut self, body: &str, title: &str) -> Result<(), WriteError> {
        let database = &self.context.database;
        if let LogState::New { id, holder, model, owner } = &self.state {
            let new = NewConversation { id: *id, owner, model, title, body, holder: *holder };
            let sent = Instant::now();
            let begun = database.begin_conversation(&new, self.context.times.lease).await;
            let held = begun.map_err(WriteError::of)?;
            self.state = LogState::Held(Lease::start(Arc::clone(&self.context), held, sent));
        }
        let LogState::Held(lease) = &self.state else {
            return Err(WriteError::Lost("it was lost before".to_owned()));
        };
        // Also the first message: if an earlier attempt stored the conversation, the lease counts from then.
        match database.append_message(lease.held, self.next, body, title).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                lease.lose();
                Err(WriteError::Lost("another process may continue it by now".to_owned()))
            }
            Err(error) => Err(WriteError::of(error)),
        }
    }

    async fn write_clear(&mut self) -> Result<(), LogError> {
        let LogState::Held(lease) = &self.state else { return self.check() };
        let cleared = self.context.database.clear_conversation(lease.held, self.next).await;
        match cleared {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.lose("another process may continue it by now".to_owned())),
            Err(error) => Err(self.lose(error.to_string())),
        }
    }

    fn lose(&mut self, reason: String) -> LogError {
        self.state = LogState::Lost;
        lost(reason)
    }
}

impl WriteError {
    fn of(error: DatabaseError) -> Self {
        if error.is_transient() { Self::Transient(error) } else { Self::Lost(error.to_string()) }
    }
}

impl ConversationLog for DatabaseLog {
    fn append<'a>(&'a mut self, message: &'a ChatMessage) -> BoxFuture<'a, Result<(), LogError>> {
        Box::pin(self.write(message))
    }

    fn clear(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        Box::pin(self.write_clear())
    }

    fn check(&self) -> Result<(), LogError> {
        match &self.state {
            LogState::New { .. } => Ok(()),
            LogState::Held(lease) if lease.is_held() => Ok(()),
            LogState::Held(_) => Err(lost("its lease has expired".to_owned())),
            LogState::Lost => Err(lost("it was lost before".to_owned())),
        }
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let LogState::Held(lease) = self.state {
                lease.release().await;
            }
        })
    }
}

fn lost(reason: String) -> LogError {
    LogError::Lost(reason)
}
