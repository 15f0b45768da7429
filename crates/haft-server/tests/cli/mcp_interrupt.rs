//! Signals while servers are connected or asked.

use serde_json::{Value, json};
use testkit::fixture::messages;
use testkit::{Running, Workspace, eventually};

use crate::haft;
use crate::mcp_support::{assert_all_gone, facts_file, server, server_with, started};

/// A workspace with one server, and the file its facts go to.
fn with(mut scenario: Value, settings: Value) -> (Workspace, std::path::PathBuf) {
    let workspace = Workspace::new();
    let facts = facts_file(&workspace);
    scenario["facts"] = json!(facts);
    let good = server(&json!({"facts": facts}));
    let servers = json!({"servers": {"good": good, "s": server_with(&scenario, settings)}});
    workspace.write("haft.json", servers.to_string());
    (workspace, facts)
}

fn assert_ends(running: Running, send: impl Fn(&Running), facts: &std::path::Path) {
    send(&running);
    let finished = running.finish();
    assert_eq!((finished.code, finished.stdout.as_str()), (130, ""), "{}", finished.stderr);
    assert!(finished.stderr.ends_with("error: interrupted\n"), "{}", finished.stderr);
    assert_all_gone(facts);
}

/// Proves S1-5: Ctrl-C while a server does not answer ends the command, and the server with it, for
/// every command that connects.
#[test]
fn ctrl_c_while_connecting_leaves_no_process() {
    let commands: [&[&str]; 8] = [
        &["tools", "list"],
        &["call", "echo"],
        &["servers", "show", "s"],
        &["prompts", "list"],
        &["resources", "list"],
        &["check", "--connect", "--json"],
        &["run", "hi", "-m", "ollama::nobody"],
        &["chat", "-m", "ollama::nobody"],
    ];
    for command in commands {
        let (workspace, facts) =
            with(json!({"start": {"hang": true}, "ignore_sigterm": true}), json!({}));
        let running = haft(&workspace, command).start();
        started(&facts);
        assert_ends(running, Running::interrupt, &facts);
    }
}

/// Proves S1-5: SIGTERM likewise, also while a server that starts late is asked for its tools.
#[test]
fn sigterm_while_a_late_server_connects_leaves_no_process() {
    let run = ["run", "hi", "-m", "ollama::nobody"];
    for command in [&["tools", "list", "--log-level", "error"][..], &run] {
        let scenario = json!({"silent_on": ["tools/list"]});
        let (workspace, facts) = with(scenario, json!({"start": "lazy"}));
        let running = haft(&workspace, command).start();
        eventually("the late server is asked", || {
            (messages(&facts, "tools/list").len() == 2).then_some(())
        });
        assert_ends(running, Running::terminate, &facts);
    }
}

/// Proves S1-5: Ctrl-C while a connected server keeps a request waiting.
#[test]
fn ctrl_c_during_a_request_leaves_no_process() {
    let (workspace, facts) = with(json!({"silent_on": ["ping"]}), json!({}));
    let running = haft(&workspace, &["servers", "ping", "s"]).start();
    eventually("the server is pinged", || messages(&facts, "ping").first().map(|_| ()));
    assert_ends(running, Running::interrupt, &facts);
}

/// Proves S1-5: Ctrl-C during a call cancels it; the server receives the cancellation and ends.
#[test]
fn ctrl_c_during_a_call_ends_the_server_too() {
    let (workspace, facts) = with(json!({"tools": ["hang"]}), json!({}));
    let running = haft(&workspace, &["call", "hang", "--log-level", "error"]).start();
    eventually("the tool is called", || messages(&facts, "tools/call").first().map(|_| ()));
    running.interrupt();
    let finished = running.finish();
    assert_eq!(finished.code, 130);
    assert!(finished.stderr.starts_with("error: the call of `hang` was cancelled"));
    assert_all_gone(&facts);
}
