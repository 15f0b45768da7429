//! `request_human_input` at `/mcp`: asked in the inbox and at the client at once. The first answer counts.

use serde_json::{Value, json};
use testkit::Workspace;

use super::{Gateway, modern_headers, modern_request};

fn gateway() -> Gateway {
    let human = "builtin: {enabled: false, request_human_input: {}}\n";
    Gateway::open(Workspace::with(&[("haft.yaml", human)]))
}

fn capable() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn wish() -> Value {
    json!({
        "name": "request_human_input",
        "arguments": {"question": "Which colour?", "options": ["red", "blue"]},
    })
}

/// The one question in the inbox. The client was asked already, so it is there.
async fn item(gateway: &Gateway) -> Value {
    let items = gateway.served.get("/api/v1/inbox").await.json()["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 1, "{items}");
    items[0].clone()
}

async fn say(gateway: &Gateway, item: &Value, body: &Value) -> u16 {
    let path = format!("/api/v1/inbox/{}", item["id"].as_str().unwrap());
    gateway.served.post(&path, &body.to_string()).await.status
}

/// Proves S2-FR-006: the first answer resumes the call, and the question is closed everywhere else.
#[tokio::test]
async fn the_inbox_and_a_legacy_client_are_asked_at_once() {
    let gateway = gateway();
    let session = gateway.session(&capable()).await;

    let mut course = session.course(5, "tools/call", &wish()).await;
    let question = course.message().await.unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let open = item(&gateway).await;
    assert_eq!((&open["question"], &open["kind"]), (&json!("Which colour?"), &json!("question")));
    let reply = json!({"action": "accept", "content": {"answer": "red"}});
    let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": reply});
    assert_eq!(session.post(&reply).await.status, 202);
    let result = course.answer().await;
    assert_eq!(result["result"]["structuredContent"], json!({"answer": "red"}), "{result}");
    assert_eq!(say(&gateway, &open, &json!({"answer": "blue"})).await, 404);

    let mut course = session.course(6, "tools/call", &wish()).await;
    let question = course.message().await.unwrap();
    let open = item(&gateway).await;
    assert_eq!(say(&gateway, &open, &json!({"answer": "blue"})).await, 200);
    let cancelled = course.message().await.unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled", "{cancelled}");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    let result = course.answer().await;
    assert_eq!(result["result"]["structuredContent"], json!({"answer": "blue"}), "{result}");
}

/// The same for a client that is asked by a result. One that comes back too late gets the other's answer.
#[tokio::test]
async fn the_inbox_and_a_modern_client_are_asked_at_once() {
    let gateway = gateway();
    let send = async |params: Value| {
        let message = modern_request(5, "tools/call", params, &capable());
        gateway.course(&modern_headers(&message).as_pairs(), &message).await.answer().await
    };
    let again = |asked: &Value, answer: Option<&str>| {
        let result = &asked["result"];
        assert_eq!(result["resultType"], "input_required", "{asked}");
        let name = result["inputRequests"].as_object().unwrap().keys().next().unwrap();
        let mut again = wish();
        again["requestState"] = result["requestState"].clone();
        again["inputResponses"] = match answer {
            Some(answer) => json!({name: {"action": "accept", "content": {"answer": answer}}}),
            None => json!({}),
        };
        again
    };

    let asked = send(wish()).await;
    let open = item(&gateway).await;
    let result = send(again(&asked, Some("red"))).await;
    assert_eq!(result["result"]["structuredContent"], json!({"answer": "red"}), "{result}");
    assert_eq!(say(&gateway, &open, &json!({"answer": "blue"})).await, 404);

    for late in [Some("red"), None] {
        let asked = send(wish()).await;
        let open = item(&gateway).await;
        assert_eq!(say(&gateway, &open, &json!({"answer": "blue"})).await, 200);
        let result = send(again(&asked, late)).await;
        assert_eq!(result["result"]["structuredContent"], json!({"answer": "blue"}), "{result}");
    }
}

/// A client that cannot be asked, or fails at it, leaves the question to those who attend the inbox.
#[tokio::test]
async fn a_client_that_cannot_ask_leaves_the_question_in_the_inbox() {
    let gateway = gateway();
    let session = gateway.session(&capable()).await;
    let mut course = session.course(5, "tools/call", &wish()).await;
    let question = course.message().await.unwrap();
    let error = json!({"code": -32603, "message": "no window"});
    let failed = json!({"jsonrpc": "2.0", "id": question["id"], "error": error});
    assert_eq!(session.post(&failed).await.status, 202);
    let open = item(&gateway).await;
    assert_eq!(say(&gateway, &open, &json!({"answer": "blue"})).await, 200);
    let result = course.answer().await;
    assert_eq!(result["result"]["structuredContent"], json!({"answer": "blue"}), "{result}");
}
