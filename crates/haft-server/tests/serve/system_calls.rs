//! The system calls of a call, seen with strace.

use std::collections::HashSet;

use haft_server::keys::Scope;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testkit::{Program, Workspace};

use crate::served::{SERVE, Served, create_key};

/// Calls that are counted.
const CALLS: usize = 20;

/// The most system calls of one call, without those by which threads wait for work and wake each other: how many
/// of these there are depends on how busy the machine is.
const CALLS_MAX: usize = 9;

/// A call of a Python tool whose script is loaded makes few system calls and resolves no path.
#[tokio::test]
async fn a_warm_python_call_makes_few_system_calls() {
    let workspace = Workspace::new();
    workspace.write("haft.yaml", "registry: {dir: tools}\n");
    workspace.write("tools/same.py", "def run(args): return args");
    let schema = json!({ "type": "object" });
    let tool = json!({
        "name": "same", "description": "", "type": "local", "input_schema": schema,
        "config": { "script_path": "same.py" },
    });
    workspace.write("tools/tools.json", json!({ "tools": [tool] }).to_string());
    workspace.write("tools/mcp.json", json!({ "mcp_servers": {} }).to_string());
    let key = create_key(&workspace, "me", Scope::Admin);
    let trace = workspace.path().join("trace");
    let is_there = std::process::Command::new("strace").arg("-V").output().is_ok();
    assert!(is_there, "strace is missing: install the package `strace`");
    let haft = env!("CARGO_BIN_EXE_haft");
    let strace = ["-f", "-qq", "-o", trace.to_str().unwrap(), haft];
    let program = Program::new("strace", &workspace).args(&strace).args(&SERVE);
    let mut served = Served::run(workspace, Some(key), program);
    let body = json!({ "arguments": { "a": 1 } }).to_string();
    for _ in 0..=CALLS {
        let answer = served.post("/api/v1/tools/same/call", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let service = Pid::from_raw(i32::try_from(served.pid).unwrap()).unwrap();
    kill_process(service, Signal::TERM).unwrap();
    let finished = served.ended();
    assert_eq!(finished.code, 0, "{}", finished.stderr);

    let trace = std::fs::read_to_string(&trace).unwrap();
    let calls = calls_of_service(&trace, served.pid);
    let mut answers = calls.split(|call| call.contains("HTTP/1.1 200"));
    // The first call started the worker.
    answers.next();
    let mut counts: Vec<usize> = answers.take(CALLS).map(|calls| calls.len() + 1).collect();
    assert_eq!(counts.len(), CALLS, "{trace}");
    let resolved = calls.iter().filter(|call| call.contains("same.py") && is_link(call)).count();
    assert!(resolved <= 2, "the path was resolved {resolved} times:\n{trace}");
    // Timers and the next spare worker add to single calls.
    counts.sort_unstable();
    assert!(counts[CALLS / 2] <= CALLS_MAX, "{counts:?}\n{}", calls.join("\n"));
}

fn is_link(call: &str) -> bool {
    call.contains("readlink")
}

/// Returns true if a thread waits for work, or wakes another one.
fn is_scheduling(call: &str) -> bool {
    let is_wake = call.starts_with("write(") && call.contains(r#", "\1\0\0\0\0\0\0\0", 8)"#);
    call.starts_with("futex(") || call.starts_with("epoll_wait(") || is_wake
}

/// The system calls of the service itself, without those of programs that it started.
fn calls_of_service(trace: &str, service: u32) -> Vec<&str> {
    let lines = || trace.lines().filter_map(|line| line.split_once(' '));
    let service = service.to_string();
    let started =
        |(pid, call): &(&str, &str)| call.trim().starts_with("execve(") && *pid != service;
    let programs: HashSet<&str> = lines().filter(started).map(|(pid, _)| pid).collect();
    lines()
        .filter(|(pid, _)| !programs.contains(pid))
        .map(|(_, call)| call.trim())
        // The second half of a call that was interrupted by another thread's.
        .filter(|call| !call.starts_with("<...") && !is_scheduling(call))
        .collect()
}
