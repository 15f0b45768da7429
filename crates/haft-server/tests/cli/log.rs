//! `haft log`.

use serde_json::{Value, json};
use testkit::Workspace;

use crate::{haft, run, toolbox, transcript};

fn with_calls() -> Workspace {
    let workspace = toolbox();
    assert_eq!(run(&workspace, &["call", "greet", "name=Ada", "--session", "one"]).code, 0);
    assert_eq!(run(&workspace, &["call", "greet", "name:=5", "--session", "two"]).code, 1);
    assert_eq!(run(&workspace, &["call", "echo", "a=1"]).code, 0);
    assert_eq!(run(&workspace, &["call", "nothing"]).code, 1);
    workspace
}

fn tools(workspace: &Workspace, args: &[&str]) -> Vec<String> {
    let finished = run(workspace, &[&["log", "--json"], args].concat());
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""), "{args:?}");
    let calls = finished.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    calls.map(|call| call["tool"].as_str().unwrap().to_owned()).collect()
}

/// Proves S2-KE-05, S2-FR-011, S2-SC-006: one line for each call, and every filter.
#[test]
fn calls_are_listed_and_filtered() {
    let workspace = with_calls();
    insta::assert_snapshot!(transcript(&workspace, &run(&workspace, &["log"])));
    let of = |args: &[&str]| tools(&workspace, args).join(",");
    assert_eq!(of(&[]), "greet,greet,echo,nothing");
    assert_eq!(of(&["--tool", "greet"]), "greet,greet");
    assert_eq!(of(&["--status", "error"]), "greet,nothing");
    assert_eq!(of(&["--status", "success", "--tool", "echo"]), "echo");
    assert_eq!(of(&["--session", "two"]), "greet");
    assert_eq!(of(&["--limit", "2"]), "echo,nothing");
    assert_eq!(of(&["--since", "1h"]), "greet,greet,echo,nothing");
    assert_eq!(of(&["--until", "1h"]), "");
    assert_eq!(of(&["--since", "2099-01-01"]), "");
    assert_eq!(of(&["--until", "2099-01-01T00:00:00Z"]), "greet,greet,echo,nothing");
    let shown = run(&workspace, &["log", "show", "--tool", "greet", "--status", "error", "--json"]);
    assert_eq!(shown.stdout.lines().count(), 1);
    let elsewhere = run(&workspace, &["log", "--dir", "logs", "--json", "-c", "nowhere.yaml"]);
    assert_eq!(elsewhere.stdout.lines().count(), 4, "{}", elsewhere.stderr);
}

/// Proves S2-KE-05, S2-KE-06, S2-EC-10: one call whole, found by the id its envelope had.
#[test]
fn one_call_is_shown_by_its_id() {
    let workspace = toolbox();
    let finished = run(&workspace, &["call", "greet", "name:=5", "--session", "s", "--json"]);
    let envelope: Value = serde_json::from_str(&finished.stdout).unwrap();
    let id = envelope["execution_id"].as_str().unwrap();
    let finished = run(&workspace, &["log", "show", id]);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    let entry: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((&entry["input"], &entry["execution_id"]), (&json!({"name": 5}), &json!(id)));
    let missing = run(&workspace, &["log", "show", "nobody"]);
    assert_eq!(missing.code, 1);
    insta::assert_snapshot!(transcript(&workspace, &missing));
}

/// An empty log is not an error.
#[test]
fn an_empty_log_is_reported() {
    let workspace = toolbox();
    insta::assert_snapshot!(transcript(&workspace, &run(&workspace, &["log"])));
}

/// Invalid lines are counted, the others shown.
#[test]
fn broken_lines_are_left_out_with_a_warning() {
    let workspace = with_calls();
    let folder = std::fs::read_dir(workspace.path().join("logs")).unwrap();
    let file = folder.map(|it| it.unwrap().path()).find(|it| it.extension().is_some()).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("nonsense\n{text}{{\"half\n")).unwrap();
    let finished = run(&workspace, &["log"]);
    assert_eq!((finished.code, finished.stdout.lines().count()), (0, 4));
    insta::assert_snapshot!(finished.stderr);
}

/// A folder, a device and a pipe with the name of a log file: each is named, the rest is shown.
#[test]
fn files_that_cannot_be_read_are_left_out_with_a_warning() {
    let workspace = with_calls();
    let logs = workspace.path().join("logs");
    std::fs::create_dir(logs.join("tools-2099-11-10.jsonl")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", logs.join("tools-2099-11-11.jsonl")).unwrap();
    let pipe = logs.join("tools-2099-11-12.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    let finished = run(&workspace, &["log"]);
    assert_eq!((finished.code, finished.stdout.lines().count()), (0, 4), "{}", finished.stderr);
    for name in ["2099-11-10", "2099-11-11", "2099-11-12"] {
        assert!(finished.stderr.contains(name), "{}", finished.stderr);
    }
    let nothing = run(&workspace, &["log", "--tool", "nobody"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (1, ""));
}

/// `--follow` shows new calls, and ends by a signal.
#[test]
fn follow_shows_calls_as_they_come() {
    let workspace = with_calls();
    let following = haft(&workspace, &["log", "--follow", "--tool", "echo"]).start();
    assert!(following.line().contains(r#"{"a":1}"#));
    assert_eq!(run(&workspace, &["call", "greet", "name=Eve"]).code, 0);
    assert_eq!(run(&workspace, &["call", "echo", "b=2"]).code, 0);
    assert!(following.line().contains(r#"{"b":2}"#));
    following.interrupt();
    let finished = following.finish();
    assert_eq!((finished.code, finished.stdout.as_str(), finished.stderr.as_str()), (130, "", ""));
}
