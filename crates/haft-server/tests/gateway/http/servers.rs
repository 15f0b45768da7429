//! The servers behind the gateway, seen over HTTP: all of their tools, through their deaths, to the end.

use serde_json::{Value, json};
use testkit::fixture::events;
use testkit::{eventually, is_running};

use super::{Gateway, Session};
use crate::support::{server, workspace};

async fn all_tools(session: &Session<'_>) -> Vec<Value> {
    let (mut tools, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let params = cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
        let page = session.ask("tools/list", &params).await;
        tools.extend(page["result"]["tools"].as_array().unwrap().iter().cloned());
        cursor = page["result"]["nextCursor"].as_str().map(ToOwned::to_owned);
        if cursor.is_none() {
            return tools;
        }
    }
}

/// Proves S3-SC-008, S1-1: one tool, fifty and five hundred, in pages there and here, beside a local one.
#[tokio::test]
async fn every_tool_of_every_server_is_listed_and_can_be_called() {
    for count in [1, 50, 500] {
        let many = server(&json!({"tools": count, "page_size": 7}));
        let gateway = Gateway::open(workspace(&json!({"many": many})));
        let session = gateway.session(&json!({})).await;
        let tools = all_tools(&session).await;
        assert_eq!(tools.len(), count + 1);
        assert_eq!(tools[0]["name"], "greet");
        let last = tools.last().unwrap()["name"].clone();
        let called = session.ask("tools/call", &json!({"name": last, "arguments": {}})).await;
        assert!(called["result"]["content"].is_array(), "{called}");
    }
}

/// Proves S0-53, S0-22 through the gateway: each tool shows its source and its settings, and local tools are
/// registered first.
#[tokio::test]
async fn a_tool_shows_its_registration() {
    let workspace = workspace(&json!({}));
    let mut files = server(&json!({"tools": ["echo", "text"]}));
    files["default_tool_config"] = json!({"max_instances": 7});
    let config = json!({
        "registry": {"dir": "tools"},
        "servers": {"files": files},
        "tools": [{"name": "text", "mcp": "files", "timeout": "5s"}],
    });
    workspace.write("haft.json", config.to_string());
    let gateway = Gateway::open(workspace);
    let session = gateway.session(&json!({})).await;
    let tools = all_tools(&session).await;
    let registered = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["_meta"]["haft/registration"].clone()
    };
    let mcp = |origin: &str, timeout: &str| {
        json!({
            "source": "mcp", "mcp_name": "files", "mcp_mode": "dynamic",
            "config_origin": origin, "max_instances": 7, "timeout": timeout,
        })
    };
    assert_eq!(registered("echo"), mcp("default", "60s"));
    assert_eq!(registered("text"), mcp("merged", "5s"));
    assert_eq!(registered("greet")["source"], "local");
    assert_eq!(tools[0]["name"], "greet");
}

/// Proves S3-SC-006: one of three servers dies, and the tools of the others continue.
#[tokio::test]
async fn a_server_that_dies_leaves_the_others_at_work() {
    let own =
        |name: &str| json!({"name": name, "behaves": "echo", "inputSchema": {"type": "object"}});
    let gateway = Gateway::open(workspace(&json!({
        "one": server(&json!({"tools": [own("one")]})),
        "two": server(&json!({"tools": ["crash"]})),
        "three": server(&json!({"tools": [own("three")]})),
    })));
    let session = gateway.session(&json!({})).await;
    assert_eq!(all_tools(&session).await.len(), 4);
    let call = async |tool: &str| {
        let answer = session.ask("tools/call", &json!({"name": tool, "arguments": {}})).await;
        answer["result"]["isError"].as_bool().unwrap_or(false)
    };
    assert!(call("crash").await);
    assert!(!call("one").await);
    assert!(!call("three").await);
}

/// Proves S1-5: SIGTERM ends the service in order although a client listens and a call hangs, and leaves no
/// process behind.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_when_the_service_ends() {
    let workspace = workspace(&json!({}));
    let facts = workspace.path().join("facts");
    let config = json!({
        "servers": {"files": server(&json!({"tools": ["hang"], "facts": facts}))},
        "api": {"shutdown_grace": "1s"},
    });
    workspace.write("haft.json", config.to_string());
    let gateway = Gateway::open(workspace);
    let session = gateway.session(&json!({})).await;
    assert_eq!(all_tools(&session).await.len(), 1);
    let pid = eventually("the server starts", || events(&facts, "start").first()?["pid"].as_u64());
    let mut notifications = session.listen(None).await;
    let hang = json!({"name": "hang", "arguments": {}});
    let mut course = session.course(1, "tools/call", &hang).await;
    assert!(course.is_stream());
    gateway.served.terminate();
    // The call gets an error; the notification stream just ends.
    let answer = course.answer().await;
    assert!(answer["result"]["isError"] == true, "{answer}");
    // Earlier changes may still be notified.
    while let Some(notifications) = notifications.message().await {
        assert!(
            notifications["method"].as_str().unwrap_or_default().ends_with("/list_changed"),
            "{notifications}"
        );
    }
    let Gateway { mut served } = gateway;
    let finished = served.ended();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(!is_running(u32::try_from(pid).unwrap()));
}
