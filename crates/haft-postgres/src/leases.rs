//! Leases of conversations: one process at a time continues a conversation, and writes only while it holds the lease.
//!
//! A statement that arrives late, from a holder that was frozen or cut off, finds another `fence` and has no effect. The
//! database alone judges whether a lease has expired.

use std::time::Duration;

use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::conversations::millis;
use crate::database::Database;
use crate::error::DatabaseError;

const BEGIN: &str = "
    with begun as (
        insert into haft.conversation (id, owner, model, title, fence, holder, lease)
        values ($1, $2, $3, $4, 1, $5, now() + $6 * interval '1 millisecond')
        on conflict (id) do nothing
        returning id
    )
    insert into haft.message (conversation, n, body) select id, 0, $7 from begun returning n";

/// `holder` lets the same attempt take it again, if the response to the first statement was lost.
const TAKE: &str = "
    update haft.conversation
    set fence = fence + 1, holder = $2, lease = now() + $3 * interval '1 millisecond'
    where id = $1 and (lease is null or lease < now() or holder = $2)
    returning fence";

const RENEW: &str = "
    update haft.conversation set lease = now() + $3 * interval '1 millisecond'
    where id = $1 and fence = $2 and lease > now()
    returning id";

const RELEASE: &str = "
    update haft.conversation set lease = null, holder = null where id = $1 and fence = $2";

/// The first part waits for a statement that takes the lease, and then finds another `fence`. A message that is sent twice
/// is stored once: its number belongs to its holder.
const APPEND: &str = "
    with held as (
        update haft.conversation
        set updated = now(), title = case when title = '' then $5 else title end
        where id = $1 and fence = $2 and lease > now()
        returning id
    ), written as (
        insert into haft.message (conversation, n, body) select id, $3, $4 from held
        on conflict (conversation, n) do nothing
    )
    select id from held";

const CLEAR: &str = "
    update haft.conversation set since = $3, title = '', updated = now()
    where id = $1 and fence = $2 and lease > now()
    returning id";

/// The first message of a conversation.
#[derive(Debug, Clone)]
pub struct NewConversation<'a> {
    /// The id of the conversation.
    pub id: Uuid,
    /// Its owner.
    pub owner: &'a str,
    /// The model.
    pub model: &'a str,
    /// The beginning of the message.
    pub title: &'a str,
    /// The message.
    pub body: &'a str,
    /// Identifies the attempt.
    pub holder: Uuid,
}

/// A held conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldConversation {
    /// Its id.
    pub id: Uuid,
    /// Greater than that of every holder before.
    pub fence: i64,
}

impl Database {
    /// Stores a conversation with its first message, and holds it for `lease`. If this is repeated, the conversation is
    /// held only if the first attempt did not store it: see [`append_message`](Self::append_message).
    pub async fn begin_conversation(
        &self,
        new: &NewConversation<'_>,
        lease: Duration,
    ) -> Result<HeldConversation, DatabaseError> {
        let lease = millis(lease);
        let params = [
            (&new.id as _, Type::UUID),
            (&new.owner as _, Type::TEXT),
            (&new.model as _, Type::TEXT),
            (&new.title as _, Type::TEXT),
            (&new.holder as _, Type::UUID),
            (&lease as _, Type::INT8),
            (&new.body as _, Type::TEXT),
        ];
        // A second time it changes nothing, and the fence is the same.
        self.read(BEGIN, &params).await?;
        Ok(HeldConversation { id: new.id, fence: 1 })
    }

    /// Takes a conversation that no process holds. `None` if one does, or if there is no such conversation.
    pub async fn take_conversation(
        &self,
        id: Uuid,
        holder: Uuid,
        lease: Duration,
    ) -> Result<Option<HeldConversation>, DatabaseError> {
        let lease = millis(lease);
        let params =
            [(&id as _, Type::UUID), (&holder as _, Type::UUID), (&lease as _, Type::INT8)];
        let rows = self.read(TAKE, &params).await?;
        Ok(rows.first().map(|row| HeldConversation { id, fence: row.get(0) }))
    }

    /// Holds a conversation for another `lease`. Returns false if it is not held any more.
    pub async fn renew_conversation(
        &self,
        held: HeldConversation,
        lease: Duration,
    ) -> Result<bool, DatabaseError> {
        let HeldConversation { id, fence } = held;
        let lease = millis(lease);
        let params = [(&id as _, Type::UUID), (&fence as _, Type::INT8), (&lease as _, Type::INT8)];
        Ok(!self.read(RENEW, &params).await?.is_empty())
    }

    /// Ends the lease of a conversation, if it is still held.
    pub async fn release_conversation(&self, held: HeldConversation) -> Result<(), DatabaseError> {
        let HeldConversation { id, fence } = held;
        self.read(RELEASE, &[(&id as _, Type::UUID), (&fence as _, Type::INT8)]).await.map(drop)
    }

    /// Stores the message `n` of a held conversation, once. Returns false if it is not held any more.
    pub async fn append_message(
        &self,
        held: HeldConversation,
        n: i32,
        body: &str,
        title: &str,
    ) -> Result<bool, DatabaseError> {
        let HeldConversation { id, fence } = held;
        let params = [
            (&id as _, Type::UUID),
            (&fence as _, Type::INT8),
            (&n as _, Type::INT4),
            (&body as _, Type::TEXT),
            (&title as _, Type::TEXT),
        ];
        Ok(!self.read(APPEND, &params).await?.is_empty())
    }

    /// Clears a held conversation: messages before `since` are not read again. Returns false if it is not held any more.
    pub async fn clear_conversation(
        &self,
        held: HeldConversation,
        since: i32,
    ) -> Result<bool, DatabaseError> {
        let HeldConversation { id, fence } = held;
        let params = [(&id as _, Type::UUID), (&fence as _, Type::INT8), (&since as _, Type::INT4)];
        Ok(!self.read(CLEAR, &params).await?.is_empty())
    }
}
