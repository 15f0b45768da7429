//! Clients and servers that want more than their share.

use serde_json::{Value, json};
use testkit::fixture::messages;

use super::{Gateway, modern_headers, modern_request};
use crate::served::answer;
use crate::support::{server, workspace};

/// Line ends between the parts of a message are JSON; on a pipe, where a line is a message, they would end one
/// message and begin another, unchecked one.
#[tokio::test]
async fn line_ends_in_arguments_stay_inside_their_message() {
    let workspace = workspace(&json!({}));
    let facts = workspace.path().join("facts");
    let servers = json!({"files": server(&json!({"tools": ["echo", "elicit"], "facts": facts}))});
    workspace.write("haft.json", json!({"servers": servers}).to_string());
    let gateway = Gateway::open(workspace);
    let session = gateway.session(&json!({"elicitation": {}})).await;
    session.ask("tools/list", &json!({})).await;
    let inner = r#"{"jsonrpc":"2.0","id":9001,"method":"tools/call","params":{"name":"evil"}}"#;
    let body = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\
         \"arguments\":{{\"message\":\"fine\",\"a\":\r\n{inner}\r\n}}}}}}"
    );
    let headers = [("mcp-session-id", &*session.id)];
    let answer = answer(gateway.request(&headers, &body)).await;
    assert!(answer.text.contains("fine"), "{}", answer.text);

    // The same in what a client answers to a question.
    let call = json!({"name": "elicit", "arguments": {"message": "please"}});
    let mut course = session.course(2, "tools/call", &call).await;
    let question = course.message().await.unwrap();
    let reply = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"action\":\"accept\",\"content\":\n{inner}\n}}}}",
        question["id"]
    );
    assert_eq!(answer_status(&gateway, &session.id, &reply).await, 202);
    assert!(course.answer().await["result"].is_object());
    let calls = messages(&facts, "tools/call");
    assert!(calls.iter().all(|call| call["params"]["name"] != "evil"), "{calls:?}");
    assert_eq!(calls.len(), 2);
}

async fn answer_status(gateway: &Gateway, session: &str, body: &str) -> u16 {
    answer(gateway.request(&[("mcp-session-id", session)], body)).await.status
}

/// A header stands for what is done, whatever else is in the body.
#[tokio::test]
async fn a_header_is_compared_whatever_else_is_in_the_body() {
    let servers = json!({"files": server(&json!({"tools": ["echo", "text", "header_param"]}))});
    let gateway = Gateway::open(workspace(&servers));
    gateway.modern(1, "tools/list", json!({})).await.answer().await;
    let send = async |params: Value, name: &str| {
        let message = modern_request(3, "tools/call", params, &json!({}));
        let mut headers = modern_headers(&message);
        headers.0.retain(|(header, _)| *header != "mcp-name");
        headers.0.push(("mcp-name", name.to_owned()));
        gateway.post(&headers.as_pairs(), &message).await.status
    };
    assert_eq!(send(json!({"name": "text", "arguments": {}}), "text").await, 200);
    assert_eq!(send(json!({"name": "text", "arguments": {}, "uri": 5}), "echo").await, 400);
    assert_eq!(send(json!({"name": "text", "arguments": {}, "uri": "x"}), "echo").await, 400);
    assert_eq!(send(json!({"name": 5, "arguments": {}}), "echo").await, 400);
    let region = json!({"name": "header_param", "arguments": {"region": "eu"}, "uri": 5});
    assert_eq!(send(region, "header_param").await, 400);
}

/// A question of a server is not put to an MCP client where it may concern a call over the API.
#[tokio::test]
async fn a_question_for_a_caller_of_the_api_reaches_no_client() {
    let gateway = Gateway::open(workspace(&json!({
        "files": server(&json!({"tools": ["elicit", "hang"]})),
    })));
    let session = gateway.session(&json!({"elicitation": {}})).await;
    session.ask("tools/list", &json!({})).await;
    let hanging = session.course(1, "tools/call", &json!({"name": "hang", "arguments": {}})).await;
    let body = json!({"arguments": {"message": "SECRET"}}).to_string();
    let answer = gateway.served.post("/api/v1/tools/elicit/call", &body).await;
    assert!(answer.text.contains("several clients"), "{}", answer.text);
    drop(hanging);
}

/// One key cannot keep all others out, however many streams it holds open.
#[tokio::test]
async fn one_key_leaves_room_for_others() {
    let workspace = workspace(&json!({}));
    workspace.write("haft.json", json!({"gateway": {"sessions_max": 4}}).to_string());
    let (gateway, [a, b]) = Gateway::with_two_keys(workspace);
    let (a, b) = (format!("Bearer {a}"), format!("Bearer {b}"));
    let mut held = Vec::new();
    for _ in 0..4 {
        let session = gateway.session_as(&[("authorization", &a)], &json!({})).await;
        let stream = session.listen(None).await;
        assert_eq!(stream.status, 200);
        held.push(stream);
    }
    let other = gateway.session_as(&[("authorization", &b)], &json!({})).await;
    assert!(other.ask("ping", &json!({})).await["result"].is_object());
    // The first of the many had to go.
    assert!(held[0].message().await.is_none());
}

/// Subscriptions of a client are bounded in number and size.
#[tokio::test]
async fn subscriptions_are_bounded() {
    let scenario = json!({"resources": [{"uri": "test://a", "name": "a", "text": "x"}]});
    let gateway = Gateway::open(workspace(&json!({"files": server(&scenario)})));
    let session = gateway.session(&json!({})).await;
    session.ask("resources/list", &json!({})).await;
    let long = format!("test://{}", "x".repeat(9_000));
    let refused = session.ask("resources/subscribe", &json!({"uri": long})).await;
    assert_eq!(refused["error"]["code"], -32602);
    let watched = json!({"notifications": {"resourceSubscriptions": [long]}});
    let refused = gateway.modern(1, "subscriptions/listen", watched).await.answer().await;
    assert_eq!(refused["error"]["code"], -32602);
}

/// Ids are strings or numbers, in either era.
#[tokio::test]
async fn odd_ids_are_refused() {
    let gateway = Gateway::open(workspace(&json!({})));
    for id in [json!({}), json!([1]), json!(true)] {
        let mut message = modern_request(1, "tools/list", json!({}), &json!({}));
        message["id"] = id;
        let refused = gateway.post(&modern_headers(&message).as_pairs(), &message).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
    }
}
