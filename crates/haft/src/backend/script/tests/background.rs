//! Processes that a call leaves running.

use super::*;
use crate::backend::process::{Left, kill_all_remaining};
use crate::backend::testing::{runs, until};

/// Leaves one process in the group of the worker, one in a session of its own that ignores SIGTERM,
/// and one orphan that cleared its environment. Returns their numbers.
const LEAVING: &str = r#"
import os, subprocess
def run(args):
    if not args["leave"]:
        return [os.getpid()]
    plain = subprocess.Popen(["sleep", "1000"])
    stubborn = subprocess.Popen(["sh", "-c", "trap '' TERM; while :; do sleep 1000; done"], start_new_session=True)
    orphan = subprocess.run(
        ["env", "-i", "PATH=" + os.environ["PATH"], "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!"],
        capture_output=True, text=True, check=True)
    return [os.getpid(), plain.pid, stubborn.pid, int(orphan.stdout)]
"#;

async fn pids(bench: &Bench, arguments: &str) -> Vec<i32> {
    serde_json::from_str(&bench.data(arguments).await).unwrap()
}

#[tokio::test]
async fn everything_a_call_started_ends_with_it() {
    let bench = Bench::new(LEAVING);
    let first = pids(&bench, r#"{"leave":false}"#).await;
    assert_eq!(pids(&bench, r#"{"leave":false}"#).await, first, "the worker stays warm");
    let left = pids(&bench, r#"{"leave":true}"#).await;
    assert_eq!(left[0], first[0]);
    assert_eq!(left.len(), 4);
    for pid in &left[1..] {
        assert!(!runs(*pid), "{pid} of {left:?} survived its call");
    }
    // The script may depend on the ended process, so it is loaded again.
    assert_ne!(pids(&bench, r#"{"leave":false}"#).await, first);
    until("the old worker is gone", || !runs(first[0])).await;
}

#[tokio::test]
async fn what_a_script_starts_while_it_is_loaded_stays_with_its_worker() {
    let script = r#"
import os, subprocess
helper = subprocess.Popen(["sleep", "1000"])
def run(args):
    return [os.getpid(), helper.pid]
"#;
    let bench = Bench::new(script);
    let first = pids(&bench, "{}").await;
    assert_eq!(pids(&bench, "{}").await, first);
    assert!(runs(first[1]));
    bench.tool.stop().await;
    until("the helper is gone", || !runs(first[1])).await;
}

#[tokio::test]
async fn children_that_ended_do_not_cost_a_worker() {
    let script = r#"
import os, subprocess
def run(args):
    subprocess.run(["true"])
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    return [os.getpid()]
"#;
    let bench = Bench::new(script);
    let first = pids(&bench, "{}").await;
    for _ in 0..3 {
        assert_eq!(pids(&bench, "{}").await, first);
    }
}

/// With `background: allow`, processes outlive the call and the worker, and end with the scope.
#[tokio::test]
async fn background_processes_may_continue_until_their_scope_ends() {
    let bench = Bench::with(LEAVING, |settings| settings.background = Background::Allow);
    let left = pids(&bench, r#"{"leave":true}"#).await;
    assert_eq!(pids(&bench, r#"{"leave":false}"#).await, left[..1], "the worker stays");
    assert!(left.iter().all(|pid| runs(*pid)), "{left:?}");
    bench.tool.stop().await;
    until("the worker is gone", || !runs(left[0])).await;
    // The orphan without a marker is out of reach by now; the two others carry it.
    assert!(left[1..].iter().all(|pid| runs(*pid)), "{left:?}");
    assert_eq!(kill_all_remaining(bench.warm.scope()).await, Left::Nothing);
    until("the others are gone", || !runs(left[1]) && !runs(left[2])).await;
    let orphan = rustix::process::Pid::from_raw(left[3]).unwrap();
    let _ = rustix::process::kill_process(orphan, rustix::process::Signal::KILL);
}
