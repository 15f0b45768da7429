//! Concurrency and time limits of calls to a server.

use std::time::Duration;

use haft::{Code, Envelope, Runtime, Status, ToolCall};
use serde_json::{Value, json};

use super::mcp_support::{Stage, answer, call, failure};
use super::support::spawn;

/// Makes `count` concurrent calls of `sleep`.
async fn sleep_at_once(runtime: &Runtime, count: usize, ms: u64) -> Vec<Envelope> {
    let calls = (0..count).map(|_| ToolCall::new("sleep", &json!({ "ms": ms })));
    spawn(runtime, calls).join_all().await
}

async fn most_in_flight(runtime: &Runtime) -> Value {
    answer(runtime, "stats", json!({})).await["in_flight_max"].clone()
}

fn succeeded(envelopes: &[Envelope]) -> usize {
    envelopes.iter().filter(|it| it.status == Status::Success).count()
}

/// Proves S3-Q-03, S3-EC-2, X-9: five calls are with the server at the same time.
#[tokio::test]
async fn calls_of_one_server_run_in_parallel() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let envelopes = sleep_at_once(&runtime, 5, 300).await;
    assert_eq!(succeeded(&envelopes), 5);
    assert_eq!(most_in_flight(&runtime).await, json!(5));
    assert_eq!(stage.starts("one"), 1);
}

/// Proves S0-7, X-10: thirty calls, never more than ten with the server; those that waited report
/// how long.
#[tokio::test]
async fn the_toolbox_limit_holds_for_servers() {
    let stage = Stage::new();
    let rest = json!({
        "defaults": {"max_concurrent": 10},
        "tools": [{"name": "sleep", "max_instances": 30, "timeout": "10s"}],
    });
    let runtime = stage.start([stage.plain("one")], rest).await;
    let envelopes = sleep_at_once(&runtime, 30, 200).await;
    assert_eq!(succeeded(&envelopes), 30);
    assert_eq!(most_in_flight(&runtime).await, json!(10));
    assert_eq!(envelopes.iter().filter(|it| it.queued_ms >= 100).count(), 20);
    let logged = stage.logged();
    assert!(logged.iter().filter(|entry| entry.queued_ms >= 100).count() == 20);
}

/// Proves S0-8, X-10: six calls, two at a time; waiting is not counted against the timeout.
#[tokio::test]
async fn the_tools_own_limit_holds_and_waiting_costs_no_time() {
    let stage = Stage::new();
    let tools = json!({"tools": [{"name": "sleep", "max_instances": 2, "timeout": "500ms"}]});
    let runtime = stage.start([stage.plain("one")], tools).await;
    let envelopes = sleep_at_once(&runtime, 6, 300).await;
    assert_eq!(succeeded(&envelopes), 6, "the last ones waited longer than their timeout");
    assert_eq!(most_in_flight(&runtime).await, json!(2));
    assert!(envelopes.iter().any(|it| it.queued_ms >= 550), "two rounds of waiting");
}

/// Proves X-9: `parallel_capable: false` is one at a time.
#[tokio::test]
async fn a_tool_may_be_kept_to_one_call_at_a_time() {
    let stage = Stage::new();
    let tools = json!({"tools": [{"name": "sleep", "parallel_capable": false}]});
    let runtime = stage.start([stage.plain("one")], tools).await;
    assert_eq!(succeeded(&sleep_at_once(&runtime, 3, 50).await), 3);
    assert_eq!(most_in_flight(&runtime).await, json!(1));
}

/// Proves X-10: `on_limit: reject` answers `Busy` at once, and the server never sees the call.
#[tokio::test]
async fn a_full_tool_may_reject_at_once() {
    let stage = Stage::new();
    let tools = json!({"tools": [{"name": "sleep", "max_instances": 1, "on_limit": "reject"}]});
    let runtime = stage.start([stage.plain("one")], tools).await;
    let envelopes = sleep_at_once(&runtime, 3, 300).await;
    assert_eq!(succeeded(&envelopes), 1);
    let busy = envelopes.iter().filter(|it| it.status == Status::Error);
    assert!(busy.map(failure).all(|(code, _)| code == Code::Busy));
    assert_eq!(stage.messages("one", "tools/call").len(), 1);
}

/// Proves X-6, S0-9, S3-US5-4: the tool's own time wins over the server's default, which wins over
/// `request_timeout`; each text names the one that held.
#[tokio::test]
async fn the_nearest_timeout_holds() {
    let stage = Stage::new();
    let tools = ["own", "default"]
        .map(|name| json!({"name": name, "inputSchema": {"type": "object"}, "behaves": "hang"}));
    let slow = json!({"name": "slow", "inputSchema": {"type": "object"}, "behaves": "sleep"});
    let scenario = json!({"tools": [tools[0], tools[1], slow]});
    let server = stage.stdio(
        "one",
        scenario,
        json!({"request_timeout": "100ms", "default_tool_config": {"timeout": "200ms"}}),
    );
    let last =
        json!({"tools": [{"name": "last", "inputSchema": {"type": "object"}, "behaves": "hang"}]});
    let last = stage.stdio("two", last, json!({"request_timeout": "150ms"}));
    let tools = json!({"tools": [{"name": "own", "timeout": "PT0.3S"}, {"name": "slow", "timeout": "P0DT0H0M30S"}]});
    let runtime = stage.start([server, last], tools).await;
    for (tool, limit) in [("own", "300ms"), ("default", "200ms"), ("last", "150ms")] {
        let envelope = call(&runtime, tool, json!({})).await;
        let expected = format!("MCP error: `{tool}` gave no answer within {limit} and was stopped");
        assert_eq!(failure(&envelope), (Code::Timeout, expected.as_str()));
    }
    // Three times `request_timeout`: the longer time of the tool itself is what counts.
    assert_eq!(call(&runtime, "slow", json!({"ms": 300})).await.status, Status::Success);
    let defaults = runtime.tool("slow").unwrap();
    assert_eq!(defaults.setting("timeout"), Some(&json!("30s")));
}

/// Proves S3-Q-01, X-6: sixty seconds by default.
#[tokio::test]
async fn the_default_request_timeout_is_a_minute() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    assert_eq!(runtime.tool("echo").unwrap().setting("timeout"), Some(&json!("60s")));
}

/// A cancelled call frees its slot, and the server is notified.
#[tokio::test]
async fn cancellation_notifies_the_server_and_frees_the_slot() {
    let stage = Stage::new();
    let tools = json!({"tools": [{"name": "hang", "max_instances": 1}, {"name": "sleep", "max_instances": 1}]});
    let runtime = stage.start([stage.plain("one")], tools).await;
    for _ in 0..3 {
        let hanging = call(&runtime, "hang", json!({}));
        assert!(tokio::time::timeout(Duration::from_millis(100), hanging).await.is_err());
    }
    super::support::until(|| stage.messages("one", "notifications/cancelled").len() == 3).await;
    let codes: Vec<_> = stage.logged().iter().map(|it| it.error.as_ref().unwrap().code).collect();
    assert_eq!(codes, [Code::Cancelled; 3]);
}
