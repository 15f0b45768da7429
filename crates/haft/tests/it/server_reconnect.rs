//! Reconnecting a server on demand.

use std::path::Path;

use haft::{Code, ReconnectError, ServerState, Status};
use serde_json::{Value, json};
use testkit::fixture::{Transport, events};

use super::mcp_reconnect::{attempts, fail_next, guarded};
use super::mcp_support::{Stage, answer, call, failure, kill, names};
use super::support::{empty, spawn, until};

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The old process is gone, the new one answers, and the other server does not notice.
#[tokio::test]
async fn a_healthy_server_is_started_anew() {
    let stage = Stage::new();
    let other = stage.stdio("two", json!({"tools": ["text"]}), json!({}));
    let server = stage.stdio("one", json!({"tools": ["echo"]}), json!({}));
    let runtime = stage.start([server, other], json!({})).await;
    let info = runtime.reconnect("one").await.unwrap();
    assert_eq!((info.name.as_str(), info.state), ("one", ServerState::Ready));
    assert_eq!((stage.starts("one"), stage.starts("two")), (2, 1));
    let pids = stage.pids("one");
    assert_eq!((is_alive(pids[0]), is_alive(pids[1])), (false, true));
    let exits = events(&stage.facts("one"), "exit");
    assert_eq!((exits.len(), &exits[0]["code"]), (1, &json!(0)), "it was let go in peace");
    assert_eq!(answer(&runtime, "echo", json!({"n": 1})).await, json!({"n": 1}));
    assert_eq!(stage.starts("one"), 2);
}

/// Over HTTP the old session is ended and a new one begun.
#[tokio::test]
async fn a_remote_server_gets_a_new_session() {
    let stage = Stage::new();
    let (_running, server) = stage.remote("one", Transport::Http, json!({}), json!({}));
    let runtime = stage.start([server], json!({})).await;
    assert_eq!(runtime.reconnect("one").await.unwrap().state, ServerState::Ready);
    let stats = answer(&runtime, "stats", json!({})).await;
    assert_eq!((&stats["initialize"], &stats["deleted"]), (&json!(2), &json!(1)));
}

/// Proves S2-FR-017: a call in flight is sent again only if that is safe.
#[tokio::test]
async fn calls_in_flight_end_by_the_servers_rules() {
    let stage = Stage::new();
    let tools = json!([
        {"name": "writes", "behaves": "hang"},
        {"name": "reads", "behaves": "hang", "annotations": {"readOnlyHint": true}},
    ]);
    let server = stage.stdio("one", json!({ "tools": tools }), json!({}));
    let runtime = stage.start([server], json!({})).await;
    let mut calls = spawn(&runtime, [empty("writes"), empty("reads")]);
    until(|| stage.messages("one", "tools/call").len() == 2).await;
    assert_eq!(runtime.reconnect("one").await.unwrap().state, ServerState::Ready);
    let ended = calls.join_next().await.unwrap().unwrap();
    assert_eq!((ended.tool.as_str(), failure(&ended).0), ("writes", Code::OutcomeUnknown));
    until(|| stage.messages("one", "tools/call").len() == 3).await;
    assert_eq!(stage.messages("one", "tools/call")[2]["params"]["name"], json!("reads"));
    assert_eq!(runtime.running().len(), 1, "it waits for the new server");
}

/// Proves X-3: the call does not wait for the backoff, which is an hour here; the tools are
/// available with the answer.
#[tokio::test]
async fn a_server_that_waits_for_its_next_attempt_is_tried_at_once() {
    let stage = Stage::new();
    let reconnect = json!({"base": "1h", "max": "1h"});
    let server = guarded(&stage, "one", json!({ "reconnect": reconnect }));
    fail_next(&stage, "one", 2);
    let runtime = stage.start([server], json!({})).await;
    assert_eq!(attempts(&stage, "one").len(), 1);
    assert_eq!(names(&runtime), Vec::<String>::new());
    let failed = runtime.reconnect("one").await.unwrap();
    assert_eq!(attempts(&stage, "one").len(), 2);
    assert_ne!(failed.state, ServerState::Ready);
    assert!(failed.reason.as_ref().unwrap().contains("exit code 7"), "{:?}", failed.reason);
    let back = runtime.reconnect("one").await.unwrap();
    assert_eq!((attempts(&stage, "one").len(), back.state), (3, ServerState::Ready));
    assert!(names(&runtime).contains(&"echo".to_owned()));
    assert_eq!(call(&runtime, "echo", json!({})).await.status, Status::Success);
}

/// Proves S1-21: with `attempts: 0` a lost server stays lost, until a reconnect is requested.
#[tokio::test]
async fn a_server_that_is_lost_for_good_comes_back_on_demand() {
    let stage = Stage::new();
    let server = stage.stdio("one", json!({}), json!({"reconnect": {"attempts": 0}}));
    let runtime = stage.start([server], json!({})).await;
    kill(stage.pids("one")[0]);
    until(|| runtime.servers()[0].state == ServerState::Unavailable).await;
    assert_eq!(failure(&call(&runtime, "echo", json!({})).await).0, Code::ServiceUnavailable);
    assert_eq!(stage.starts("one"), 1);
    assert_eq!(runtime.reconnect("one").await.unwrap().state, ServerState::Ready);
    assert_eq!(answer(&runtime, "echo", json!({})).await, json!({}));
    assert_eq!(stage.starts("one"), 2);
}

/// An attempt that hangs is given up for the new one, and who waited for it is served by that.
#[tokio::test]
async fn an_attempt_that_hangs_is_given_up() {
    let stage = Stage::new();
    let settings = json!({"start": "lazy", "connect_timeout": "10m"});
    let (name, mut server) = stage.stdio("one", json!({}), settings);
    // Each process notes which of those before it still lives.
    let script = r#"for old in $(cat "$0.pids"); do kill -0 $old && echo $old >> "$0.left"; done
        echo $$ >> "$0.pids"; [ -e "$0.hangs" ] && exec sleep 600; exec "$@""#;
    let mut args = vec![json!("-c"), json!(script), json!(stage.path(name))];
    args.push(server["command"].take());
    args.extend(server["args"].as_array().unwrap().clone());
    server["command"] = json!("sh");
    server["args"] = Value::Array(args);
    std::fs::write(stage.path("one.hangs"), "").unwrap();
    let runtime = stage.start([(name, server)], json!({})).await;
    let waiting = spawn(&runtime, [empty("echo")]);
    let pids = || std::fs::read_to_string(stage.path("one.pids")).unwrap_or_default();
    until(|| pids().ends_with('\n')).await;
    std::fs::remove_file(stage.path("one.hangs")).unwrap();
    assert_eq!(runtime.reconnect("one").await.unwrap().state, ServerState::Ready);
    assert_eq!(waiting.join_all().await[0].status, Status::Success);
    let pids: Vec<u32> = pids().lines().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!((pids.len(), is_alive(pids[0])), (2, false));
    assert!(!stage.path("one.left").exists(), "the old one was gone before the new one came");
}

/// A server that starts late starts now, and several wishes at once end in one connection.
#[tokio::test]
async fn wishes_at_the_same_time_are_all_answered() {
    let stage = Stage::new();
    let server = stage.stdio("one", json!({}), json!({"start": "lazy"}));
    let runtime = stage.start([server], json!({})).await;
    assert_eq!(stage.starts("one"), 0);
    let (a, b, c) =
        tokio::join!(runtime.reconnect("one"), runtime.reconnect("one"), runtime.reconnect("one"));
    for info in [a, b, c] {
        assert_eq!(info.unwrap().state, ServerState::Ready);
    }
    assert_eq!(answer(&runtime, "echo", json!({})).await, json!({}));
    let alive = stage.pids("one").into_iter().filter(|pid| is_alive(*pid)).count();
    assert_eq!(alive, 1);
}

/// Names that are none are named, with the nearest; a disabled server stays disabled.
#[tokio::test]
async fn a_server_that_cannot_be_connected_is_named() {
    let stage = Stage::new();
    let off = stage.stdio("off", json!({}), json!({"disabled": true}));
    let runtime = stage.start([stage.plain("weather"), off], json!({})).await;
    let unknown = runtime.reconnect("wether").await.unwrap_err();
    let expected = ReconnectError::UnknownServer {
        server: "wether".to_owned(),
        nearest: Some("weather".to_owned()),
    };
    assert_eq!(unknown, expected);
    assert_eq!(unknown.to_string(), "no server is named `wether`");
    assert_eq!(unknown.remedy().to_string(), "did you mean `weather`?");
    let disabled = runtime.reconnect("off").await.unwrap_err();
    assert_eq!(disabled, ReconnectError::Disabled { server: "off".to_owned() });
    assert_eq!(disabled.to_string(), "the server `off` is disabled");
    assert_eq!((stage.starts("weather"), stage.starts("off")), (1, 0));
}
