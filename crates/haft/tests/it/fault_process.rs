//! Faults of processes: those that stop, leave, or are left behind; and that one bad server never
//! slows another.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use haft::{Code, Runtime, Shutdown, Status, ToolCall};
use serde_json::{Value, json};
use testkit::fixture::{events, is_stopped, messages};
use testkit::{Program, Workspace, eventually, is_running};

use super::fault_support::{Fault, Over, Scene, config, faults, merged, pids, stdio, text};
use super::support::{spawn, until};

fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(status.unwrap().success(), "{name} for {pid}");
}

/// Stops the server in its tracks, as a machine that hangs does.
fn freeze(scene: &Scene) {
    match scene.over {
        Over::Stdio => {
            let pid = scene.pids()[0];
            signal(pid, "-STOP");
            eventually("it stops", || is_stopped(pid).then_some(()));
        }
        _ => scene.remote.as_ref().unwrap().pause(),
    }
}

fn thaw(scene: &Scene) {
    match scene.over {
        Over::Stdio => signal(scene.pids()[0], "-CONT"),
        _ => scene.remote.as_ref().unwrap().resume(),
    }
}

faults! {
    /// The server stays silent without closing: the call's timeout ends it.
    frozen over [stdio, http_json, http_sse, sse, websocket]
        Fault::times_out(json!({}), "echo")
            .before(freeze)
            .then(super::super::fault_support::Then::NotAsked)
            .also(|scene| {
                thaw(scene);
                assert_eq!(text(&scene.call_now("text", json!({}))), "plain text");
                assert_eq!(scene.got("initialize"), 1, "the connection outlives it");
            });
}

/// A toolbox with servers that are processes; their facts lie in the folder.
async fn toolbox(workspace: &Workspace, servers: &[(&str, Value)], tools: Value) -> Runtime {
    let entry = |(name, scenario): &(&str, Value)| {
        let facts = json!({"facts": facts(workspace, name)});
        let entry = stdio(&merged(facts, scenario), workspace);
        ((*name).to_owned(), merged(entry, &json!({"tool_prefix": "server"})))
    };
    let servers: serde_json::Map<String, Value> = servers.iter().map(entry).collect();
    Runtime::start(config(workspace, &json!(servers), &tools)).await.unwrap()
}

fn facts(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.path().join(format!("{name}.facts"))
}

/// Starts a process of the server that leaves its group; its id.
async fn grandchild(runtime: &Runtime) -> u32 {
    let envelope = runtime.call(ToolCall::new("one__grandchild", &json!({}))).await;
    let data: Value = serde_json::from_str(envelope.data.unwrap().get()).unwrap();
    u32::try_from(data["pid"].as_u64().unwrap()).unwrap()
}

/// A process that left the group with `setsid` is gone after the shutdown all the same.
#[tokio::test]
async fn a_grandchild_that_left_is_gone_after_shutdown() {
    let workspace = Workspace::new();
    let runtime = toolbox(&workspace, &[("one", json!({}))], json!([])).await;
    let pid = grandchild(&runtime).await;
    assert!(is_running(pid));
    assert_eq!(runtime.shutdown(Duration::from_secs(5)).await, Shutdown::Clean);
    assert!(!is_running(pid), "the grandchild");
    assert!(!is_running(pids(&facts(&workspace, "one"))[0]), "the server");
}

/// Dropped without a shutdown, with a call in flight: no child is left.
#[tokio::test]
async fn a_runtime_that_is_dropped_leaves_no_child() {
    let workspace = Workspace::new();
    let deaf = json!({"ignore_eof": true, "ignore_sigterm": true});
    let runtime = toolbox(&workspace, &[("one", deaf)], json!([])).await;
    let left = grandchild(&runtime).await;
    let path = facts(&workspace, "one");
    let calls = spawn(&runtime, [ToolCall::new("one__hang", &json!({}))]);
    until(|| messages(&path, "tools/call").len() == 2).await;
    drop(calls);
    drop(runtime);
    let server = pids(&path)[0];
    until(|| !is_running(server) && !is_running(left)).await;
}

/// A shutdown with calls in flight: they end with an error, each is logged, no process is left.
#[tokio::test]
async fn a_shutdown_ends_calls_in_flight() {
    let workspace = Workspace::new();
    let deaf = json!({"ignore_cancel": true});
    let runtime = toolbox(&workspace, &[("one", deaf)], json!([])).await;
    let path = facts(&workspace, "one");
    let mut calls = spawn(&runtime, (0..5).map(|_| ToolCall::new("one__hang", &json!({}))));
    until(|| messages(&path, "tools/call").len() == 5).await;
    assert_eq!(runtime.shutdown(Duration::from_millis(50)).await, Shutdown::Cut);
    while let Some(envelope) = calls.join_next().await {
        assert_eq!(envelope.unwrap().error.unwrap().code, Code::Stopping);
    }
    let logs = workspace.path().join("logs");
    let logged = haft::record::read(&logs, &haft::record::Filter::default()).unwrap();
    assert_eq!(logged.count(), 5);
    assert!(!is_running(pids(&path)[0]));
}

/// Proves S3-SC-006: while one server floods or hangs, calls of another succeed.
#[tokio::test]
async fn a_bad_server_does_not_slow_a_good_one() {
    for bad in ["bad__hang", "bad__flood", "bad__notification_flood", "bad__drip"] {
        let workspace = Workspace::new();
        let servers = [("bad", json!({})), ("good", json!({}))];
        let tools = json!([{"name": bad, "timeout": "20s"}]);
        let runtime = toolbox(&workspace, &servers, tools).await;
        let path = facts(&workspace, "bad");
        let bytes = json!({"bytes": 1 << 30, "count": 10_000_000, "every_ms": 1});
        let arguments =
            if bad == "bad__flood" { json!({"bytes": bytes["bytes"]}) } else { json!({}) };
        let sick = spawn(&runtime, [ToolCall::new(bad, &arguments)]);
        until(|| !messages(&path, "tools/call").is_empty()).await;
        let good = (0..5).map(|n| ToolCall::new("good__echo", &json!({"n": n})));
        let mut calls = spawn(&runtime, good);
        while let Some(envelope) = calls.join_next().await {
            let envelope = envelope.unwrap();
            assert_eq!(envelope.status, Status::Success, "beside {bad}: {:?}", envelope.error);
        }
        assert_eq!(events(&facts(&workspace, "good"), "start").len(), 1);
        drop(sick);
        runtime.shutdown(Duration::ZERO).await;
    }
}

/// The program itself, as it was built beside this test.
fn haft(workspace: &Workspace, args: &[&str]) -> Program {
    let test = std::env::current_exe().unwrap();
    let found = test.ancestors().map(|folder| folder.join("haft")).find(|path| path.is_file());
    Program::new(found.expect("`haft` is built: run the tests with `--workspace`"), workspace)
        .args(args)
}

/// A folder with a configuration in it that has one server.
fn with_server(scenario: &Value) -> (Workspace, PathBuf) {
    let workspace = Workspace::new();
    let facts = facts(&workspace, "one");
    let entry = stdio(&merged(json!({ "facts": facts }), scenario), &workspace);
    workspace.write("haft.yaml", json!({"servers": {"one": entry}}).to_string());
    (workspace, facts)
}

fn started(facts: &Path) -> u32 {
    eventually("the call arrives", || messages(facts, "tools/call").pop());
    pids(facts)[0]
}

/// Killed with -9, Haft leaves no server alive, however stubborn that is.
#[test]
fn haft_killed_leaves_no_server() {
    let (workspace, facts) =
        with_server(&json!({"ignore_eof": true, "ignore_sigterm": true, "ignore_cancel": true}));
    let calling = haft(&workspace, &["call", "hang"]).start();
    let pid = started(&facts);
    calling.kill();
    calling.finish();
    eventually("the server is gone", || (!is_running(pid)).then_some(()));
}

/// SIGTERM with a call in flight: it is cancelled and logged, and nothing is left.
#[test]
fn haft_terminated_ends_its_calls() {
    let (workspace, facts) = with_server(&json!({"ignore_sigterm": true}));
    let calling = haft(&workspace, &["call", "hang"]).start();
    let pid = started(&facts);
    calling.terminate();
    calling.finish();
    assert!(!is_running(pid), "the server is gone before Haft is");
    assert_eq!(messages(&facts, "notifications/cancelled").len(), 1);
    let log = haft(&workspace, &["log", "--json"]).run().stdout;
    let entries: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["error"]["code"], json!("Cancelled"));
}
