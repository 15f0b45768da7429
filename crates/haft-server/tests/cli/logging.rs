//! Log lines on stderr.

use serde_json::{Value, json};
use testkit::Workspace;

use crate::{haft, run, toolbox};

/// Proves S0-49, S0-51, S0-22: T8 for each explicit tool, at debug only.
#[test]
fn explicit_registration_is_logged_at_debug_only() {
    let workspace = toolbox();
    let debug = run(&workspace, &["tools", "list", "--log-level", "debug"]);
    insta::assert_snapshot!(debug.stderr);
    for args in [&["tools", "list"][..], &["tools", "list", "--log-level", "info"]] {
        assert_eq!(run(&workspace, args).stderr, "", "{args:?}");
    }
}

fn with_warning() -> Workspace {
    let workspace = toolbox();
    // A program that is not there is not tried again.
    let servers = r#"{"mcp_servers": {"far": {"command": "no-such-program"}}}"#;
    workspace.write("tools/mcp.json", servers);
    workspace
}

/// Proves S0-47, S0-48: a level shows itself and what is above it.
#[test]
fn the_level_decides_what_is_shown() {
    let workspace = with_warning();
    let lines = |level: &str| {
        let finished = run(&workspace, &["tools", "list", "--log-level", level]);
        let levels = finished.stderr.lines().filter_map(|line| line.split_once(": "));
        levels.map(|(level, _)| level.to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(lines("debug"), "WARNING DEBUG DEBUG DEBUG DEBUG");
    assert_eq!(lines("info"), "WARNING");
    assert_eq!(lines("warning"), "WARNING");
    assert_eq!(lines("error"), "");
}

/// Proves S0-87 for programs: one JSON object per line, also for messages of several lines.
#[test]
fn json_lines_hold_one_record_each() {
    let text = "myai: {toolbox: {mcps: [{name: s, transport: http, url: 'http://127.0.0.1:1/', mode: strict}]}}";
    let workspace = Workspace::with(&[("toolbox.yaml", text)]);
    let args =
        ["-c", "toolbox.yaml", "tools", "list", "--log-format", "json", "--log-level", "debug"];
    let finished = run(&workspace, &args);
    assert_eq!(finished.code, 3);
    let mut records =
        finished.stderr.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let record = records.find(|record| record["level"] == json!("ERROR")).unwrap();
    let message = record["message"].as_str().unwrap();
    assert!(
        message.starts_with("Failed to connect to MCP server 's' at http://127.0.0.1:1/\nError: ")
    );
    assert!(message.ends_with("without connecting to all configured MCP servers."), "{message}");
    assert!(record["timestamp"].is_string());
}

/// Each line that is a record parses; nothing else is between them.
#[test]
fn every_record_is_an_object() {
    let workspace = with_warning();
    let args = ["tools", "list", "--log-format", "json", "--log-level", "debug"];
    let finished = run(&workspace, &args);
    let levels: Vec<Value> = finished
        .stderr
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["level"].clone())
        .collect();
    assert_eq!(levels, ["WARNING", "DEBUG", "DEBUG", "DEBUG", "DEBUG"]);
}

/// Colours only where a terminal is or where they are asked for.
#[test]
fn colours_are_used_only_on_request() {
    let workspace = with_warning();
    let escapes = |args: &[&str], variable: Option<(&str, &str)>| {
        let mut program = haft(&workspace, &[&["tools", "list"], args].concat());
        if let Some((name, value)) = variable {
            program = program.env(name, value);
        }
        let finished = program.run();
        (finished.stdout.contains('\u{1b}'), finished.stderr.contains('\u{1b}'))
    };
    assert_eq!(escapes(&[], None), (false, false));
    assert_eq!(escapes(&["--color", "auto"], Some(("NO_COLOR", "1"))), (false, false));
    assert_eq!(escapes(&["--color", "never"], None), (false, false));
    assert_eq!(escapes(&["--color", "always"], None), (true, true));
    assert_eq!(escapes(&["--color", "always"], Some(("NO_COLOR", "1"))), (true, true));
    let coloured = run(&workspace, &["call", "nothing", "--color", "always"]);
    assert!(coloured.stderr.contains("\u{1b}[1;31merror:\u{1b}[0m"), "{}", coloured.stderr);
}
