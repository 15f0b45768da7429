//! Servers over stdio that still speak of a call which has ended: no other client receives it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::fixture::messages;

use super::{Gateway, Session, request};
use crate::support::{server, workspace};

/// A gateway to one server over stdio, and where that notes what it got.
fn gateway() -> (Gateway, [String; 2], PathBuf) {
    let workspace = workspace(&json!({}));
    let facts = workspace.path().join("facts");
    let scenario =
        json!({"tools": ["late", "overtake", "echo"], "ignore_cancel": true, "facts": facts});
    workspace.write("haft.json", json!({"servers": {"files": server(&scenario)}}).to_string());
    let (gateway, keys) = Gateway::with_two_keys(workspace);
    (gateway, keys, facts)
}

/// Waits until the server has received a message with this method.
async fn received(facts: &Path, method: &str) {
    let looking = async {
        while messages(facts, method).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(testkit::DEADLINE, looking).await.expect("never received");
}

async fn client<'a>(gateway: &'a Gateway, key: &str) -> Session<'a> {
    let key = format!("Bearer {key}");
    let headers = [("authorization", key.as_str())];
    let session = gateway.session_as(&headers, &json!({"elicitation": {}})).await;
    session.ask("tools/list", &json!({})).await;
    session.ask("logging/setLevel", &json!({"level": "debug"})).await;
    session
}

fn late(arguments: &Value) -> Value {
    json!({"name": "late", "arguments": arguments, "_meta": {"progressToken": "first"}})
}

/// Everything a client receives while `overtake` runs.
async fn overtake(session: &Session<'_>) -> Vec<Value> {
    let call = json!({"name": "overtake", "arguments": {}, "_meta": {"progressToken": "second"}});
    let mut course = session.course(7, "tools/call", &call).await;
    let mut received = Vec::new();
    while let Some(message) = course.message().await {
        received.push(message);
    }
    received
}

fn is_only_the_answer(received: &[Value]) {
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!(received[0]["id"], 7, "{received:?}");
    assert!(received[0]["result"].to_string().contains("overtaken"), "{received:?}");
}

/// Progress, log messages and a second answer, sent after the answer.
#[tokio::test]
async fn late_messages_of_an_answered_call_reach_no_other_client() {
    let (gateway, [first, second], _) = gateway();
    let (one, two) = (client(&gateway, &first).await, client(&gateway, &second).await);
    let answer = one.ask("tools/call", &late(&json!({"answers": true}))).await;
    assert!(answer["result"].to_string().contains("in time"), "{answer}");
    is_only_the_answer(&overtake(&two).await);
}

/// The same, and a question, for a call whose client went away.
#[tokio::test]
async fn late_messages_of_an_abandoned_call_reach_no_other_client() {
    let (gateway, [first, second], facts) = gateway();
    let (one, two) = (client(&gateway, &first).await, client(&gateway, &second).await);
    {
        let call = request(3, "tools/call", &late(&json!({"asks": true})));
        let mut posting = std::pin::pin!(one.post(&call));
        tokio::select! {
            _ = &mut posting => panic!("answered"),
            () = received(&facts, "tools/call") => {}
        }
    }
    one.post(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 3}}))
        .await;
    received(&facts, "notifications/cancelled").await;
    is_only_the_answer(&overtake(&two).await);
}

/// A key that has the server to itself receives its log messages, in any of its sessions.
#[tokio::test]
async fn the_only_key_receives_log_messages() {
    let (gateway, [key, _], _) = gateway();
    let (one, two) = (client(&gateway, &key).await, client(&gateway, &key).await);
    one.ask("tools/call", &late(&json!({"answers": true}))).await;
    let received = overtake(&two).await;
    assert!(received.iter().any(|it| it["params"]["data"] == "late log"), "{received:?}");
}
