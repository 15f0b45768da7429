//! Both eras of the protocol behave alike, and either is found.

use haft::{Code, ServerState, Status};
use serde_json::{Value, json};

use super::mcp_support::{Stage, answer, call, failure, names};
use super::support::until;

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// The version that is spoken with a server of an era under a setting.
async fn spoken(era: &str, protocol: &str) -> Option<String> {
    let stage = Stage::new();
    let settings =
        json!({"protocol": protocol, "reconnect": {"attempts": 0}, "connect_timeout": "2s"});
    let server = stage.stdio("one", json!({"era": era, "tools": ["echo"]}), settings);
    let runtime = stage.start([server], json!({})).await;
    let info = runtime.servers().remove(0);
    if info.state == ServerState::Ready {
        assert_eq!(answer(&runtime, "echo", json!({"n": 1})).await, json!({"n": 1}));
    }
    info.server.map(|server| server.protocol_version)
}

/// Proves S0-25, S0-31 for both eras: found by itself, or as configured; what does not fit is
/// unavailable.
#[tokio::test]
async fn either_era_is_found_or_chosen() {
    let cases = [
        ("legacy", "auto", Some(LEGACY)),
        ("modern", "auto", Some(MODERN)),
        ("both", "legacy", Some(LEGACY)),
        ("both", "modern", Some(MODERN)),
        ("legacy", "legacy", Some(LEGACY)),
        ("modern", "modern", Some(MODERN)),
        ("legacy", "modern", None),
        ("modern", "legacy", None),
    ];
    for (era, protocol, version) in cases {
        assert_eq!(spoken(era, protocol).await.as_deref(), version, "{era} with {protocol}");
    }
}

/// A legacy server that exits on any request before `initialize` connects nevertheless.
#[tokio::test]
async fn a_touchy_legacy_server_connects() {
    let stage = Stage::new();
    let scenario = json!({"exit_before_initialize": true, "tools": ["echo"]});
    let runtime =
        stage.start([stage.stdio("one", scenario, json!({"protocol": "auto"}))], json!({})).await;
    assert_eq!(runtime.servers()[0].state, ServerState::Ready);
    assert_eq!(stage.starts("one"), 1);
    assert_eq!(answer(&runtime, "echo", json!({})).await, json!({}));
}

/// Proves S3-FR-002 for the modern era: discovery once, no handshake, and what each request must
/// carry; S1-4: one process for all calls.
#[tokio::test]
async fn a_modern_server_gets_what_its_era_wants() {
    let stage = Stage::new();
    let scenario = json!({"era": "modern", "tools": ["echo"], "page_size": 1});
    let runtime =
        stage.start([stage.stdio("one", scenario, json!({"protocol": "modern"}))], json!({})).await;
    for n in 0..20 {
        assert_eq!(answer(&runtime, "echo", json!({ "n": n })).await, json!({ "n": n }));
    }
    assert_eq!(stage.starts("one"), 1);
    let methods = stage.methods("one");
    assert_eq!(methods[0], "server/discover");
    assert_eq!(methods.iter().filter(|it| *it == "server/discover").count(), 1);
    assert!(!methods.iter().any(|it| it == "initialize" || it == "notifications/initialized"));
    for call in stage.messages("one", "tools/call") {
        let meta = &call["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], json!(MODERN));
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
    }
}

/// Proves S0-26, S0-31, S3-US4-1 for the modern era: every page.
#[tokio::test]
async fn a_modern_servers_pages_are_all_fetched() {
    let stage = Stage::new();
    let scenario = json!({"era": "modern", "tools": 7, "page_size": 2});
    let runtime = stage.start([stage.stdio("one", scenario, json!({}))], json!({})).await;
    assert_eq!(names(&runtime).len(), 7);
}

/// Proves S3-US4-4, S3-FR-016 for the modern era: changes arrive over the held subscription.
#[tokio::test]
async fn a_modern_servers_lists_are_refreshed() {
    let stage = Stage::new();
    let runtime =
        stage.start([stage.stdio("one", json!({"era": "modern"}), json!({}))], json!({})).await;
    until(|| !stage.messages("one", "subscriptions/listen").is_empty()).await;
    call(&runtime, "add_tool", json!({"name": "fresh"})).await;
    until(|| runtime.tool("fresh").is_some()).await;
    call(&runtime, "remove_tool", json!({"name": "fresh"})).await;
    until(|| runtime.tool("fresh").is_none()).await;
    call(&runtime, "add_prompt", json!({"name": "fresh"})).await;
    until(|| runtime.prompts().iter().any(|prompt| prompt.name == "fresh")).await;
}

/// Calls, failures and crashes read the same in both eras.
#[tokio::test]
async fn outcomes_are_the_same_in_both_eras() {
    let mut seen: Vec<Vec<Value>> = Vec::new();
    for era in ["legacy", "modern"] {
        let stage = Stage::new();
        let settings = json!({"protocol": era, "reconnect": {"attempts": 0}});
        let tools = json!({"tools": [{"name": "hang", "timeout": "200ms"}]});
        let runtime =
            stage.start([stage.stdio("one", json!({ "era": era }), settings)], tools).await;
        let mut outcomes = Vec::new();
        for tool in [
            "text",
            "every_content",
            "fail",
            "rpc_error",
            "bad_structured",
            "hang",
            "crash",
            "text",
        ] {
            let envelope = call(&runtime, tool, json!({})).await;
            if tool == "hang" {
                until(|| stage.messages("one", "notifications/cancelled").len() == 1).await;
            }
            outcomes.push(json!([tool, envelope.status, envelope.content, envelope.error]));
        }
        assert_eq!(failure(&call(&runtime, "text", json!({})).await).0, Code::ServiceUnavailable);
        seen.push(outcomes);
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0][0][1], json!(Status::Success));
}
