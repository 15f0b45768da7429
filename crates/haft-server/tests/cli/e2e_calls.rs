//! Calls of real servers with the program: what is printed, logged and left behind.

use serde_json::{Value, json};
use testkit::fixture::{events, messages};
use testkit::{Workspace, eventually, is_running};

use super::e2e_support::{mcp, native, serve, stdio, toolbox};
use crate::{haft, run};

fn envelope(workspace: &Workspace, args: &[&str]) -> (i32, Value) {
    let finished = run(workspace, args);
    let envelope = serde_json::from_str(&finished.stdout);
    (finished.code, envelope.unwrap_or_else(|_| panic!("{}", finished.stderr)))
}

/// Proves S1-13, S1-7, S2-KE-05: a one-shot call reaches the server; the log has it with its server.
#[test]
fn a_one_shot_call_reaches_the_server() {
    let workspace = Workspace::new();
    native(&workspace, &json!({"one": stdio(&workspace, "one", json!({}))}));
    let (code, answer) = envelope(&workspace, &["call", "echo", "n=1", "word=x", "--json"]);
    assert_eq!((code, &answer["data"]), (0, &json!({"n": 1, "word": "x"})));
    let facts = workspace.path().join("one.facts");
    let called = messages(&facts, "tools/call").remove(0);
    assert_eq!(called["params"]["arguments"], json!({"n": 1, "word": "x"}));
    let log = run(&workspace, &["log", "--json"]).stdout;
    let entry: Value = serde_json::from_str(&log).unwrap();
    assert_eq!(entry["execution_id"], answer["execution_id"]);
    assert_eq!((&entry["server"], &entry["source"]), (&json!("one"), &json!("mcp")));
    assert_eq!(events(&facts, "exit").len(), 1, "and let it go in peace");
}

/// Proves S1-18, S1-22, S3-US5-3: each kind of failure is an error envelope and exit code 1.
#[test]
fn failures_of_servers_are_answers() {
    let workspace = Workspace::new();
    native(&workspace, &json!({"one": stdio(&workspace, "one", json!({}))}));
    for (tool, code, starts) in [
        ("fail", "ToolExecutionError", "the first reason\nthe second reason"),
        ("rpc_error", "ToolExecutionError", "MCP error: server `one` refused `rpc_error`: "),
        ("crash", "OutcomeUnknown", "MCP error: server `one` was lost while `crash` ran"),
    ] {
        let (exit, answer) = envelope(&workspace, &["call", tool, "--json"]);
        assert_eq!((exit, &answer["status"]), (1, &json!("error")), "{tool}");
        assert_eq!(answer["error"]["code"], json!(code), "{tool}");
        assert!(answer["error"]["message"].as_str().unwrap().starts_with(starts), "{answer}");
    }
}

/// Proves S1-5: Ctrl-C and SIGTERM end the call, the server, and its child processes; the server receives the
/// cancellation.
#[test]
fn signals_leave_no_server_behind() {
    for is_interrupt in [true, false] {
        let workspace = Workspace::new();
        native(&workspace, &json!({"one": stdio(&workspace, "one", json!({}))}));
        let facts = workspace.path().join("one.facts");
        let calling = haft(&workspace, &["call", "hang"]).start();
        eventually("the call is there", || messages(&facts, "tools/call").pop());
        let pid = u32::try_from(events(&facts, "start")[0]["pid"].as_u64().unwrap()).unwrap();
        if is_interrupt {
            calling.interrupt();
        } else {
            calling.terminate();
        }
        assert_eq!(calling.finish().code, 130);
        assert!(!is_running(pid));
        assert_eq!(messages(&facts, "notifications/cancelled").len(), 1);
    }
}

/// Proves S1-5, S3-US8-2: the HTTP session ends with the program.
#[test]
fn the_http_session_ends_with_the_program() {
    let workspace = Workspace::new();
    let server = serve(&workspace, "one", json!({}));
    toolbox(&workspace, &[], &[mcp("one", &server.url, "dynamic")]);
    let (code, _) = envelope(&workspace, &["-c", "toolbox.yaml", "call", "echo", "--json"]);
    assert_eq!(code, 0);
    let requests = events(&workspace.path().join("one.facts"), "http");
    assert_eq!(requests.last().unwrap()["method"], json!("DELETE"));
}

/// Nothing survives `kill -9` of Haft itself, not even what a server set apart.
#[test]
fn a_killed_haft_leaves_no_server() {
    let workspace = Workspace::new();
    native(&workspace, &json!({"one": stdio(&workspace, "one", json!({"ignore_eof": true}))}));
    let facts = workspace.path().join("one.facts");
    let calling = haft(&workspace, &["call", "hang"]).start();
    eventually("the call is there", || messages(&facts, "tools/call").pop());
    let pid = u32::try_from(events(&facts, "start")[0]["pid"].as_u64().unwrap()).unwrap();
    calling.kill();
    calling.finish();
    eventually("the server is gone", || (!is_running(pid)).then_some(()));
}

/// Proves X-14: exactly the safe variables, those of `env`, and the mark.
#[test]
fn a_server_sees_exactly_its_environment() {
    let workspace = Workspace::new();
    let mut server = stdio(&workspace, "one", json!({}));
    server["env"] = json!({"API_KEY": "${MY_KEY}"});
    native(&workspace, &json!({ "one": server }));
    let variables = [
        ("MY_KEY", "the key"),
        ("USER", "ada"),
        ("LOGNAME", "ada"),
        ("SHELL", "/bin/sh"),
        ("TERM", "dumb"),
        ("HTTPS_PROXY", "http://proxy"),
        ("no_proxy", "local"),
        ("SSL_CERT_FILE", "/certs"),
        ("AWS_SECRET_ACCESS_KEY", "hidden"),
        ("LD_PRELOAD_NOT", "x"),
    ];
    let mut program = haft(&workspace, &["call", "echo"]);
    for (name, value) in variables {
        program = program.env(name, value);
    }
    assert_eq!(program.run().code, 0);
    let start = events(&workspace.path().join("one.facts"), "start").remove(0);
    let mut names: Vec<&String> = start["env"].as_object().unwrap().keys().collect();
    names.sort();
    let expected = [
        "API_KEY",
        "HAFT_TREE",
        "HOME",
        "HTTPS_PROXY",
        "LOGNAME",
        "PATH",
        "SHELL",
        "SSL_CERT_FILE",
        "TERM",
        "USER",
        "no_proxy",
    ];
    assert_eq!(names, expected);
    assert_eq!(start["env"]["API_KEY"], json!("the key"));
}
