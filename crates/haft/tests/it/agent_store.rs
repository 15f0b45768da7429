//! Conversations on disk.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use haft::agent::{SessionStore, StoreError};
use haft::model::{ChatMessage, ModelCall};

fn said(text: &str) -> ChatMessage {
    ChatMessage::user(text)
}

/// What was said is there after the program ended, also where it was killed in the middle of a line.
#[tokio::test]
async fn a_conversation_survives_a_torn_line() {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::new(dir.path().join("sessions"));
    let mut conversation = store.begin("openai::x", "me");
    conversation.push(said("one  two\nthree")).await;
    let call = ModelCall { id: "c".into(), name: "t".into(), arguments: "{}".into() };
    conversation
        .push(ChatMessage::Assistant { text: String::new(), calls: vec![call], kept: None })
        .await;
    let id = conversation.id().to_owned();
    drop(conversation);
    let path = dir.path().join("sessions").join(format!("{id}.jsonl"));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"{\"type\": \"mess\xc3")
        .unwrap();
    let mut resumed = store.resume(&id[..13]).unwrap();
    // The call that nobody answered has an answer, or no model would take the conversation.
    assert!(matches!(resumed.messages()[2], ChatMessage::Tools { .. }));
    resumed.push(said("four")).await;
    let (saved, messages) = store.show(&id).unwrap();
    assert_eq!((saved.messages, saved.title.as_str()), (3, "one two three"));
    assert_eq!(messages.last(), Some(&said("four")));
}

/// The one used last comes first; ids may be shortened while that is clear; deleting is for good.
#[tokio::test]
async fn conversations_are_listed_found_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::new(dir.path());
    assert!(store.last().is_err() && store.list().is_empty());
    let mut first = store.begin("m", "me");
    first.push(said("first")).await;
    let mut second = store.begin("m", "you");
    second.push(said("second")).await;
    let then = jiff::Timestamp::now().as_millisecond();
    crate::support::until(|| jiff::Timestamp::now().as_millisecond() > then).await;
    first.push(said("again")).await;
    assert_eq!(store.last().unwrap(), first.id());
    let titles: Vec<String> = store.list().into_iter().map(|saved| saved.title).collect();
    assert_eq!(titles, ["first", "second"]);
    assert!(store.resume("0").is_err());
    let id = second.id().to_owned();
    assert!(matches!(store.resume(&id), Err(StoreError::InUse(_))));
    drop(second);
    assert!(matches!(store.resume_where(&id, |it| it == Some("me")), Err(StoreError::Unknown(_))));
    let mut second = store.resume_where(&id, |owner| owner == Some("you")).unwrap();
    for wrong in ["../x", "nothing", ""] {
        assert!(store.resume(wrong).is_err(), "{wrong}");
    }
    let used = first.id().to_owned();
    assert!(matches!(store.remove(&used), Err(StoreError::InUse(_))));
    assert_eq!(store.list().len(), 2);
    drop(first);
    store.remove(&used).unwrap();
    assert_eq!(store.list().len(), 1);
    second.clear().await;
    drop(second);
    assert!(store.resume(&id).unwrap().messages().is_empty());
}
