//! Tools with `approval: ask`, called through the gateway: a person is asked in the inbox.

use serde_json::{Value, json};
use testkit::Workspace;

use super::Gateway;
use crate::support::workspace;

/// The toolbox whose `greet` needs approval.
fn asking() -> Workspace {
    let workspace = workspace(&json!({}));
    let config = json!({
        "registry": {"dir": "tools"}, "tools": [{"name": "greet", "approval": "ask"}],
        // The service has no keys, so there is no approver over HTTP otherwise.
        "policy": {"approvals": "caller"},
    });
    workspace.write("haft.json", config.to_string());
    workspace
}

/// The one question there is, once there is one.
async fn question(gateway: &Gateway) -> Value {
    let deadline = tokio::time::Instant::now() + testkit::DEADLINE;
    loop {
        let items = gateway.served.get("/api/v1/inbox").await.json();
        if let Some(item) = items["items"].as_array().unwrap().first() {
            return item.clone();
        }
        assert!(tokio::time::Instant::now() < deadline, "no person was asked");
        tokio::task::yield_now().await;
    }
}

async fn say(gateway: &Gateway, body: Value) -> Value {
    let item = question(gateway).await;
    let path = format!("/api/v1/inbox/{}", item["id"].as_str().unwrap());
    let said = gateway.served.post(&path, &body.to_string()).await;
    assert_eq!(said.status, 200, "{}", said.text);
    item
}

fn greet() -> Value {
    json!({"name": "greet", "arguments": {"name": "you"}})
}

/// Allowed once, refused with a reason, allowed for good: that is for one session only. The log has the reason.
#[tokio::test]
async fn a_person_agrees_to_calls_of_the_gateway() {
    let gateway = Gateway::open(asking());
    let session = gateway.session(&json!({})).await;
    let call = async || session.ask("tools/call", &greet()).await["result"].clone();
    let (result, item) = tokio::join!(call(), say(&gateway, json!({"answer": "allow"})));
    assert!(result.to_string().contains("Hello, you!"), "{result}");
    assert_eq!((&item["kind"], &item["tool"]), (&json!("approval"), &json!("greet")));
    assert_eq!(item["arguments"], json!({"name": "you"}));
    let refuse = json!({"refuse": true, "reason": "not now"});
    let (result, _) = tokio::join!(call(), say(&gateway, refuse));
    assert_eq!(result["isError"], true);
    assert!(
        result.to_string().contains("a person refused the call of `greet`: not now"),
        "{result}"
    );
    let last = gateway.served.log().pop().unwrap();
    assert!(last["error"].to_string().contains("not now"), "{last}");
    let (result, _) = tokio::join!(call(), say(&gateway, json!({"answer": "always"})));
    assert!(result.to_string().contains("Hello, you!"), "{result}");
    assert!(call().await.to_string().contains("Hello, you!"));
    let other = gateway.session(&json!({})).await;
    let calling = async { other.ask("tools/call", &greet()).await["result"].clone() };
    let (result, _) = tokio::join!(calling, say(&gateway, json!({"answer": "deny"})));
    assert!(result.to_string().contains("a person refused"), "{result}");
}

/// A client that cancels its call takes the question with it.
#[tokio::test]
async fn a_cancelled_call_withdraws_its_question() {
    let gateway = Gateway::open(asking());
    let session = gateway.session(&json!({})).await;
    // Its stream ends without an answer.
    let calling = async { drop(session.course(7, "tools/call", &greet()).await) };
    let cancelling = async {
        question(&gateway).await;
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
        assert_eq!(session.post(&cancel).await.status, 202);
        let deadline = tokio::time::Instant::now() + testkit::DEADLINE;
        while gateway.served.get("/api/v1/inbox").await.json() != json!({"items": []}) {
            assert!(tokio::time::Instant::now() < deadline, "it stays");
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(calling, cancelling);
    // Over the plain API, the caller declares the approval.
    let body = r#"{"arguments": {"name": "you"}}"#;
    assert_eq!(gateway.served.post("/api/v1/tools/greet/call", body).await.status, 403);
}

/// The client that makes a call does not approve it, whatever its capabilities.
#[tokio::test]
async fn a_client_is_not_asked_to_approve_its_own_call() {
    let gateway = Gateway::open(asking());
    let session = gateway.session(&json!({"elicitation": {}})).await;
    let mut course = session.course(5, "tools/call", &greet()).await;
    let denying = say(&gateway, json!({"answer": "deny"}));
    let (first, _) = tokio::join!(course.message(), denying);
    let first = first.unwrap();
    assert_eq!((&first["id"], &first["result"]["isError"]), (&json!(5), &json!(true)), "{first}");
}
