//! Output for terminals only: progress, cut columns, fewer log lines.

use serde_json::json;

use crate::mcp_support::{at_terminal, broken, server, three, workspace};
use crate::run;

/// The progress line is shown, and removed before the answer.
#[test]
fn progress_is_shown_and_taken_back() {
    let workspace = workspace(&json!({
        "slow": server(&json!({"delay_ms": {"initialize": 50}})),
        "bad": broken(),
    }));
    let shown = at_terminal(&workspace, 80, "\"$haft\" servers list --connect").stdout;
    let (progress, answer) = shown.split_once("SERVER").expect("an answer");
    // The second one makes it two, whichever ends first.
    assert!(progress.contains(" of 2: ") && progress.contains("slow"), "{shown:?}");
    assert!(progress.contains("\r\u{1b}[K"), "{shown:?}");
    let last = progress.rsplit("\r\u{1b}[K").next().unwrap();
    assert!(!last.contains("connecting") && !answer.contains("connecting"), "{shown:?}");
}

/// No progress if stderr is not a terminal, or one that cannot erase it.
#[test]
fn progress_is_for_terminals_only() {
    let workspace = three();
    for line in ["\"$haft\" servers ping 2>errors", "TERM=dumb \"$haft\" servers ping"] {
        let shown = at_terminal(&workspace, 80, line).stdout;
        assert!(!shown.contains("connecting"), "{shown:?}");
    }
    assert_eq!(workspace.read("errors").as_deref(), Some(""));
    assert_eq!(run(&workspace, &["servers", "ping"]).stderr, "");
}

/// Names that do not fit are cut, so that one line stays one line.
#[test]
fn progress_fits_the_terminal() {
    let name = "a_server_with_a_very_long_name";
    let slow = server(&json!({"delay_ms": {"initialize": 50}}));
    let workspace = workspace(&json!({name: slow}));
    let shown = at_terminal(&workspace, 30, "\"$haft\" tools list >/dev/null").stdout;
    let drawn: Vec<&str> = shown.split("\r\u{1b}[K").collect();
    assert!(drawn.contains(&"connecting 1 of 1: a_serve..."), "{drawn:?}");
}

/// Log lines come above the progress and never into it.
#[test]
fn log_lines_and_progress_keep_apart() {
    let workspace = workspace(&json!({
        "slow": server(&json!({"delay_ms": {"initialize": 50}})),
        "gap": crate::mcp_support::server_with(&json!({}), json!({"prompts": ["absent"]})),
    }));
    let shown = at_terminal(&workspace, 120, "\"$haft\" servers ping slow gap").stdout;
    let line = shown.lines().find(|line| line.contains("absent")).expect("a warning");
    let line = line.rsplit("\r\u{1b}[K").next().unwrap();
    assert!(line.contains("WARNING") && !line.contains("connecting"), "{shown:?}");
}

/// Descriptions are cut at the terminal's edge, and whole everywhere else.
#[test]
fn descriptions_are_cut_at_a_terminal_only() {
    let long = "Says everything there is to say about this tool, at length and in detail";
    let tools =
        json!({"tools": [{"name": "t", "description": long, "inputSchema": {"type": "object"}}]});
    let workspace = workspace(&json!({"s": server(&tools)}));
    let shown = at_terminal(&workspace, 60, "\"$haft\" tools list 2>/dev/null").stdout;
    let row = shown.lines().find(|line| line.contains("dynamic")).unwrap();
    assert!(row.trim_end().ends_with("..."), "{row:?}");
    for args in [&["tools", "list"][..], &["tools", "list", "--json"]] {
        assert!(run(&workspace, args).stdout.contains(long));
    }
}

/// At a terminal, one-shot commands log only warnings by default.
#[test]
fn what_is_only_worth_knowing_stays_out_of_a_terminal() {
    let workspace = three();
    let told = ": connected, ";
    let at = |line: &str| at_terminal(&workspace, 120, line).stdout;
    for command in ["tools list", "call text", "explain echo"] {
        let shown = at(&format!("\"$haft\" {command}"));
        assert!(!shown.contains(told) && shown.contains("out of cheese"), "{command}: {shown}");
        let shown = at(&format!("\"$haft\" {command} --log-level debug"));
        assert!(shown.contains("not explicitly configured"), "{command}: {shown}");
    }
    // A call logs one line for each connection; the tools of native files have defaults without a line.
    let piped = run(&workspace, &["call", "text"]).stderr;
    assert!(piped.contains("INFO: good: connected, 3 tools, "), "{piped}");
    assert!(!piped.contains("not explicitly configured"), "{piped}");
    assert!(at("\"$haft\" call text --log-level info").contains(told));
}
