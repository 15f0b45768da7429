//! Lost and unreachable servers: how often they are tried again, with which pauses, and when not.

use haft::{Code, ServerState, Status};
use serde_json::{Value, json};
use testkit::fixture::events;

use super::mcp_support::{Stage, answer, call, failure, kill};
use super::support::until;

/// A server that starts only if a file is there; every attempt leaves a line in `attempts`.
pub fn guarded(stage: &Stage, name: &'static str, settings: Value) -> (&'static str, Value) {
    let (name, mut server) = stage.stdio(name, json!({}), settings);
    let script = r#"date +%s%3N >> "$0.attempts"; read left < "$0.left" || left=0
        if [ "$left" -gt 0 ]; then echo $((left - 1)) > "$0.left"; echo "not yet" >&2; exit 7; fi
        exec "$@""#;
    let mut args = vec![json!("-c"), json!(script), json!(stage.path(name))];
    args.push(server["command"].take());
    args.extend(server["args"].as_array().unwrap().clone());
    server["command"] = json!("sh");
    server["args"] = Value::Array(args);
    (name, server)
}

/// The next `times` attempts fail.
pub fn fail_next(stage: &Stage, name: &str, times: u32) {
    std::fs::write(stage.path(&format!("{name}.left")), format!("{times}\n")).unwrap();
}

/// The time of each attempt, in milliseconds.
pub fn attempts(stage: &Stage, name: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(stage.path(&format!("{name}.attempts"))).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// Proves S2-FR-017, X-3: one attempt and three more, each pause longer than the one before.
#[tokio::test]
async fn a_start_is_tried_four_times_with_growing_pauses() {
    let stage = Stage::new();
    let reconnect = json!({"base": "100ms", "factor": 3});
    let server = guarded(&stage, "one", json!({ "reconnect": reconnect }));
    fail_next(&stage, "one", 100);
    let runtime = stage.start([server], json!({})).await;
    // The toolbox works after the first attempt already; this waits for the others.
    runtime.discover().await;
    let at = attempts(&stage, "one");
    assert_eq!(at.len(), 4);
    let pauses: Vec<u64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // Each is three times the one before; half of that leaves room for a busy machine.
    assert!(pauses.windows(2).all(|pair| pair[1] * 2 > pair[0] * 3), "{pauses:?}");
    let info = &runtime.servers()[0];
    assert_eq!((info.state, info.retries), (ServerState::Unavailable, 3));
    assert!(info.reason.as_ref().unwrap().contains("exit code 7"), "{:?}", info.reason);
    assert!(info.reason.as_ref().unwrap().contains("not yet"), "{:?}", info.reason);
}

/// Proves S2-EC-13: the connection is back on attempt 2, and the call that waited succeeds.
#[tokio::test]
async fn a_call_survives_a_server_that_comes_back() {
    let stage = Stage::new();
    let server = guarded(&stage, "one", json!({}));
    let runtime = stage.start([server], json!({})).await;
    fail_next(&stage, "one", 1);
    kill(stage.pids("one")[0]);
    until(|| runtime.servers()[0].state != ServerState::Ready).await;
    assert_eq!(answer(&runtime, "echo", json!({"n": 1})).await, json!({"n": 1}));
    assert_eq!(attempts(&stage, "one").len(), 3, "the start, one that failed, one that worked");
}

/// Proves S2-EC-12: three more attempts after the loss, then `ServiceUnavailable`, at once for
/// calls right after.
#[tokio::test]
async fn a_server_that_stays_away_is_unavailable_after_three_attempts() {
    let stage = Stage::new();
    let server = guarded(&stage, "one", json!({"reconnect": {"base": "20ms", "factor": 1}}));
    let runtime = stage.start([server], json!({})).await;
    fail_next(&stage, "one", 100);
    kill(stage.pids("one")[0]);
    until(|| runtime.servers()[0].state != ServerState::Ready).await;
    let envelope = call(&runtime, "echo", json!({})).await;
    let (code, message) = failure(&envelope);
    assert_eq!(code, Code::ServiceUnavailable);
    assert!(message.contains("exit code 7") && !message.contains("not yet"), "{message}");
    assert!(runtime.servers()[0].reason.as_ref().unwrap().contains("last words: not yet"));
    assert_eq!(attempts(&stage, "one").len(), 1 + 3);
}

/// Proves S2-FR-017: the pauses after a loss grow from the first one on.
#[tokio::test]
async fn the_pauses_after_a_loss_grow() {
    let stage = Stage::new();
    let server = guarded(&stage, "one", json!({"reconnect": {"base": "100ms", "factor": 3}}));
    let runtime = stage.start([server], json!({})).await;
    fail_next(&stage, "one", 100);
    kill(stage.pids("one")[0]);
    until(|| runtime.servers()[0].state != ServerState::Ready).await;
    let envelope = call(&runtime, "echo", json!({})).await;
    assert_eq!(failure(&envelope).0, Code::ServiceUnavailable);
    let at = attempts(&stage, "one");
    assert_eq!(at.len(), 1 + 3, "the start and three after the loss");
    // The first pause follows the loss; the other two are between attempts: 300 ms and 900 ms.
    let pauses: Vec<u64> = at[1..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses[0] >= 270 && pauses[1] >= 810, "{pauses:?}");
}

/// Proves S2-FR-017: after giving up, which the log reports, a call tries the server again.
#[tokio::test]
async fn after_giving_up_the_next_call_tries_the_server() {
    let stage = Stage::new();
    let (heard, _guard) = testkit::LogCapture::start();
    let reconnect = json!({"base": "10ms", "factor": 1, "attempts": 2});
    let server = guarded(&stage, "one", json!({ "reconnect": reconnect }));
    let runtime = stage.start([server], json!({})).await;
    fail_next(&stage, "one", 3);
    kill(stage.pids("one")[0]);
    until(|| runtime.servers()[0].state != ServerState::Ready).await;
    let mut tried = Vec::new();
    for _ in 0..2 {
        let envelope = call(&runtime, "echo", json!({})).await;
        assert_eq!(failure(&envelope).0, Code::ServiceUnavailable);
        tried.push(attempts(&stage, "one").len());
    }
    assert_eq!(tried, [1 + 2, 1 + 2 + 1], "two attempts after the loss, one for the next call");
    assert_eq!(heard.count("gave up connecting to the server"), 1, "{:?}", heard.lines());
    assert_eq!(answer(&runtime, "echo", json!({"n": 1})).await, json!({"n": 1}));
}

/// Proves S2-EC-12, S2-EC-13: a later call reconnects, the server is back, and so is its tool.
#[tokio::test]
async fn a_later_call_tries_again() {
    let stage = Stage::new();
    let reconnect = json!({"base": "1ms", "factor": 1, "attempts": 1});
    let server = guarded(&stage, "one", json!({ "reconnect": reconnect }));
    let runtime = stage.start([server], json!({})).await;
    fail_next(&stage, "one", 1);
    kill(stage.pids("one")[0]);
    until(|| {
        runtime.servers()[0].state == ServerState::Unavailable && attempts(&stage, "one").len() == 2
    })
    .await;
    let mut last = call(&runtime, "echo", json!({})).await;
    // Right after a failed round, calls still get the result of that round.
    while last.status == Status::Error && attempts(&stage, "one").len() < 3 {
        last = call(&runtime, "echo", json!({})).await;
    }
    assert_eq!(call(&runtime, "echo", json!({})).await.status, Status::Success);
    assert_eq!(stage.starts("one"), 2);
}

/// Proves X-3: a command that is not there, or a folder that is not, is tried once.
#[tokio::test]
async fn what_cannot_get_better_is_not_tried_again() {
    let stage = Stage::new();
    let missing = json!({"command": "nope-not-here", "reconnect": {"base": "20ms"}});
    let (name, homeless) = stage.stdio("two", json!({}), json!({"cwd": stage.path("nowhere")}));
    let refusing = json!({"errors_on": {"initialize": {"code": -32602, "message": "no"}}});
    let refusing = stage.stdio("three", refusing, json!({"protocol": "legacy"}));
    let runtime = stage.start([("one", missing), (name, homeless), refusing], json!({})).await;
    let retries: Vec<u32> = runtime.servers().iter().map(|server| server.retries).collect();
    assert_eq!(retries, [0, 0, 0]);
    assert_eq!(stage.starts("three"), 1);
    assert!(runtime.servers().iter().all(|server| server.state == ServerState::Unavailable));
}

/// Proves S1-20, S3-FR-023: killed between two calls, it is back for the next one, with one
/// process for each life.
#[tokio::test]
async fn a_killed_server_is_started_again() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    for life in 1..=3 {
        let stats = answer(&runtime, "stats", json!({})).await;
        assert_eq!(stats["initialize"], json!(1));
        assert_eq!(stage.starts("one"), life);
        kill(*stage.pids("one").last().unwrap());
        until(|| runtime.servers()[0].state != ServerState::Ready || stage.starts("one") > life)
            .await;
    }
    assert_eq!(answer(&runtime, "echo", json!({})).await, json!({}));
    assert_eq!(events(&stage.facts("one"), "connection").len(), 4);
}
