//! `haft tools`, `haft call` and `haft explain` with servers that run.

use serde_json::{Value, json};
use testkit::Workspace;

use crate::mcp_support::{
    assert_all_gone, broken, facts_file, server, server_with, three, transcript, workspace,
};
use crate::run;

/// Proves S0-53: tools of servers, late ones included, with source and mode.
#[test]
fn tools_of_servers_are_listed() {
    let workspace = three();
    let finished = run(&workspace, &["tools", "list", "--log-level", "warning"]);
    assert_eq!(finished.code, 0);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    let finished = run(&workspace, &["tools", "list", "--json"]);
    let tools: Value = serde_json::from_str(&finished.stdout).unwrap();
    let of = |at: usize| (&tools[at]["name"], &tools[at]["source"], &tools[at]["mcp_name"]);
    assert_eq!(of(0), (&json!("echo"), &json!("mcp"), &json!("good")));
    assert_eq!(of(3), (&json!("sleep"), &json!("mcp"), &json!("late")));
    assert_eq!(tools[3]["mcp_mode"], json!("dynamic"));
    assert_eq!(tools[3]["config_origin"], json!("default"));
}

/// A late server is asked by every command that looks, and by a call of its tool.
#[test]
fn a_late_server_is_asked_when_it_matters() {
    let workspace = three();
    let quiet = |args: &[&str]| run(&workspace, &[args, &["--log-level", "error"]].concat());
    let explained = quiet(&["explain", "sleep"]);
    assert_eq!(explained.code, 0, "{}", explained.stderr);
    insta::assert_snapshot!(transcript(&workspace, &explained));
    assert_eq!(quiet(&["tools", "show", "sleep"]).code, 0);
    let called = quiet(&["call", "sleep", "ms=1"]);
    assert_eq!((called.code, called.stdout.as_str()), (0, "slept 1 ms\n"), "{}", called.stderr);
}

/// An unknown tool may belong to a server that could not be asked.
#[test]
fn an_unknown_tool_names_who_could_not_be_asked() {
    let workspace = three();
    let missing = run(&workspace, &["tools", "show", "ehco", "--log-level", "error"]);
    assert_eq!(missing.code, 1);
    insta::assert_snapshot!(transcript(&workspace, &missing));
}

/// Without tools, each server has a reason.
#[test]
fn no_tools_has_a_reason_for_each_server() {
    let workspace = workspace(&json!({
        "bare": server(&json!({"tools": []})),
        "off": server_with(&json!({}), json!({"disabled": true})),
        "choosy": server_with(&json!({"tools": ["echo"]}), json!({"tool_allowlist": ["text"]})),
        "bad": broken(),
    }));
    let finished = run(&workspace, &["tools", "list", "--log-level", "error"]);
    assert_eq!(finished.code, 0);
    insta::assert_snapshot!(transcript(&workspace, &finished));
}

/// Proves S1-5: the normal end of every command leaves no server behind.
#[test]
fn no_command_leaves_a_server_behind() {
    let workspace = workspace(&json!({}));
    let facts = facts_file(&workspace);
    let stubborn = json!({"tools": ["text"], "facts": facts});
    let late = server_with(&json!({"tools": ["echo"], "facts": facts}), json!({"start": "lazy"}));
    let servers = json!({"servers": {"s": server(&stubborn), "late": late, "bad": broken()}});
    workspace.write("haft.json", servers.to_string());
    let commands: [(&[&str], i32); 10] = [
        (&["tools", "list"], 0),
        (&["tools", "show", "text"], 0),
        (&["explain", "nothing"], 1),
        (&["call", "text"], 0),
        (&["call", "nothing"], 1),
        (&["prompts", "get", "nothing"], 3),
        (&["resources", "list"], 0),
        (&["servers", "list", "--connect"], 3),
        (&["servers", "ping"], 1),
        (&["check", "--connect"], 3),
    ];
    for (command, code) in commands {
        let finished = run(&workspace, command);
        assert_eq!(finished.code, code, "{command:?}: {}", finished.stderr);
        assert_all_gone(&facts);
    }
}

/// Proves S0-43, S0-52, S1-5: a start that is refused leaves nothing either, exit codes 3 and 4.
#[test]
fn a_refused_start_leaves_no_server_behind() {
    let workspace = Workspace::new();
    let facts = facts_file(&workspace);
    let good = server(&json!({"tools": ["text"], "facts": facts}));
    let exit = |mut server: Value| {
        server["on_connect_failure"] = json!("exit");
        server
    };
    let servers = json!({"servers": {"s": good, "bad": exit(broken())}});
    workspace.write("haft.json", servers.to_string());
    // Whether the good server connects first is not certain, so its INFO line is left out.
    let finished = run(&workspace, &["call", "text", "--log-level", "warning"]);
    assert_eq!(finished.code, 3);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    assert_all_gone(&facts);
    let strict =
        server_with(&json!({"tools": ["text"], "facts": facts}), json!({"mode": "strict"}));
    workspace.write("haft.json", json!({"servers": {"s": strict}}).to_string());
    assert_eq!(run(&workspace, &["tools", "list"]).code, 4);
    assert_all_gone(&facts);
}

/// Proves S3-FR-008: a secret reaches the server through `env`, and no output shows it.
#[test]
fn a_secret_reaches_only_the_server() {
    let workspace = Workspace::new();
    let facts = facts_file(&workspace);
    let scenario = json!({"tools": ["text"], "facts": facts});
    let one = server_with(&scenario, json!({"env": {"API_KEY": "${MY_API_KEY}"}}));
    workspace.write("haft.json", json!({"servers": {"s": one}}).to_string());
    for command in [&["servers", "show", "s"][..], &["config", "show"], &["call", "text"]] {
        let finished = crate::haft(&workspace, command).env("MY_API_KEY", "hunter2-secret").run();
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        assert!(!finished.stdout.contains("hunter2") && !finished.stderr.contains("hunter2"));
    }
    let starts = testkit::fixture::events(&facts, "start");
    assert_eq!(starts[0]["env"]["API_KEY"], json!("hunter2-secret"));
    assert_eq!(starts[0]["env"]["MY_API_KEY"], Value::Null, "only what it was given");
}
