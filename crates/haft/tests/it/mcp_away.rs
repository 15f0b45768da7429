//! Calls of tools whose server is unreachable.

use std::time::Duration;

use haft::{Code, Envelope, Runtime, ToolCall};
use serde_json::{Value, json};

use super::mcp_support::{Stage, call, failure};

/// A toolbox whose server `far` had its tools in an earlier run and cannot be started now.
async fn toolbox(stage: &Stage, settings: Value, rest: Value) -> Runtime {
    let scenario = json!({"tools": ["echo", "stats", "text"]});
    let first = stage.start([stage.stdio("far", scenario, json!({}))], json!({})).await;
    first.shutdown(Duration::ZERO).await;
    let gone = json!({"command": "nope-not-here", "reconnect": {"attempts": 0}});
    stage.start([("far", super::mcp_support::with(gone, settings))], rest).await
}

/// The result for the caller, without the parts that differ between calls.
fn told(envelope: &Envelope, name: &str) -> String {
    let error = envelope.error.as_ref().unwrap();
    format!("{:?} {} {:?} {}", error.code, error.message, error.remedy, error.details)
        .replace(name, "NAME")
}

/// Proves S3-US5-2, S3-FR-023: the error names the server, and not an unknown tool.
#[tokio::test]
async fn a_tool_of_a_server_that_cannot_be_reached_is_unavailable() {
    let stage = Stage::new();
    let runtime = toolbox(&stage, json!({}), json!({})).await;
    for name in ["echo", "far__echo"] {
        let envelope = call(&runtime, name, json!({})).await;
        let (code, message) = failure(&envelope);
        assert_eq!(code, Code::ServiceUnavailable, "{message}");
        assert!(
            message.starts_with("MCP error: server `far` is no longer available: "),
            "{message}"
        );
    }
    assert_eq!(failure(&call(&runtime, "nothing", json!({})).await).0, Code::UnknownTool);
}

/// A tool that the configuration leaves out stays unknown, whether its server is there or not.
#[tokio::test]
async fn a_tool_that_would_not_be_registered_stays_unknown() {
    for (settings, rest) in [
        (json!({"tool_denylist": ["stats"]}), json!({})),
        (json!({"tool_allowlist": ["echo"]}), json!({})),
        (json!({"mode": "strict"}), json!({"tools": [{"name": "echo"}]})),
        (json!({}), json!({"tools": [{"name": "stats", "mcp": "far", "mode": "strict"}]})),
    ] {
        let stage = Stage::new();
        let runtime = toolbox(&stage, settings.clone(), rest).await;
        let denied = call(&runtime, "stats", json!({})).await;
        let unknown = call(&runtime, "nothing", json!({})).await;
        assert_eq!(told(&denied, "stats"), told(&unknown, "nothing"), "{settings}");
        assert_eq!(failure(&call(&runtime, "echo", json!({})).await).0, Code::ServiceUnavailable);
    }
    let stage = Stage::new();
    let runtime = toolbox(&stage, json!({"tool_prefix": "server"}), json!({})).await;
    assert_eq!(failure(&call(&runtime, "echo", json!({})).await).0, Code::UnknownTool);
    let prefixed = call(&runtime, "far__echo", json!({})).await;
    assert_eq!(failure(&prefixed).0, Code::ServiceUnavailable);
}

/// A caller that may not see a tool cannot distinguish it from one that does not exist.
#[tokio::test]
async fn a_hidden_tool_of_an_unreachable_server_looks_unknown() {
    let stage = Stage::new();
    let runtime = toolbox(&stage, json!({}), json!({})).await;
    let ask = async |name: &str| {
        let call = ToolCall::new(name, &json!({}));
        runtime.call(call.visible_tools(|_, tool| tool == "echo")).await
    };
    assert_eq!(failure(&ask("echo").await).0, Code::ServiceUnavailable);
    let (hidden, unknown) = (ask("stats").await, ask("nothing").await);
    assert_eq!(told(&hidden, "stats"), told(&unknown, "nothing"));
    assert_eq!(failure(&hidden).0, Code::UnknownTool);
}
