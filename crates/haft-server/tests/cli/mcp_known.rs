//! Lists remembered from earlier runs, and the working folder of servers.

use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::Fixture;

use crate::run;

/// A server with one tool of its own name. With a file `away` beside it, it is silent.
fn server(tool: &str) -> String {
    let scenario = json!({"tools": [{"name": tool, "behaves": "text"}]});
    let args: Vec<String> =
        Fixture::stdio_args(&scenario).iter().map(|arg| format!("'{arg}'")).collect();
    let fixture = Fixture::path().display().to_string();
    format!(
        "#!/bin/sh\nif [ -e away ]; then exec sleep 600; fi\nexec '{fixture}' {}\n",
        args.join(" ")
    )
}

fn workspace() -> Workspace {
    let config = "servers:
  near: {command: sh, args: [near.sh], connect_timeout: 20s}
  far: {command: sh, args: [far.sh], cwd: elsewhere, connect_timeout: 1s}
";
    Workspace::with(&[
        ("haft.yaml", config),
        ("near.sh", &server("here")),
        ("elsewhere/far.sh", &server("there")),
    ])
}

/// A call does not wait for a silent server that never had the tool, and does not report its silence.
#[test]
fn a_call_waits_for_no_server_that_is_known_not_to_have_its_tool() {
    let workspace = workspace();
    assert_eq!(run(&workspace, &["call", "here"]).code, 0);
    workspace.write("elsewhere/away", "");
    let finished = run(&workspace, &["call", "here"]);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert!(!finished.stderr.contains("far"), "{}", finished.stderr);
}

/// Proves S3-US5-2: a tool that was there is missed, and not unknown, while its server is away.
#[test]
fn a_tool_of_a_server_that_is_away_is_not_unknown() {
    let workspace = workspace();
    assert_eq!(run(&workspace, &["call", "there"]).code, 0);
    workspace.write("elsewhere/away", "");
    let finished = run(&workspace, &["--json", "call", "there"]);
    let envelope: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(envelope["error"]["code"], "ServiceUnavailable", "{finished:?}");
    let message = envelope["error"]["message"].as_str().unwrap();
    assert!(message.contains("`far`") && message.contains("within 1s"), "{message}");
}

/// The paths in a file mean the same wherever Haft is started.
#[test]
fn a_server_runs_in_the_folder_of_its_file() {
    let workspace = Workspace::new();
    workspace.write("project/haft.yaml", "servers: {near: {command: sh, args: [near.sh]}}\n");
    workspace.write("project/near.sh", server("here"));
    let finished = run(&workspace, &["-c", "project/haft.yaml", "call", "here"]);
    assert_eq!(finished.code, 0, "{finished:?}");
}

/// A program that asked for JSON gets its error as JSON too.
#[test]
fn errors_are_json_where_json_was_asked_for() {
    let workspace = workspace();
    let finished = run(&workspace, &["--json", "servers", "show", "nope"]);
    let error: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert!(error["error"]["message"].as_str().unwrap().contains("nope"), "{error}");
}
