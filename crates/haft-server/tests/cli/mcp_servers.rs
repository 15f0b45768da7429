//! `haft servers` with servers that run.

use serde_json::{Value, json};
use testkit::fixture::{Fixture, Transport, events};

use crate::mcp_support::{
    assert_all_gone, broken, facts_file, server, server_with, three, transcript, workspace,
};
use crate::run;

/// Proves S2-US4-1, S1-16: every server with its state, and the reason of the one that failed.
#[test]
fn all_servers_are_connected_and_listed() {
    let workspace = three();
    let finished = run(&workspace, &["servers", "list", "--connect"]);
    assert_eq!(finished.code, 3);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    let finished = run(&workspace, &["servers", "list", "--connect", "--json"]);
    let servers: Value = serde_json::from_str(&finished.stdout).unwrap();
    let states: Vec<&Value> = servers.as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(states, ["ready", "ready", "unavailable"]);
    let entries = std::fs::read_dir(workspace.path().join(".haft")).unwrap();
    let written: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(
        written,
        ["servers"],
        "looking keeps the lists of servers that start late, and nothing else"
    );
}

/// Proves S3-FR-013, S3-US4-1: a look at the servers refreshes the tools that are known of one that starts late.
#[test]
fn a_look_at_the_servers_refreshes_the_kept_lists() {
    let workspace = workspace(&json!({}));
    let script = workspace.path().join("late.scenario");
    let late =
        json!({"command": Fixture::path(), "args": ["stdio", "--script", script], "start": "lazy"});
    workspace.write("haft.json", json!({"servers": {"late": late}}).to_string());
    let has = |tools: &Value| workspace.write("late.scenario", json!({"tools": tools}).to_string());
    let listed = || {
        let finished = run(&workspace, &["tools", "list", "--json"]);
        let tools: Value = serde_json::from_str(&finished.stdout).unwrap();
        let names = tools.as_array().unwrap().iter().map(|tool| tool["name"].clone());
        names.collect::<Vec<Value>>()
    };
    has(&json!(["echo"]));
    assert_eq!(run(&workspace, &["call", "echo"]).code, 0);
    has(&json!(["echo", "stats"]));
    assert_eq!(listed(), ["echo"], "known from the call");
    assert_eq!(run(&workspace, &["servers", "list", "--connect"]).code, 0);
    has(&json!([]));
    assert_eq!(listed(), ["echo", "stats"], "known from the look");
}

/// Without `--connect` nothing is started.
#[test]
fn servers_are_listed_without_starting_them() {
    let workspace = workspace(&json!({}));
    let facts = facts_file(&workspace);
    let servers = json!({"servers": {"one": server(&json!({"facts": facts}))}});
    workspace.write("haft.json", servers.to_string());
    let finished = run(&workspace, &["servers", "list"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
    assert!(finished.stdout.contains("configured") && !facts.exists());
}

/// Proves S3-EC-6, S3-KE-1 on the command line: everything about a server, also about one that fails.
#[test]
fn one_server_is_shown_whole() {
    let workspace = three();
    let shown = run(&workspace, &["servers", "show", "good"]);
    assert_eq!(shown.code, 0);
    insta::assert_snapshot!(transcript(&workspace, &shown));
    let failed = run(&workspace, &["servers", "show", "bad"]);
    assert_eq!(failed.code, 3);
    insta::assert_snapshot!("a_failed_server_is_shown", transcript(&workspace, &failed));
    let finished = run(&workspace, &["servers", "show", "good", "--json"]);
    let server: Value = serde_json::from_str(&finished.stdout).unwrap();
    let identity = &server["server"];
    assert_eq!(
        (&server["state"], &server["tools"], &identity["protocol_version"], &server["stderr_tail"]),
        (&json!("ready"), &json!(3), &json!("2025-11-25"), &json!("hello\n"))
    );
    assert_eq!(identity["capabilities"]["tools"]["listChanged"], json!(true));
    let unknown = run(&workspace, &["servers", "show", "god"]);
    assert_eq!(unknown.code, 2);
    insta::assert_snapshot!("an_unknown_server", unknown.stderr);
}

/// Lines that are not messages are counted, and shown at the level `debug` alone.
#[test]
fn stray_output_of_a_server_is_counted_and_shown_for_debugging() {
    let workspace = workspace(&json!({}));
    let noisy = server(&json!({"tools": ["text"], "noise": ["Loading model...", ""]}));
    workspace.write("haft.json", json!({"servers": {"noisy": noisy}}).to_string());
    let finished = run(&workspace, &["servers", "show", "noisy", "--json"]);
    let shown: Value = serde_json::from_str(&finished.stdout).unwrap();
    let count = shown["stray_lines"].as_u64().unwrap();
    assert!(count > 0, "{shown}");
    assert!(!finished.stderr.contains("Loading model"), "{}", finished.stderr);
    let finished = run(&workspace, &["--log-level", "debug", "servers", "show", "noisy"]);
    let line = "the server wrote a line that is not a message: Loading model...";
    assert_eq!(finished.stderr.matches(line).count() as u64, count, "{}", finished.stderr);
    let field = format!(
        "stray output: {count} lines of its output are not MCP messages (`--log-level debug` shows them)"
    );
    assert!(finished.stdout.contains(&field), "{}", finished.stdout);
}

/// Only the servers that are asked for are started, and none survives the command.
#[test]
fn only_named_servers_are_connected() {
    let workspace = workspace(&json!({}));
    let facts = facts_file(&workspace);
    let named = |name: &str| server(&json!({"name": name, "facts": facts}));
    let strict = server_with(&json!({"name": "c", "facts": facts}), json!({"mode": "strict"}));
    let servers = json!({"servers": {"a": named("a"), "b": named("b"), "c": strict}});
    workspace.write("haft.json", servers.to_string());
    let commands: [&[&str]; 4] = [
        &["servers", "show", "b"],
        &["servers", "ping", "b"],
        &["prompts", "list", "--server", "b"],
        &["resources", "list", "--server", "b"],
    ];
    for command in commands {
        let _ = std::fs::remove_file(&facts);
        let finished = run(&workspace, command);
        assert_eq!(finished.code, 0, "{command:?}: {}", finished.stderr);
        assert_eq!(events(&facts, "start").len(), 1, "{command:?}");
        assert_all_gone(&facts);
    }
    // A problem of tools does not stop a command that shows a server.
    assert_eq!(run(&workspace, &["servers", "show", "c"]).code, 0);
    assert_eq!(run(&workspace, &["tools", "list"]).code, 4);
}

/// A round trip for each, a reason for those that do not answer, and an exit code for scripts.
#[test]
fn servers_are_pinged() {
    let workspace = three();
    let finished = run(&workspace, &["servers", "ping", "good", "late"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
    for line in finished.stdout.lines().skip(1) {
        assert!(line.contains(" ok ") && line.contains(" ms"), "{line}");
    }
    let all = run(&workspace, &["servers", "ping", "--json"]);
    assert_eq!(all.code, 1);
    let answers: Value = serde_json::from_str(&all.stdout).unwrap();
    let oks: Vec<&Value> = answers.as_array().unwrap().iter().map(|it| &it["ok"]).collect();
    assert_eq!(oks, [true, true, false]);
    assert!(answers[0]["round_trip_ms"].as_f64().unwrap() > 0.0);
    assert!(answers[2]["error"].as_str().unwrap().contains("out of cheese"));
    assert!(answers[2]["remedy"].as_str().unwrap().contains("haft servers show bad"));
    let unknown = run(&workspace, &["servers", "ping", "nobody"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
}

/// A ping of a server that refuses it or is disabled fails.
#[test]
fn a_refused_ping_is_a_failure() {
    let errors = json!({"errors_on": {"ping": {"code": -32000, "message": "not today"}}});
    let workspace = workspace(&json!({
        "sulks": server(&errors),
        "off": server_with(&json!({}), json!({"disabled": true})),
    }));
    let finished = run(&workspace, &["servers", "ping"]);
    assert_eq!(finished.code, 1);
    assert!(finished.stdout.contains("not today"), "{}", finished.stdout);
    assert!(finished.stdout.contains("it is disabled"), "{}", finished.stdout);
    assert_eq!(run(&workspace, &["servers", "ping", "--json"]).code, 1);
    let listed = run(&workspace, &["servers", "list", "--connect"]);
    assert_eq!(listed.code, 0, "disabled is no failure: {}", listed.stdout);
}

/// The same commands over HTTP, and their output for an address without a listener.
#[test]
fn remote_servers_are_shown_too() {
    let remote = Fixture::serve(Transport::Http, &json!({"name": "far"}));
    let workspace = workspace(&json!({
        "far": {"url": remote.url},
        "gone": {"url": "http://127.0.0.1:1/mcp", "reconnect": {"attempts": 0}},
        "bad": broken(),
    }));
    let shown = run(&workspace, &["servers", "show", "far"]);
    assert_eq!(shown.code, 0, "{}", shown.stdout);
    assert!(shown.stdout.contains("far 0.1.0"), "{}", shown.stdout);
    let gone = run(&workspace, &["servers", "show", "gone"]);
    assert_eq!(gone.code, 3);
    assert!(gone.stdout.contains("its `url`"), "{}", gone.stdout);
}
