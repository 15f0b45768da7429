//! Conversations on disk.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use haft::Content;
use haft_agent::model::{ChatMessage, ModelCall, ModelResult};
use haft_agent::{SessionStore, SessionStoreError};
use testkit::LogCapture;

fn said(text: &str) -> ChatMessage {
    ChatMessage::user(text)
}

/// Messages survive the end of the program, also if it was killed in the middle of a line.
#[tokio::test]
async fn a_conversation_survives_a_torn_line() {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::new(dir.path().join("sessions"));
    let mut conversation = store.begin("openai::x", "me");
    conversation.push(said("one  two\nthree")).await;
    let call = ModelCall { id: "c".into(), name: "t".into(), arguments: "{}".into() };
    conversation
        .push(ChatMessage::Assistant {
            text: String::new(),
            calls: vec![call],
            provider_state: None,
        })
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
    // The call without a result gets one, because models reject such a conversation.
    assert!(matches!(resumed.messages()[2], ChatMessage::Tools { .. }));
    resumed.push(said("four")).await;
    let (saved, messages) = store.show(&id).unwrap();
    assert_eq!((saved.messages, saved.title.as_str()), (3, "one two three"));
    assert_eq!(messages.last(), Some(&said("four")));
}

/// Lines that are damaged are left out with a WARNING that counts them, and what is left is a conversation that a model
/// takes: no answer without its call, no call without its answer.
#[tokio::test]
async fn what_damage_leaves_of_a_conversation_fits_together() {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::new(dir.path());
    let mut conversation = store.begin("openai::x", "me");
    let call = |id: &str| ModelCall { id: id.into(), name: "t".into(), arguments: "{}".into() };
    let calls = |ids: &[&str]| ChatMessage::Assistant {
        text: String::new(),
        calls: ids.iter().map(|id| call(id)).collect(),
        provider_state: None,
    };
    let result = |id: &str| ModelResult {
        call_id: id.into(),
        name: "t".into(),
        content: vec![Content::text("it worked")],
        is_error: false,
    };
    let results =
        |ids: &[&str]| ChatMessage::Tools { results: ids.iter().map(|id| result(id)).collect() };
    let whole = [
        said("one"),
        calls(&["a"]),
        results(&["a"]),
        said("two"),
        calls(&["b", "c"]),
        results(&["c"]),
    ];
    for message in whole {
        conversation.push(message).await;
    }
    let id = conversation.id().to_owned();
    drop(conversation);
    let path = dir.path().join(format!("{id}.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap();
    // The first call's line is corrupted, and the last message is torn.
    let spoiled: Vec<&str> =
        text.lines().enumerate().map(|(at, it)| if at == 2 { "{" } else { it }).collect();
    std::fs::write(&path, format!("{}\n{{\"type\":\"mess", spoiled.join("\n"))).unwrap();
    let (heard, _guard) = LogCapture::start();
    let resumed = store.resume(&id).unwrap();
    let warned = heard.from("WARN").remove(0);
    assert!(warned.contains("2 lines") && warned.contains(&id), "{warned}");
    let [one, two, asked, ChatMessage::Tools { results: told }] = resumed.messages() else {
        panic!("{:?}", resumed.messages());
    };
    assert_eq!((one, two, asked), (&said("one"), &said("two"), &calls(&["b", "c"])));
    assert_eq!(told[0], result("c"));
    assert_eq!((told[1].call_id.as_str(), told[1].is_error), ("b", true));
    drop(resumed);
    let (saved, _) = store.show(&id).unwrap();
    assert_eq!((saved.messages, heard.from("WARN").len()), (5, 2));
}

/// The one used last comes first; ids may be shortened while that is clear; deleting is for good.
#[tokio::test]
async fn conversations_are_listed_found_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let store = SessionStore::new(dir.path());
    assert!(store.last("me").is_err() && store.list().is_empty());
    let mut first = store.begin("m", "me");
    first.push(said("first")).await;
    let mut second = store.begin("m", "you");
    second.push(said("second")).await;
    let then = jiff::Timestamp::now().as_millisecond();
    crate::support::until(|| jiff::Timestamp::now().as_millisecond() > then).await;
    first.push(said("again")).await;
    assert_eq!(store.last("me").unwrap(), first.id());
    assert_eq!(store.last("you").unwrap(), second.id());
    assert!(matches!(store.last("somebody"), Err(SessionStoreError::Empty)));
    let titles: Vec<String> = store.list().into_iter().map(|saved| saved.title).collect();
    assert_eq!(titles, ["first", "second"]);
    assert!(store.resume("0").is_err());
    let id = second.id().to_owned();
    assert!(matches!(store.resume(&id), Err(SessionStoreError::InUse(_))));
    drop(second);
    assert!(matches!(
        store.resume_where(&id, |it| it == Some("me")),
        Err(SessionStoreError::Unknown(_))
    ));
    let mut second = store.resume_where(&id, |owner| owner == Some("you")).unwrap();
    for wrong in ["../x", "nothing", ""] {
        assert!(store.resume(wrong).is_err(), "{wrong}");
    }
    let used = first.id().to_owned();
    assert!(matches!(store.remove(&used), Err(SessionStoreError::InUse(_))));
    assert_eq!(store.list().len(), 2);
    drop(first);
    store.remove(&used).unwrap();
    assert_eq!(store.list().len(), 1);
    second.clear().await;
    drop(second);
    assert!(store.resume(&id).unwrap().messages().is_empty());
}
