//! The era without sessions: every request identifies its sender, in its body and in its headers.

use serde_json::{Value, json};
use testkit::eventually;
use testkit::fixture::messages;

use super::{Gateway, modern_headers, modern_request};
use crate::support::{server, workspace};

#[tokio::test]
async fn a_request_needs_nothing_before_it() {
    let gateway = Gateway::open(workspace(&json!({})));
    let params = json!({"name": "greet", "arguments": {"name": "you"}});
    let answer = gateway.modern(1, "tools/call", params).await.answer().await;
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["structuredContent"]["greeting"], "Hello, you!");
    let list = gateway.modern(1, "tools/list", json!({})).await.answer().await;
    assert_eq!(list["result"]["cacheScope"], "private");
    let about = gateway.modern(1, "server/discover", json!({})).await.answer().await;
    assert_eq!(about["result"]["supportedVersions"][0], "2026-07-28");
}

/// Proxies decide by the headers, so a contradicting header is refused.
#[tokio::test]
async fn headers_and_body_agree() {
    let gateway = Gateway::open(workspace(&json!({
        "files": server(&json!({"tools": ["header_param"]})),
    })));
    gateway.modern(1, "tools/list", json!({})).await.answer().await;
    let call = |arguments: Value| {
        modern_request(
            3,
            "tools/call",
            json!({"name": "header_param", "arguments": arguments}),
            &json!({}),
        )
    };
    let region = call(json!({"region": "north"}));
    let send = async |message: &Value, change: &[(&str, Option<&str>)]| {
        let headers = modern_headers(message);
        let mut headers = headers.as_pairs();
        headers.retain(|(name, _)| !change.iter().any(|(changed, _)| changed == name));
        headers.extend(change.iter().filter_map(|(name, value)| Some((*name, (*value)?))));
        let answer = gateway.post(&headers, message).await;
        let json = answer.json();
        assert_eq!(json["id"], 3, "{json}");
        (answer.status, json["error"]["code"].as_i64())
    };
    let good = ("mcp-param-region", Some("north"));
    assert_eq!(send(&region, &[good]).await, (200, None));
    assert_eq!(
        send(&region, &[("mcp-param-region", Some("=?base64?bm9ydGg=?="))]).await,
        (200, None)
    );
    for wrong in [
        vec![],
        vec![("mcp-param-region", Some("south"))],
        vec![good, ("mcp-method", Some("tools/list"))],
        vec![good, ("mcp-method", None)],
        vec![good, ("mcp-name", Some("other"))],
        vec![good, ("mcp-name", None)],
        vec![good, ("mcp-protocol-version", Some("2025-11-25"))],
    ] {
        assert_eq!(send(&region, &wrong).await, (400, Some(-32020)), "{wrong:?}");
    }
    assert_eq!(send(&call(json!({})), &[good]).await, (400, Some(-32020)));

    let mut foreign = modern_request(3, "tools/list", json!({}), &json!({}));
    foreign["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let future = [("mcp-protocol-version", Some("2099-01-01"))];
    assert_eq!(send(&foreign, &future).await, (400, Some(-32022)));
    let unknown = modern_request(3, "no/such", json!({}), &json!({}));
    assert_eq!(send(&unknown, &[]).await, (404, Some(-32601)));
    let mut nameless = modern_request(3, "tools/list", json!({}), &json!({}));
    nameless["params"] = json!({});
    assert_eq!(send(&nameless, &[]).await, (400, Some(-32602)));
}

/// Closing the answer cancels the request at the server behind.
#[tokio::test(flavor = "multi_thread")]
async fn closing_the_answer_cancels_the_request() {
    let workspace = workspace(&json!({}));
    let facts = workspace.path().join("facts");
    let servers = json!({"files": server(&json!({"tools": ["hang", "progress"], "facts": facts}))});
    workspace.write("haft.json", json!({"servers": servers}).to_string());
    let gateway = Gateway::open(workspace);
    gateway.modern(1, "tools/list", json!({})).await.answer().await;
    let hanging = gateway.modern(1, "tools/call", json!({"name": "hang", "arguments": {}})).await;
    assert!(hanging.is_stream());
    drop(hanging);
    eventually("the call is cancelled", || {
        (messages(&facts, "notifications/cancelled").len() == 1).then_some(())
    });
    eventually("the log has it", || {
        let log = gateway.served.log();
        log.iter().any(|entry| entry["error"]["code"] == "Cancelled").then_some(())
    });
}

/// A subscriber receives the subscribed notifications, and no others.
#[tokio::test]
async fn a_subscription_sends_what_it_was_asked_for() {
    let scenario = json!({
        "tools": ["add_tool", "add_prompt", "update_resource"],
        "prompts": [{"name": "first"}],
        "resources": [{"uri": "test://a", "name": "a", "text": "x"}],
    });
    // If several servers have resources, an unlisted one belongs to none.
    let other = json!({"tools": [], "prompts": [], "resources": [], "templates": []});
    let gateway = Gateway::open(workspace(&json!({
        "files": server(&scenario), "other": server(&other),
    })));
    gateway.modern(1, "resources/list", json!({})).await.answer().await;
    let wanted = json!({
        "promptsListChanged": true,
        "resourceSubscriptions": ["test://a", "other://nobody"],
    });
    let mut notifications =
        gateway.modern(77, "subscriptions/listen", json!({"notifications": wanted})).await;
    let hello = notifications.message().await.unwrap();
    assert_eq!(hello["method"], "notifications/subscriptions/acknowledged");
    let accepted = json!({"promptsListChanged": true, "resourceSubscriptions": ["test://a"]});
    assert_eq!(hello["params"]["notifications"], accepted);
    let call = async |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = gateway.modern(2, "tools/call", params).await.answer().await;
        assert!(answer["result"].is_object(), "{answer}");
    };
    call("add_tool", json!({"name": "new"})).await;
    call("add_prompt", json!({"name": "new"})).await;
    call("update_resource", json!({"uri": "test://a"})).await;
    let mut methods = Vec::new();
    for _ in 0..2 {
        let message = notifications.message().await.unwrap();
        let meta = &message["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], 77, "{message}");
        methods.push(message["method"].as_str().unwrap().to_owned());
    }
    methods.sort_unstable();
    let expected = ["notifications/prompts/list_changed", "notifications/resources/updated"];
    assert_eq!(methods, expected);
}
