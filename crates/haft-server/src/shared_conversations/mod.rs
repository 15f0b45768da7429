//! Conversations in the database: any replica lists, shows, continues and deletes them.

mod lease;
mod log;

use std::sync::Arc;
use std::time::Duration;

use haft::BoxFuture;
use haft_agent::model::ChatMessage;
use haft_agent::{Conversation, ConversationStore, OwnerCheck, Saved, SessionStoreError};
use haft_postgres::{
    ConversationDeleted, ConversationRow, Database, DatabaseError, HeldConversation, MessageRow,
};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use lease::Lease;
use log::DatabaseLog;

/// Days that a date of the database can go back.
const RETAIN_DAYS_MAX: u32 = 36_500;
/// Time for the end of the leases when the service ends.
const RELEASED_MAX: Duration = Duration::from_secs(2);

/// The length of a lease, and the interval of its renewals.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTimes {
    /// Time after the last renewal.
    pub lease: Duration,
    /// Interval of renewals.
    pub renewal: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self { lease: Duration::from_secs(30), renewal: Duration::from_secs(10) }
    }
}

/// The conversations of all replicas.
#[derive(Clone)]
pub struct SharedConversations {
    context: Arc<Context>,
}

/// The database and the settings of every open conversation.
struct Context {
    database: Database,
    times: LeaseTimes,
    /// Ends the wait for a database that does not respond.
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl SharedConversations {
    /// The conversations in a database. After `stop`, none of them waits for a database that does not respond.
    pub fn new(database: Database, times: LeaseTimes, stop: CancellationToken) -> Self {
        let tasks = TaskTracker::new();
        Self { context: Arc::new(Context { database, times, stop, tasks }) }
    }

    /// Waits for the end of the leases. To be called when no conversation is open any more.
    pub async fn end(&self) {
        self.context.tasks.close();
        if timeout(RELEASED_MAX, self.context.tasks.wait()).await.is_err() {
            let lease = self.context.times.lease.as_secs();
            tracing::warn!("conversations of this replica stay in use for up to {lease} s");
        }
    }

    fn database(&self) -> &Database {
        &self.context.database
    }

    async fn row(
        &self,
        id: &str,
        is_owner: &OwnerCheck,
    ) -> Result<ConversationRow, SessionStoreError> {
        let unknown = || SessionStoreError::Unknown(id.to_owned());
        let uuid = Uuid::parse_str(id).map_err(|_| unknown())?;
        let row = self.database().conversation(uuid).await.map_err(unavailable)?;
        // Written in another way, an id would not match that of the calls.
        row.filter(|row| row.id.to_string() == id && is_owner(id, Some(&row.owner)))
            .ok_or_else(unknown)
    }

    async fn messages(&self, id: Uuid) -> Result<Vec<ChatMessage>, SessionStoreError> {
        let rows = self.database().messages(id).await.map_err(unavailable)?;
        Ok(rows.into_iter().filter_map(|row| message(id, &row)).collect())
    }

    async fn resume_held(&self, row: &ConversationRow) -> Result<Conversation, SessionStoreError> {
        let id = row.id;
        let sent = Instant::now();
        let lease = self.context.times.lease;
        let taken = self.database().take_conversation(id, Uuid::now_v7(), lease).await;
        let held = taken.map_err(unavailable)?;
        let held = held.ok_or_else(|| SessionStoreError::InUse(id.to_string()))?;
        // Released if reading fails.
        let lease = Lease::start(Arc::clone(&self.context), held, sent);
        let next = self.database().next_message(id).await.map_err(unavailable)?;
        let messages = self.messages(id).await?;
        let log = DatabaseLog::resumed(Arc::clone(&self.context), lease, next);
        Ok(Conversation::resumed(id, messages, Box::new(log)))
    }
}

impl ConversationStore for SharedConversations {
    fn check(&self) -> BoxFuture<'_, Result<(), SessionStoreError>> {
        Box::pin(async { self.database().refresh().await.map_err(unavailable) })
    }

    fn begin(&self, model: &str, owner: &str) -> Conversation {
        let id = Uuid::now_v7();
        let log = DatabaseLog::begin(Arc::clone(&self.context), id, model, owner);
        Conversation::resumed(id, Vec::new(), Box::new(log))
    }

    fn resume<'a>(
        &'a self,
        id: &'a str,
        is_owner: OwnerCheck,
    ) -> BoxFuture<'a, Result<Conversation, SessionStoreError>> {
        Box::pin(async move {
            let row = self.row(id, &is_owner).await?;
            self.resume_held(&row).await
        })
    }

    fn require<'a>(
        &'a self,
        id: &'a str,
        is_owner: OwnerCheck,
    ) -> BoxFuture<'a, Result<(), SessionStoreError>> {
        Box::pin(async move { self.row(id, &is_owner).await.map(drop) })
    }

    fn list<'a>(
        &'a self,
        owner: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Saved>, SessionStoreError>> {
        Box::pin(async move {
            let rows = self.database().conversations(owner).await.map_err(unavailable)?;
            Ok(rows.into_iter().map(saved).collect())
        })
    }

    fn show<'a>(
        &'a self,
        id: &'a str,
        is_owner: OwnerCheck,
    ) -> BoxFuture<'a, Result<(Saved, Vec<ChatMessage>), SessionStoreError>> {
        Box::pin(async move {
            let row = self.row(id, &is_owner).await?;
            let messages = self.messages(row.id).await?;
            Ok((saved(row), messages))
        })
    }

    fn remove<'a>(
        &'a self,
        id: &'a str,
        is_owner: OwnerCheck,
    ) -> BoxFuture<'a, Result<(), SessionStoreError>> {
        Box::pin(async move {
            let row = self.row(id, &is_owner).await?;
            match self.database().delete_conversation(row.id).await.map_err(unavailable)? {
                ConversationDeleted::Deleted => Ok(()),
                ConversationDeleted::InUse => Err(SessionStoreError::InUse(id.to_owned())),
                ConversationDeleted::Missing => Err(SessionStoreError::Unknown(id.to_owned())),
            }
        })
    }

    fn delete_expired(&self, retain_days: u32) -> BoxFuture<'_, Result<usize, SessionStoreError>> {
        Box::pin(async move {
            if retain_days == 0 {
                return Ok(0);
            }
            let days = i32::try_from(retain_days.min(RETAIN_DAYS_MAX)).unwrap_or(i32::MAX);
            self.database().delete_expired_conversations(days).await.map_err(unavailable)
        })
    }
}

fn saved(row: ConversationRow) -> Saved {
    let ConversationRow { id, owner, model, title, created, updated, messages } = row;
    Saved {
        id: id.to_string(),
        created,
        updated,
        model,
        owner: Some(owner),
        title,
        messages: usize::try_from(messages).unwrap_or_default(),
    }
}

/// A message that a newer Haft may have written in another way is left out.
fn message(conversation: Uuid, row: &MessageRow) -> Option<ChatMessage> {
    let read = serde_json::from_str(&row.body);
    let warn = |error: &serde_json::Error| {
        let problem = haft_bounds::parse_error::describe(error);
        tracing::warn!(%conversation, n = row.n, problem, "a message cannot be read and is left out");
    };
    read.inspect_err(warn).ok()
}

#[allow(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
fn unavailable(error: DatabaseError) -> SessionStoreError {
    SessionStoreError::Unavailable { problem: error.to_string(), remedy: error.remedy() }
}
