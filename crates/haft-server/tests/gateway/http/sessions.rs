//! Sessions of the legacy era: opened, bound to their key, ended.

use reqwest::Method;
use serde_json::json;

use super::{Gateway, SESSION, initialize, request};
use crate::served::answer;
use crate::support::{server, workspace};

#[tokio::test]
async fn a_session_begins_with_initialize_and_ends_with_delete() {
    let gateway = Gateway::open(workspace(&json!({})));
    let session = gateway.session(&json!({})).await;
    assert_eq!(session.id.len(), 32);
    assert!(session.id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let list = session.ask("tools/list", &json!({})).await;
    assert_eq!(list["result"]["tools"][0]["name"], "greet");
    let call = json!({"name": "greet", "arguments": {"name": "you"}});
    let greeting = session.ask("tools/call", &call).await;
    assert_eq!(greeting["result"]["structuredContent"]["greeting"], "Hello, you!");
    assert_eq!(session.ask("ping", &json!({})).await["result"], json!({}));

    assert_eq!(session.delete().await, 204);
    let late = session.post(&request(2, "tools/list", &json!({}))).await;
    assert_eq!((late.status, late.json()["id"].clone()), (404, json!(2)));
    assert_eq!(session.delete().await, 404);
    assert_eq!(session.listen(None).await.status, 404);
}

/// A session belongs to the key that opened it; another key cannot even detect that it exists.
#[tokio::test]
async fn a_session_of_another_key_is_refused() {
    let (gateway, [a, b]) = Gateway::with_two_keys(workspace(&json!({})));
    let key = |key: &str| format!("Bearer {key}");
    let (a, b) = (key(&a), key(&b));
    let session = gateway.session_as(&[("authorization", &a)], &json!({})).await;
    assert!(session.ask("tools/list", &json!({})).await["result"].is_object());

    let foreign = [("authorization", &*b), (SESSION, &*session.id)];
    let list = request(1, "tools/list", &json!({}));
    let stolen = gateway.post(&foreign, &list).await;
    let unknown = [("authorization", &*b), (SESSION, "00000000000000000000000000000000")];
    let guessed = gateway.post(&unknown, &list).await;
    assert_eq!((stolen.status, &stolen.text), (404, &guessed.text));
    assert_eq!(gateway.listen(&foreign).await.status, 404);
    let end = gateway.served.request(Method::DELETE, "/mcp");
    let end = foreign.iter().fold(end, |end, (name, value)| end.header(*name, *value));
    assert_eq!(answer(end).await.status, 404);
    // Without a key a request does not get that far.
    assert_eq!(gateway.post(&[(SESSION, &*session.id)], &list).await.status, 401);
    // It is still there for its own key.
    assert!(session.ask("tools/list", &json!({})).await["result"].is_object());
}

#[tokio::test]
async fn an_invalid_message_is_refused_with_the_reason() {
    let gateway = Gateway::open(workspace(&json!({})));
    let post = async |headers: &[(&str, &str)], body: &str| {
        let answer = answer(gateway.request(headers, body)).await;
        (answer.status, answer.json()["error"]["code"].as_i64())
    };
    assert_eq!(post(&[], "{").await, (400, Some(-32700)));
    assert_eq!(post(&[], "[]").await, (400, Some(-32600)));
    assert_eq!(post(&[], r#"{"jsonrpc":"2.0"}"#).await, (400, Some(-32600)));
    let deep =
        format!(r#"{{"id":1,"method":"x","params":{}{}}}"#, "[".repeat(100), "]".repeat(100));
    assert_eq!(post(&[], &deep).await, (400, Some(-32600)));
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert_eq!(post(&[], list).await, (400, Some(-32600)));
    assert_eq!(post(&[("accept", "text/html")], list).await, (406, Some(-32600)));
    assert_eq!(post(&[("content-type", "text/plain")], list).await.0, 415);
    assert_eq!(post(&[(SESSION, "x")], list).await, (404, Some(-32001)));

    let session = gateway.session(&json!({})).await;
    let wrong_version = [(SESSION, &*session.id), ("mcp-protocol-version", "1999-01-01")];
    assert_eq!(post(&wrong_version, list).await, (400, Some(-32600)));
    let no_events =
        gateway.served.request(Method::GET, "/mcp").header("accept", "application/json");
    assert_eq!(answer(no_events).await.status, 406);
    let no_session = gateway.listen(&[]).await;
    assert_eq!(no_session.status, 405);
}

/// A page of another origin, and a name that was pointed at this machine.
#[tokio::test]
async fn foreign_pages_and_names_are_refused() {
    let gateway = Gateway::open(workspace(&json!({})));
    let hello = initialize(&json!({}));
    for (header, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("host", "evil.example"),
        ("host", "evil.example:7300"),
    ] {
        let refused = gateway.post(&[(header, value)], &hello).await;
        assert_eq!(refused.status, 403, "{header}: {value}");
        assert_eq!(refused.header(SESSION), "");
    }
    let own = gateway.served.url.clone();
    assert_eq!(gateway.post(&[("origin", &own)], &hello).await.status, 200);
}

/// The id of a request is its client's own: what two clients choose alike are two requests, and one
/// client cannot have the same one twice at the same time.
#[tokio::test]
async fn an_id_in_flight_is_not_taken_twice() {
    let gateway = Gateway::open(workspace(&json!({"files": server(&json!({"tools": ["hang"]}))})));
    let session = gateway.session(&json!({})).await;
    session.ask("tools/list", &json!({})).await;
    let call = json!({"name": "hang", "arguments": {}, "_meta": {"progressToken": 1}});
    let hanging = session.course(7, "tools/call", &call).await;
    assert!(hanging.is_stream());
    let again = session.post(&request(7, "ping", &json!({}))).await;
    assert_eq!((again.status, again.json()["error"]["code"].clone()), (400, json!(-32600)));
    let other = gateway.session(&json!({})).await;
    assert_eq!(other.course(7, "ping", &json!({})).await.answer().await["result"], json!({}));
    drop(hanging);
}
