//! Conversations in the database. Time is exchanged in microseconds after 1970.

use std::time::Duration;

use jiff::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::database::Database;
use crate::error::DatabaseError;

/// The longest list. Those used last come first.
const LIST_MAX: i64 = 10_000;

const SUMMARY: &str = "
    select c.id, c.owner, c.model, c.title,
        (extract(epoch from c.created) * 1000000)::int8, (extract(epoch from c.updated) * 1000000)::int8,
        (select count(*) from haft.message m where m.conversation = c.id and m.n >= c.since)
    from haft.conversation c";

const MESSAGES: &str = "
    select m.n, m.body from haft.message m join haft.conversation c on c.id = m.conversation
    where c.id = $1 and m.n >= c.since order by m.n";

/// The next number of a message: one that was cleared keeps its own.
const NEXT: &str = "select coalesce(max(n) + 1, 0) from haft.message where conversation = $1";

const DELETE: &str = "
    with gone as (
        delete from haft.conversation where id = $1 and (lease is null or lease < now()) returning id
    )
    select exists (select from gone), exists (select from haft.conversation where id = $1)";

const EXPIRE: &str = "
    delete from haft.conversation
    where updated < now() - make_interval(days => $1) and (lease is null or lease < now())
    returning id";

/// A conversation without its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationRow {
    /// Its id.
    pub id: Uuid,
    /// Its owner.
    pub owner: String,
    /// The model it began with.
    pub model: String,
    /// The beginning of its first message.
    pub title: String,
    /// When it began.
    pub created: Timestamp,
    /// The time of its last message.
    pub updated: Timestamp,
    /// Number of messages since it was last cleared.
    pub messages: i64,
}

/// A message with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// Its number.
    pub n: i32,
    /// The message.
    pub body: String,
}

/// The outcome of deleting a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationDeleted {
    /// It is deleted.
    Deleted,
    /// A process holds it.
    InUse,
    /// There is none.
    Missing,
}

impl Database {
    /// Reads the conversations, those of `owner` alone if it is given, the one used last first.
    pub async fn conversations(
        &self,
        owner: Option<&str>,
    ) -> Result<Vec<ConversationRow>, DatabaseError> {
        let sql = format!(
            "{SUMMARY} where $1::text is null or c.owner = $1 order by c.updated desc, c.id desc limit {LIST_MAX}"
        );
        let rows = self.read(&sql, &[(&owner as _, Type::TEXT)]).await?;
        Ok(rows.iter().map(conversation).collect())
    }

    /// Reads one conversation.
    pub async fn conversation(&self, id: Uuid) -> Result<Option<ConversationRow>, DatabaseError> {
        let sql = format!("{SUMMARY} where c.id = $1");
        let rows = self.read(&sql, &[(&id as _, Type::UUID)]).await?;
        Ok(rows.first().map(conversation))
    }

    /// Reads the messages of a conversation since it was last cleared.
    pub async fn messages(&self, id: Uuid) -> Result<Vec<MessageRow>, DatabaseError> {
        let rows = self.read(MESSAGES, &[(&id as _, Type::UUID)]).await?;
        Ok(rows.iter().map(|row| MessageRow { n: row.get(0), body: row.get(1) }).collect())
    }

    /// The number of the next message of a conversation. To be read by its holder.
    pub async fn next_message(&self, id: Uuid) -> Result<i32, DatabaseError> {
        let rows = self.read(NEXT, &[(&id as _, Type::UUID)]).await?;
        rows.first().map(|row| row.get(0)).ok_or(DatabaseError::NoSchema)
    }

    /// Deletes a conversation that no process holds.
    pub async fn delete_conversation(
        &self,
        id: Uuid,
    ) -> Result<ConversationDeleted, DatabaseError> {
        let rows = self.query(DELETE, &[(&id as _, Type::UUID)]).await?;
        let row = rows.first().ok_or(DatabaseError::NoSchema)?;
        Ok(match (row.get(0), row.get(1)) {
            (true, _) => ConversationDeleted::Deleted,
            // Both parts of the statement see the state before it.
            (false, true) => ConversationDeleted::InUse,
            (false, false) => ConversationDeleted::Missing,
        })
    }

    /// Deletes the conversations whose last message is more than `days` days old. Those that a process holds stay.
    pub async fn delete_expired_conversations(&self, days: i32) -> Result<usize, DatabaseError> {
        Ok(self.query(EXPIRE, &[(&days as _, Type::INT4)]).await?.len())
    }
}

fn conversation(row: &Row) -> ConversationRow {
    let at = |micros: i64| Timestamp::from_microsecond(micros).unwrap_or_default();
    ConversationRow {
        id: row.get(0),
        owner: row.get(1),
        model: row.get(2),
        title: row.get(3),
        created: at(row.get(4)),
        updated: at(row.get(5)),
        messages: row.get(6),
    }
}

/// Whole milliseconds for the database.
pub(crate) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
