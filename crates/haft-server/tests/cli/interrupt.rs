//! Signals during a call, and readers that go away.

use serde_json::{Value, json};
use testkit::{Program, Running, Workspace, eventually, is_running};

use crate::{haft, run, toolbox};

/// Starts the slow call and waits until its process and that process's child run.
fn slow_call(workspace: &Workspace) -> (Running, Vec<u32>) {
    let pids = workspace.path().join("pids");
    let argument = format!("pids={}", pids.display());
    let calling = haft(workspace, &["call", "wait", &argument]).start();
    let text = eventually("the tool runs", || std::fs::read_to_string(&pids).ok());
    let pids: Vec<u32> = text.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| is_running(*pid)));
    (calling, pids)
}

fn assert_cancelled(send: impl Fn(&Running)) {
    let workspace = toolbox();
    let (calling, pids) = slow_call(&workspace);
    send(&calling);
    let finished = calling.finish();
    assert_eq!(finished.code, 130, "{}", finished.stderr);
    assert_eq!(finished.stdout, "");
    assert!(
        finished.stderr.starts_with("error: the call of `wait` was cancelled\n"),
        "{}",
        finished.stderr
    );
    let left: Vec<_> = pids.iter().filter(|pid| is_running(**pid)).collect();
    assert!(left.is_empty(), "{left:?} still run");
    let log = run(&workspace, &["log", "--json"]).stdout;
    let entry: Value = serde_json::from_str(&log).expect("exactly one entry");
    assert_eq!((&entry["tool"], &entry["error"]["code"]), (&json!("wait"), &json!("Cancelled")));
}

/// Proves S1-5, S2-SC-006: Ctrl-C ends the call in the ordinary way, log entry included.
#[test]
fn ctrl_c_cancels_a_call_and_leaves_no_process() {
    assert_cancelled(Running::interrupt);
}

/// Proves S1-5, S2-SC-006: SIGTERM likewise.
#[test]
fn sigterm_cancels_a_call_and_leaves_no_process() {
    assert_cancelled(Running::terminate);
}

/// Nothing survives `kill -9` of Haft itself: neither the worker nor what it started.
#[test]
fn a_killed_haft_leaves_no_process() {
    let workspace = toolbox();
    let (calling, pids) = slow_call(&workspace);
    calling.kill();
    let finished = calling.finish();
    assert_eq!(finished.stdout, "");
    for pid in pids {
        eventually("the process is gone", || (!is_running(pid)).then_some(()));
    }
}

/// A reader that has enough (`| head -1`) ends the program without a word.
#[test]
fn a_broken_pipe_is_quiet() {
    let workspace = toolbox();
    let commands =
        ["config show", "config schema", "tools list --json", "completions bash", "--help"];
    for command in commands {
        let binary = env!("CARGO_BIN_EXE_haft");
        // The gate opens when the reader is gone, so that the very first byte has no reader.
        let writer = format!("{{ read _ <gate; {binary} {command}; echo code $? >&2; }}");
        let reader = "{ exec 0<&-; echo gone >gate; }";
        let script = format!("rm -f gate; mkfifo gate; {writer} | {reader}");
        let finished = Program::new("sh", &workspace).args(&["-c", &script]).run();
        assert_eq!(finished.stderr, "code 0\n", "{command}");
    }
}
