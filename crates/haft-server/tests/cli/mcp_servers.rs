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
    assert!(!workspace.path().join(".haft").exists(), "looking writes nothing");
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
    // What only stops tools stops nobody who looks at a server.
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

/// A server that connects and then refuses or is disabled is no good ping.
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

/// The same commands over HTTP, and what they say of an address where nobody listens.
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
