//! Conversations: one holder at a time, fenced writes, lists, expiry.

use std::time::Duration;

use haft_postgres::{ConversationDeleted, HeldConversation, MessageRow, NewConversation};
use testkit::postgres::database;
use uuid::Uuid;

use crate::open;

const LONG: Duration = Duration::from_hours(1);
const OVER: Duration = Duration::ZERO;

fn new(id: Uuid) -> NewConversation<'static> {
    NewConversation {
        id,
        owner: "key:ada",
        model: "m",
        title: "Hi",
        body: "\"zero\"",
        holder: Uuid::from_u128(1),
    }
}

fn message(n: i32, body: &str) -> MessageRow {
    MessageRow { n, body: body.to_owned() }
}

/// Of several processes, one holds a conversation. When its lease is over, another takes it with a greater fence, and the
/// first writes, renews, clears and releases nothing any more.
#[tokio::test]
async fn a_conversation_has_one_holder_and_an_old_one_writes_nothing() {
    let Some(test) = database() else { return };
    let (one, two) = (open(&test.url).await, open(&test.url).await);
    let id = Uuid::from_u128(7);
    let first = one.begin_conversation(&new(id), LONG).await.unwrap();
    assert!(one.append_message(first, 0, "\"zero\"", "Hi").await.unwrap());
    let (holder, other) = (Uuid::from_u128(2), Uuid::from_u128(3));
    assert_eq!(two.take_conversation(id, holder, LONG).await.unwrap(), None);
    assert_eq!(two.delete_conversation(id).await.unwrap(), ConversationDeleted::InUse);

    assert!(one.renew_conversation(first, OVER).await.unwrap());
    assert!(!one.append_message(first, 1, "late", "").await.unwrap(), "the lease is over");
    let taken = two.take_conversation(id, holder, LONG).await.unwrap().unwrap();
    assert_eq!(taken, HeldConversation { id, fence: 2 });
    assert_eq!(one.take_conversation(id, other, LONG).await.unwrap(), None);
    // The response was lost, and the same attempt is repeated.
    let taken = two.take_conversation(id, holder, LONG).await.unwrap().unwrap();
    assert_eq!(taken.fence, 3);

    assert!(!one.append_message(first, 1, "late", "").await.unwrap());
    assert!(!one.renew_conversation(first, LONG).await.unwrap());
    assert!(!one.clear_conversation(first, 1).await.unwrap());
    one.release_conversation(first).await.unwrap();
    assert_eq!(two.next_message(id).await.unwrap(), 1);
    assert!(two.append_message(taken, 1, "one", "").await.unwrap());
    assert_eq!(one.messages(id).await.unwrap(), [message(0, "\"zero\""), message(1, "one")]);
    two.release_conversation(taken).await.unwrap();
    assert!(one.take_conversation(id, other, LONG).await.unwrap().is_some());
}

/// Statements that are repeated because their response was lost take effect once.
#[tokio::test]
async fn a_repeated_statement_stores_a_message_once() {
    let Some(test) = database() else { return };
    let database = open(&test.url).await;
    let id = Uuid::from_u128(7);
    let held = database.begin_conversation(&new(id), LONG).await.unwrap();
    assert_eq!(database.begin_conversation(&new(id), LONG).await.unwrap(), held);
    for n in [0, 1, 1, 2] {
        assert!(database.append_message(held, n, "m", "other").await.unwrap());
    }
    assert_eq!(database.messages(id).await.unwrap().len(), 3);
    let row = database.conversation(id).await.unwrap().unwrap();
    assert_eq!((row.title.as_str(), row.messages), ("Hi", 3));

    assert!(database.clear_conversation(held, 3).await.unwrap());
    assert_eq!(database.messages(id).await.unwrap(), []);
    assert_eq!(database.next_message(id).await.unwrap(), 3);
    assert!(database.append_message(held, 3, "new", "New").await.unwrap());
    let row = database.conversation(id).await.unwrap().unwrap();
    assert_eq!((row.title.as_str(), row.messages), ("New", 1));
}

/// A list has the conversation used last first; expired ones are deleted with their messages unless a process holds them.
#[tokio::test]
async fn conversations_are_listed_and_expire() {
    let Some(test) = database() else { return };
    let database = open(&test.url).await;
    let ids = [1, 2, 3].map(Uuid::from_u128);
    for id in ids {
        let held = database.begin_conversation(&new(id), LONG).await.unwrap();
        if id != ids[0] {
            database.release_conversation(held).await.unwrap();
        }
    }
    test.sql(
        "update haft.conversation set owner = 'key:bob' where fence = 1 and lease is not null",
    );
    test.sql(&format!(
        "update haft.conversation set updated = now() - interval '9 days' where id <> '{}'",
        ids[2]
    ));
    let list = async |owner: Option<&str>| {
        let rows = database.conversations(owner).await.unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None).await, [ids[2], ids[1], ids[0]]);
    assert_eq!(list(Some("key:ada")).await, [ids[2], ids[1]]);
    assert_eq!(database.delete_expired_conversations(10).await.unwrap(), 0);
    assert_eq!(database.delete_expired_conversations(8).await.unwrap(), 1);
    assert_eq!(list(None).await, [ids[2], ids[0]]);
    assert_eq!(test.sql("select count(*) from haft.message"), "2");
    assert_eq!(database.delete_conversation(ids[2]).await.unwrap(), ConversationDeleted::Deleted);
    assert_eq!(database.delete_conversation(ids[2]).await.unwrap(), ConversationDeleted::Missing);
}
