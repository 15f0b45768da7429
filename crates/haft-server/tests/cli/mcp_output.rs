//! Answers that are too long for a model, and how to get the rest.

use serde_json::{Value, json};
use testkit::Workspace;

use crate::mcp_support::server;
use crate::run;

/// A workspace whose answers are cut after 1000 bytes.
fn short() -> Workspace {
    let settings = json!({
        "defaults": {"output_bytes_max": 1000},
        "servers": {"s": server(&json!({"tools": ["big", "echo", "fail", "every_content"]}))},
    });
    Workspace::with(&[("haft.json", &settings.to_string())])
}

/// Proves S3-EC-4: the mark names the execution and the command, which prints the whole answer.
#[test]
fn a_cut_answer_names_the_command_for_the_rest() {
    let workspace = short();
    let finished = run(&workspace, &["call", "big", "bytes=5000", "--log-level", "error"]);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let (_, mark) = finished.stdout.split_once("\n[").expect("a mark");
    assert!(mark.starts_with("4000 of 5000 bytes cut here; `haft log show "), "{mark}");
    let command = mark.split('`').nth(1).unwrap();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let whole = run(&workspace, &words);
    assert_eq!((whole.code, whole.stderr.as_str(), whole.stdout.len()), (0, "", 5000));
    assert!(whole.stdout.starts_with(&finished.stdout[..1000]));
    // The envelope for programs agrees, and so does the log entry.
    let finished = run(&workspace, &["call", "big", "bytes=5000", "--json"]);
    let envelope: Value = serde_json::from_str(&finished.stdout).unwrap();
    let id = envelope["execution_id"].as_str().unwrap();
    assert!(envelope["content"][0]["text"].as_str().unwrap().contains(id));
    let entry = run(&workspace, &["log", "show", id]).stdout;
    assert!(entry.contains(&whole.stdout), "the entry holds the whole");
}

/// `--output` for every kind of answer.
#[test]
fn only_the_output_is_printed() {
    let workspace = short();
    let output = |call: &[&str], args: &[&str]| {
        let finished = run(&workspace, &[&["call", "--json"], call].concat());
        let envelope: Value = serde_json::from_str(&finished.stdout).unwrap();
        let id = envelope["execution_id"].as_str().unwrap().to_owned();
        run(&workspace, &[&["log", "show", &id, "--output"], args].concat())
    };
    let blocks = output(&["every_content"], &[]);
    assert_eq!(blocks.code, 0, "{}", blocks.stderr);
    assert!(blocks.stdout.contains("[image/png, "), "{}", blocks.stdout);
    let json = output(&["every_content"], &["--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json[0]["type"], json!("text"));
    let failed = output(&["fail"], &[]);
    assert_eq!(failed.code, 0, "a tool that says that it failed has said something");
    let nothing = output(&["unknown"], &[]);
    assert_eq!(nothing.code, 1);
    assert!(nothing.stderr.contains("has no output"), "{}", nothing.stderr);
    let without_id = run(&workspace, &["log", "show", "--output"]);
    assert_eq!(without_id.code, 2, "{}", without_id.stderr);
}
