//! Text from elsewhere, shown at a terminal.

use serde_json::Value;
use testkit::Workspace;

use crate::{haft, run, transcript};

/// A colour, a line that looks like ours, a reversed text, a hidden letter, and a C1 control.
const EVIL: &str = "x\\u001b[31m\\nERROR: forged\\u202ereversed\\u200bhidden\\u009b2J";

fn evil() -> Workspace {
    let tools = format!(
        r#"{{"tools": [{{"name": "evil {EVIL}", "description": "{EVIL}", "type": "local",
            "input_schema": {{"type": "object", "description": "{EVIL}"}}, "config": {{"command": ["cat"], "args": ["-", "{EVIL}"]}}}},
          {{"name": "echo", "description": "d", "type": "local", "input_schema": {{"type": "object"}}, "config": {{"command": ["cat"]}}}},
          {{"name": "say", "description": "d", "type": "local", "input_schema": {{"type": "object"}}, "config": {{"script_path": "say.py"}}}},
          {{"name": "fail", "description": "d", "type": "local", "input_schema": {{"type": "object"}}, "config": {{"script_path": "fail.py"}}}}]}}"#
    );
    let python = EVIL.replace("\\u009b", "\\x9b");
    Workspace::with(&[
        ("haft.yaml", "registry: {dir: t}\n"),
        ("t/tools.json", &tools),
        ("t/mcp.json", r#"{"mcp_servers": {}}"#),
        ("t/say.py", &format!("def run(args):\n    return '{python}'\n")),
        ("t/fail.py", &format!("def run(args):\n    raise ValueError('{python}')\n")),
    ])
}

fn assert_harmless(text: &str, what: &str) {
    for c in ['\u{1b}', '\u{202e}', '\u{200b}', '\u{9b}'] {
        assert!(!text.contains(c), "{what} holds {c:?}:\n{text}");
    }
}

/// Proves the terminal row of the attacks: names, descriptions, schemas, results and errors.
#[test]
fn text_from_elsewhere_is_shown_escaped() {
    let workspace = evil();
    let name = run(&workspace, &["tools", "list", "--json"]);
    let tools: Value = serde_json::from_str(&name.stdout).unwrap();
    let name = tools[0]["name"].as_str().unwrap().to_owned();
    let argument = format!("{{\"a\": \"{EVIL}\"}}");
    let commands: [&[&str]; 11] = [
        &["tools", "list"],
        &["tools", "list", "--json"],
        &["tools", "list", "--log-level", "debug"],
        &["tools", "list", "--log-level", "debug", "--log-format", "json"],
        &["tools", "show", &name],
        &["explain", &name],
        &["call", "echo", &argument],
        &["call", "echo", &argument, "--json"],
        &["call", "say"],
        &["call", "fail"],
        &["log"],
    ];
    for command in commands {
        let finished = run(&workspace, command);
        assert_harmless(&finished.stdout, &format!("stdout of {command:?}"));
        assert_harmless(&finished.stderr, &format!("stderr of {command:?}"));
    }
    let lines = run(&workspace, &["log"]).stdout;
    assert_eq!(lines.lines().count(), 4, "one line a call:\n{lines}");
    insta::assert_snapshot!(transcript(&workspace, &run(&workspace, &["tools", "list"])));
}

/// Escaping changes nothing for a program that reads the JSON.
#[test]
fn json_output_keeps_its_meaning() {
    let workspace = evil();
    let finished = run(&workspace, &["call", "echo", &format!("{{\"a\": \"{EVIL}\"}}"), "--json"]);
    let envelope: Value = serde_json::from_str(&finished.stdout).unwrap();
    let expected = "x\u{1b}[31m\nERROR: forged\u{202e}reversed\u{200b}hidden\u{9b}2J";
    assert_eq!(envelope["data"]["a"], expected);
}

/// Proves the terminal row of the attacks: a configuration file cannot forge a line either.
#[test]
fn names_in_a_configuration_are_shown_escaped() {
    let text = format!(
        "{{\"servers\": {{\"{EVIL}\": {{\"comand\": \"{EVIL}\", \"mode\": \"{EVIL}\"}}}}}}"
    );
    let workspace = Workspace::with(&[("haft.json", &text)]);
    let finished = haft(&workspace, &["check"]).run();
    assert_eq!(finished.code, 2);
    assert_harmless(&finished.stderr, "check");
    insta::assert_snapshot!(finished.stderr);
}
