//! `haft check --connect`.

use serde_json::{Value, json};
use testkit::Workspace;

use crate::mcp_support::{server, server_with, three, transcript, workspace};
use crate::run;

/// Every server with what came of it: cause and remedy of the one that failed, exit code 3.
#[test]
fn every_server_is_tried() {
    let workspace = three();
    let finished = run(&workspace, &["check", "--connect"]);
    assert_eq!(finished.code, 3);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    assert!(!workspace.path().join("logs").exists() && !workspace.path().join(".haft").exists());
    let finished = run(&workspace, &["check", "--connect", "--json"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (3, ""));
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    let connections = report["connections"].as_array().unwrap().iter();
    let oks: Vec<Value> =
        connections.map(|it| json!([it["name"], it["ok"], it["tools"]])).collect();
    assert_eq!(json!(oks), json!([["good", true, 3], ["late", true, 1], ["bad", false, null]]));
    assert_eq!(run(&workspace, &["check"]).code, 0, "nothing is tried without --connect");
}

/// Proves S0-24, S0-52 before a start: a strict server's tool without an entry, exit code 4.
#[test]
fn strict_violations_are_reported() {
    let strict = server_with(&json!({"tools": ["echo", "text"]}), json!({"mode": "strict"}));
    let workspace = Workspace::new();
    let tools = json!([{"name": "echo", "mcp": "s"}]);
    workspace.write("haft.json", json!({"servers": {"s": strict}, "tools": tools}).to_string());
    let finished = run(&workspace, &["check", "--connect"]);
    assert_eq!(finished.code, 4);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    let finished = run(&workspace, &["check", "--connect", "--json"]);
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((finished.code, &report["registration"][0]["level"]), (4, &json!("ERROR")));
}

/// Warnings do not fail the check.
#[test]
fn warnings_of_registration_do_not_fail() {
    let workspace = workspace(&json!({
        "one": server(&json!({"tools": ["echo"]})),
        "two": server_with(&json!({"tools": ["echo"]}), json!({"prompts": ["absent"]})),
        "off": server_with(&json!({}), json!({"disabled": true})),
    }));
    let finished = run(&workspace, &["check", "--connect"]);
    assert_eq!(finished.code, 0);
    insta::assert_snapshot!(transcript(&workspace, &finished));
}

/// An invalid configuration starts nothing.
#[test]
fn an_invalid_configuration_is_not_connected() {
    let workspace = Workspace::with(&[("haft.yaml", "servers: {a: {comand: x}}\n")]);
    let finished = run(&workspace, &["check", "--connect"]);
    assert_eq!(finished.code, 2);
    assert_eq!(finished, run(&workspace, &["check"]));
}
