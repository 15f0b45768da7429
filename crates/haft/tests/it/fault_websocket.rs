//! Faults of a WebSocket: it closes, with and without a close frame, or falls silent.

use std::time::Duration;

use haft::{Code, Runtime, ServerState, ToolCall};
use serde_json::json;
use testkit::Workspace;
use testkit::fixture::{Fixture, Transport, events, messages};

use super::fault_support::{Fault, config, faults, has_all};
use super::support::until;

faults! {
    closes over [websocket]
        Fault::fails(
            json!({"ws": {"close_at_call": 1}}),
            "echo",
            Code::OutcomeUnknown,
            &["server `sick` was lost while `echo` ran", "closed the connection", "1001"],
        )
        .also(|scene| assert_eq!(scene.got("initialize"), 2, "it was connected again"));

    closes_in_a_harmless_call over [websocket]
        Fault::answers(
            json!({"ws": {"close_at_call": 1}, "tools": ["text", {"name": "careful",
                "inputSchema": {"type": "object"}, "behaves": "text",
                "annotations": {"readOnlyHint": true}}]}),
            "careful",
            "plain text",
        )
        .also(|scene| assert_eq!(scene.got("initialize"), 2));

    closes_without_a_goodbye over [websocket]
        Fault::fails(
            json!({"ws": {"close_at_call": 1, "close_abruptly": true}}),
            "echo",
            Code::OutcomeUnknown,
            &["server `sick` was lost while `echo` ran", "without a goodbye"],
        )
        .also(|scene| assert_eq!(scene.got("initialize"), 2, "it was connected again"));

    confirms_no_subprotocol over [websocket]
        Fault::answers(json!({"ws": {"no_subprotocol": true}}), "text", "plain text");
}

/// `connect_timeout` holds over all attempts: who does not answer the handshake is not tried again at once.
#[tokio::test]
async fn a_silent_handshake() {
    let workspace = Workspace::new();
    let facts = workspace.path().join("sick.facts");
    let scenario = json!({"facts": facts, "faults": [{"do": "stall"}]});
    let server = Fixture::serve(Transport::Ws, &scenario);
    let entry = json!({"transport": "websocket", "url": server.url, "connect_timeout": "500ms",
        "reconnect": {"attempts": 3, "base": "10ms"}});
    let runtime =
        Runtime::start(config(&workspace, &json!({"sick": entry}), &json!([]))).await.unwrap();
    runtime.discover().await;
    let sick = runtime.servers().remove(0);
    assert_eq!(sick.state, ServerState::Unavailable);
    has_all(&sick.reason.unwrap(), &["did not answer within 500ms (`connect_timeout`)"]);
    assert_eq!(events(&facts, "http").len(), 1, "one attempt took all of the time");
    runtime.shutdown(Duration::ZERO).await;
}

/// Pending calls fail without a pong, and the connection is made again. The clock is advanced, so
/// that the test does not wait a minute.
#[tokio::test]
async fn no_pong() {
    let workspace = Workspace::new();
    let facts = workspace.path().join("sick.facts");
    let server = Fixture::serve(Transport::Ws, &json!({"facts": facts, "ws": {"no_pong": true}}));
    let entry = json!({"transport": "websocket", "url": server.url, "reconnect": {"base": "20ms"}});
    let tools = json!([{"name": "hang", "timeout": "1h"}]);
    let runtime =
        Runtime::start(config(&workspace, &json!({"sick": entry}), &tools)).await.unwrap();
    let calling = runtime.call(ToolCall::new("hang", &json!({})));
    let clock = async {
        until(|| !messages(&facts, "tools/call").is_empty()).await;
        run_ahead(Duration::from_secs(31)).await;
        until(|| !events(&facts, "ping").is_empty()).await;
        run_ahead(Duration::from_secs(21)).await;
        std::future::pending::<()>().await;
    };
    let envelope = tokio::select! {
        envelope = calling => envelope,
        () = clock => unreachable!(),
    };
    let error = envelope.error.unwrap();
    assert_eq!(error.code, Code::OutcomeUnknown);
    has_all(&error.message, &["server `sick` was lost while `hang` ran", "no ping"]);
    until(|| runtime.servers()[0].state == ServerState::Ready).await;
    assert_eq!(messages(&facts, "initialize").len(), 2);
    runtime.shutdown(Duration::ZERO).await;
}

async fn run_ahead(by: Duration) {
    tokio::time::pause();
    tokio::time::advance(by).await;
    tokio::time::resume();
}
