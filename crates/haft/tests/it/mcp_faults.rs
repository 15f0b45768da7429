//! Servers that crash, hang, send invalid data or fall silent: the error for the caller, and the
//! isolation of everything else.

use std::time::Duration;

use haft::{Code, ServerState, StartError, Status};
use serde_json::{Value, json};
use testkit::LogCapture;

use super::mcp_support::{Stage, answer, call, failure, kill};
use super::support::until;

/// Proves S1-18, S1-20, S3-US5-2, S3-FR-023: a crash in the middle is `OutcomeUnknown` and is not
/// retried; with `attempts: 0` the next use reports that the server is gone. Its last output is
/// reported to the failed call and to the operator.
#[tokio::test]
async fn a_crash_during_a_call_is_an_unknown_outcome() {
    let stage = Stage::new();
    let scenario = json!({"start": {"stderr": "the disk is full\n"}});
    let server = stage.stdio("one", scenario, json!({"reconnect": {"attempts": 0}}));
    let runtime = stage
        .start([server, stage.stdio("two", json!({"tools": ["annotated"]}), json!({}))], json!({}))
        .await;
    let crashed = call(&runtime, "crash", json!({})).await;
    let (code, message) = failure(&crashed);
    assert_eq!(code, Code::OutcomeUnknown);
    assert!(message.starts_with("MCP error: server `one` was lost while `crash` ran"), "{message}");
    let died = crashed.error.as_ref().unwrap();
    assert_eq!(died.details["stderr"], json!("the disk is full"));
    let next = call(&runtime, "echo", json!({})).await;
    let (code, message) = failure(&next);
    assert_eq!(code, Code::ServiceUnavailable);
    assert!(message.starts_with("MCP error: server `one` is no longer available: "), "{message}");
    let error = next.error.as_ref().unwrap();
    assert_eq!(error.details, json!({"server": "one"}));
    assert!(!message.contains("the disk is full"), "{message}");
    let reason = runtime.servers()[0].reason.clone().unwrap();
    assert!(reason.ends_with("; its last words: the disk is full"), "{reason}");
    assert!(error.remedy.as_ref().unwrap().to_string().contains("the state of the server `one`"));
    let neighbour = call(&runtime, "two__annotated", json!({})).await;
    assert_eq!(neighbour.status, Status::Success, "of `two`");
    assert_eq!(stage.messages("one", "tools/call").len(), 1, "nothing was repeated");
}

/// Proves S1-21, X-3: with `attempts: 0` there is no second process, whatever the number of calls.
#[tokio::test]
async fn without_reconnection_a_dead_server_stays_dead() {
    let stage = Stage::new();
    let server = stage.stdio("one", json!({}), json!({"reconnect": {"attempts": 0}}));
    let runtime = stage.start([server], json!({})).await;
    kill(stage.pids("one")[0]);
    until(|| runtime.servers()[0].state == ServerState::Unavailable).await;
    for _ in 0..5 {
        assert_eq!(failure(&call(&runtime, "text", json!({})).await).0, Code::ServiceUnavailable);
    }
    assert_eq!(stage.starts("one"), 1);
}

/// A call with an unknown outcome is sent again if the server declares it read-only or idempotent;
/// never otherwise.
#[tokio::test]
async fn only_harmless_calls_are_sent_again() {
    for (hint, sent) in [("readOnlyHint", 2), ("idempotentHint", 2), ("openWorldHint", 1)] {
        let stage = Stage::new();
        // Each process answers one call and dies in the next.
        let scenario = json!({"crash_after_calls": 1, "tools": [
            "text", {"name": "careful", "inputSchema": {"type": "object"}, "annotations": {hint: true}},
        ]});
        let runtime = stage.start([stage.stdio("one", scenario, json!({}))], json!({})).await;
        call(&runtime, "text", json!({})).await;
        let careful = call(&runtime, "careful", json!({"n": 1})).await;
        let calls = stage.messages("one", "tools/call");
        let careful_calls = calls.iter().filter(|it| it["params"]["name"] == "careful").count();
        assert_eq!(careful_calls, sent, "{hint}");
        match sent {
            2 => assert_eq!(careful.status, Status::Success, "{hint}"),
            _ => assert_eq!(failure(&careful).0, Code::OutcomeUnknown, "{hint}"),
        }
    }
}

/// The operator's file has the last word on whether a call is repeated: its hints stand in place of the
/// server's, key by key.
#[tokio::test]
async fn the_operators_hints_decide_on_repeats() {
    for (servers, files, sent) in [
        (json!({}), json!({"idempotentHint": true}), 2),
        (json!({}), json!({"readOnlyHint": true}), 2),
        (json!({"readOnlyHint": true}), json!({"readOnlyHint": false}), 1),
        (json!({"readOnlyHint": true}), json!({"openWorldHint": true}), 2),
        (json!({"idempotentHint": true}), json!({"readOnlyHint": false}), 2),
    ] {
        let stage = Stage::new();
        let scenario = json!({"crash_after_calls": 1, "tools": [
            "text", {"name": "careful", "inputSchema": {"type": "object"}, "annotations": servers},
        ]});
        let entry = json!({"tools": [{"name": "careful", "mcp": "one", "annotations": files}]});
        let runtime = stage.start([stage.stdio("one", scenario, json!({}))], entry).await;
        call(&runtime, "text", json!({})).await;
        let careful = call(&runtime, "careful", json!({"n": 1})).await;
        let calls = stage.messages("one", "tools/call");
        let careful_calls = calls.iter().filter(|it| it["params"]["name"] == "careful").count();
        assert_eq!(careful_calls, sent, "{servers} {files}");
        let expected = if sent == 2 { Status::Success } else { Status::Error };
        assert_eq!(careful.status, expected, "{servers} {files}");
    }
}

/// Proves S3-US5-4, S0-9, S2-Q-06: cancelled at the tool's own timeout, which the message names;
/// the server is notified and the connection stays open.
#[tokio::test]
async fn a_slow_call_is_cancelled_and_the_server_is_notified() {
    let stage = Stage::new();
    let tools = json!({"tools": [{"name": "hang", "timeout": "PT0.2S"}]});
    let runtime = stage.start([stage.plain("one")], tools).await;
    let slow = call(&runtime, "hang", json!({})).await;
    assert_eq!(
        failure(&slow),
        (Code::Timeout, "MCP error: `hang` gave no answer within 200ms and was stopped")
    );
    until(|| !stage.messages("one", "notifications/cancelled").is_empty()).await;
    let request = stage.messages("one", "tools/call").remove(0);
    let cancelled = stage.messages("one", "notifications/cancelled").remove(0);
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    assert_eq!(answer(&runtime, "echo", json!({"n": 1})).await, json!({"n": 1}));
    assert_eq!(stage.starts("one"), 1);
}

/// Proves S3-FR-012: a list that never comes ends the attempt within `request_timeout`, a prompt
/// likewise; both name the time.
#[tokio::test]
async fn the_request_timeout_holds_for_lists_and_prompts() {
    let stage = Stage::new();
    let settings = || json!({"request_timeout": "200ms", "on_connect_failure": "exit", "reconnect": {"attempts": 0}});
    let server = stage.stdio("one", json!({"silent_on": ["tools/list"]}), settings());
    let Err(error @ StartError::Connect { .. }) = stage.builder([server], json!({})).start().await
    else {
        panic!("started")
    };
    let text = error.to_string();
    assert!(text.contains("`tools/list`") && text.contains("200ms"), "{text}");
    let server = stage.stdio("two", json!({"silent_on": ["prompts/get"]}), settings());
    let runtime = stage.start([server], json!({})).await;
    let empty = serde_json::value::RawValue::from_string("{}".into()).unwrap();
    let error = runtime.prompt("two", "plain", &empty).await.unwrap_err().to_string();
    assert_eq!(error, "MCP error: server `two` was silent for 200ms");
}

/// Proves S3-EC-6, S3-US5-T: an exit before `initialize`, silence, and an error there each fail
/// soon, with the reason and the last output.
#[tokio::test]
async fn a_failed_handshake_says_why() {
    let cases = [
        (
            json!({"start": {"stderr": "no licence\n", "exit": 3}}),
            vec!["exit code 3", "no licence"],
        ),
        (json!({"exit_on": {"initialize": 4}}), vec!["exit code 4"]),
        (
            json!({"start": {"hang": true, "stderr": "loading\n"}}),
            vec!["did not answer within 500ms", "`connect_timeout`", "loading"],
        ),
        (
            json!({"errors_on": {"initialize": {"code": -32000, "message": "not today"}}}),
            vec!["not today"],
        ),
        (json!({"protocol_versions": ["1999-01-01"]}), vec!["`1999-01-01`"]),
    ];
    for (scenario, expected) in cases {
        let stage = Stage::new();
        let settings = json!({
            "connect_timeout": "500ms", "on_connect_failure": "exit", "reconnect": {"attempts": 0},
        });
        let server = stage.stdio("one", scenario.clone(), settings);
        let refused = stage.builder([server], json!({})).start().await;
        let Err(error @ StartError::Connect { .. }) = refused else { panic!("started {scenario}") };
        let text = error.to_string();
        for part in expected {
            assert!(text.contains(part), "`{part}` in: {text}");
        }
        for pid in stage.pids("one") {
            until(|| !testkit::is_running(pid)).await;
        }
    }
}

/// Proves S3-US5-T: answers that break the rules fail their own call at most.
#[tokio::test]
async fn malformed_answers_harm_only_their_own_call() {
    let stage = Stage::new();
    let tools: Vec<Value> = ["half_line", "wrong_id"]
        .iter()
        .map(|name| json!({"name": name, "timeout": "300ms"}))
        .collect();
    let runtime = stage.start([stage.plain("one")], json!({ "tools": tools })).await;
    for (tool, ends) in [
        ("half_line", Status::Error),
        ("wrong_id", Status::Error),
        ("duplicate", Status::Success),
        ("flood", Status::Success),
        ("notification_flood", Status::Success),
    ] {
        let envelope = call(&runtime, tool, json!({})).await;
        assert_eq!(envelope.status, ends, "{tool}: {:?}", envelope.error);
        assert_eq!(answer(&runtime, "echo", json!({"after": tool})).await, json!({"after": tool}));
    }
    assert_eq!(stage.starts("one"), 1, "the connection was never given up");
}

/// An invalid result is a `ProtocolError` of the server.
#[tokio::test]
async fn a_result_that_cannot_be_read_is_a_protocol_error() {
    let stage = Stage::new();
    let tools =
        json!([{"name": "odd", "inputSchema": {"type": "object"}, "result": {"content": 5}}]);
    let runtime =
        stage.start([stage.stdio("one", json!({ "tools": tools }), json!({}))], json!({})).await;
    let envelope = call(&runtime, "odd", json!({})).await;
    let (code, message) = failure(&envelope);
    assert_eq!(code, Code::ProtocolError);
    assert!(message.starts_with("MCP error: server `one`: "), "{message}");
}

/// Proves S3-SC-006: of three servers one dies; the others answer, before and after.
#[tokio::test]
async fn of_three_servers_one_dies_and_two_go_on() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let server = |name| {
        stage.stdio(
            name,
            json!({"tools": ["echo"]}),
            json!({"tool_prefix": "server", "reconnect": {"attempts": 0}}),
        )
    };
    let runtime = stage.start(["a", "b", "c"].map(server), json!({})).await;
    kill(stage.pids("b")[0]);
    until(|| runtime.servers()[1].state == ServerState::Unavailable).await;
    let mut statuses = Vec::new();
    for tool in ["a__echo", "b__echo", "c__echo"] {
        statuses.push(call(&runtime, tool, json!({})).await.status);
    }
    assert_eq!(statuses, [Status::Success, Status::Error, Status::Success]);
    assert_eq!(heard.count("lost the server"), 1);
    let ended = runtime.shutdown(Duration::from_secs(1)).await;
    assert_eq!(ended, haft::Shutdown::Clean);
}
