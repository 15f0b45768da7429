//! Real processes that try to escape.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::marker::MARKER_VARIABLE;
use super::*;
use crate::backend::testing::{alive, exists, line_in, runs, until, until_gone};

/// Starts `script` in a tree and waits for its first line, which begins with the marker.
async fn start(script: &str) -> (ProcessTree, Vec<String>) {
    start_in(ProcessScope::new(), script).await
}

async fn start_in(scope: ProcessScope, script: &str) -> (ProcessTree, Vec<String>) {
    start_with(Stdio::null(), scope, script).await
}

/// The script's standard input stays open until it is taken from the tree or the tree is dropped.
async fn start_reader(script: &str) -> (ProcessTree, Vec<String>) {
    start_with(Stdio::piped(), ProcessScope::new(), script).await
}

async fn start_with(stdin: Stdio, scope: ProcessScope, script: &str) -> (ProcessTree, Vec<String>) {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).stdin(stdin).stdout(Stdio::piped());
    let mut tree = ProcessTree::spawn(&mut shell, scope).unwrap();
    let mut lines = BufReader::new(tree.take_stdout().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    (tree, line.split(' ').map(str::to_owned).collect())
}

/// Five processes: the shell, one in its group, one that ignores SIGTERM, one in its own session,
/// and one orphaned there.
const FAMILY: &str = r#"
    trap '' TERM HUP INT
    sleep 1000 &
    sh -c "trap '' TERM HUP INT; sleep 1000; :" &
    setsid sleep 1000 &
    sh -c 'setsid sleep 1000 & exit'
    echo $HAFT_TREE
    wait
"#;

/// Ends shortly after its input, as Python would, and leaves a child behind that has neither its
/// group nor its marker.
const TRACELESS: &str = "env -i setsid sleep 1000 & echo $HAFT_TREE $!; read -r _; sleep 0.2";

/// Proves S2-EC-01 and S2-Q-06 for processes that ignore SIGTERM, fork and `setsid` away.
#[tokio::test]
async fn dropping_the_tree_leaves_no_process_and_no_zombie() {
    let (tree, words) = start(FAMILY).await;
    let pid = tree.id();
    until("the family is complete", || alive(&words[0]) >= 5).await;
    drop(tree);
    until_gone(&words[0]).await;
    until("the zombie is collected", || !exists(pid)).await;
}

/// Proves S2-EC-01: an explicit kill reports within a second that nothing is left.
#[tokio::test]
async fn an_awaited_kill_returns_when_nothing_is_left() {
    let (tree, words) = start(FAMILY).await;
    let pid = tree.id();
    assert_eq!(tree.kill().await, Left::Nothing);
    assert_eq!((alive(&words[0]), exists(pid)), (0, false));
}

#[tokio::test]
async fn a_descendant_that_cleared_its_environment_and_left_the_group_dies_too() {
    let (tree, words) = start("setsid env -i sleep 1000 & echo $HAFT_TREE $!; wait").await;
    let pid: i32 = words[1].parse().unwrap();
    until("it has left the group", || is_sleep(pid)).await;
    drop(tree);
    until("it is gone", || !runs(pid)).await;
}

#[tokio::test]
async fn what_a_child_leaves_behind_when_it_ends_dies_with_the_tree() {
    let (mut tree, words) = start("setsid sleep 1000 & sleep 1000 & echo $HAFT_TREE").await;
    assert_eq!(tree.wait().await.unwrap(), Exit::Code(0));
    // A process between fork and exec briefly shows no environment.
    until("both run", || alive(&words[0]) == 2).await;
    drop(tree);
    until_gone(&words[0]).await;
}

/// The leader ends by itself, so afterwards nothing leads from it to its child.
#[tokio::test]
async fn a_descendant_without_a_trace_dies_with_a_tree_that_ends_by_itself() {
    let (mut tree, words) = start_reader(TRACELESS).await;
    let pid: i32 = words[1].parse().unwrap();
    until("it has left", || is_sleep(pid)).await;
    let stdin = tree.take_stdin();
    tree.end_after(|| drop(stdin), Duration::from_secs(20)).await;
    until("it is gone", || !runs(pid)).await;
}

#[tokio::test]
async fn a_stranger_with_a_mark_of_another_instance_is_spared() {
    let mut stranger = Command::new("sleep");
    stranger.arg("1000").env(MARKER_VARIABLE, "0000.1.1:").kill_on_drop(true);
    let mut stranger = stranger.spawn().unwrap();
    let (tree, _) = start(FAMILY).await;
    assert_eq!(tree.kill().await, Left::Nothing);
    assert_eq!(stranger.try_wait().unwrap(), None);
}

/// Proves the fault "Haft itself is killed with -9": nothing survives it by 2 s, not even a process
/// that cleared its environment, and the watchdog goes as well.
#[tokio::test]
async fn nothing_survives_a_kill_9_of_haft_itself() {
    if let Some(directory) = env::var_os(VICTIM) {
        let (_tree, words) = start(FAMILY).await;
        let (_other, cleared) = start("echo $HAFT_TREE; exec env -i sleep 1000").await;
        let (_third, gone) = start_reader(TRACELESS).await;
        let pid: i32 = gone[1].parse().unwrap();
        until("it has left", || is_sleep(pid)).await;
        tell(Path::new(&directory), &format!("{} {} {pid}", words[0], cleared[0]));
        return std::future::pending().await;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut victim = act_as_victim("nothing_survives_a_kill_9_of_haft_itself", directory.path());
    let told = line_in(&directory.path().join("told")).await;
    let prefix = told.split('.').next().unwrap();
    let traceless: i32 = told.rsplit(' ').next().unwrap().parse().unwrap();
    let cleared = children_of(victim.id().unwrap());
    assert!(alive(prefix) >= 5 && cleared.len() >= 3, "{told} {cleared:?}");
    victim.start_kill().unwrap();
    assert_eq!(victim.wait().await.unwrap().signal(), Some(9));
    until_gone(prefix).await;
    until("the children are gone", || !cleared.iter().any(|&pid| runs(pid))).await;
    until("the one without a trace is gone", || !runs(traceless)).await;
}

/// Two runtimes may live in one process: the end of one leaves the tools of the other alone.
#[tokio::test]
async fn at_the_end_everything_that_remains_of_a_scope_is_killed() {
    let (ended, other) = (ProcessScope::new(), ProcessScope::new());
    let (tree, first) = start_in(ended, FAMILY).await;
    let (another, second) = start_in(ended, FAMILY).await;
    let (bystander, spared) = start_in(other, FAMILY).await;
    until("the bystanders are complete", || alive(&spared[0]) >= 6).await;
    std::mem::forget((tree, another));
    assert_eq!(kill_all_remaining(ended).await, Left::Nothing);
    assert_eq!((alive(&first[0]), alive(&second[0]), alive(&spared[0])), (0, 0, 6));
    assert_eq!(bystander.kill().await, Left::Nothing);
}

/// A killed watchdog is replaced when the next child starts.
#[tokio::test]
async fn a_lost_watchdog_is_replaced() {
    if let Some(directory) = env::var_os(VICTIM) {
        let (_tree, _) = start(FAMILY).await;
        let watchdog = children_of(std::process::id()).into_iter().find(|&pid| is_watchdog(pid));
        let watchdog = rustix::process::Pid::from_raw(watchdog.unwrap()).unwrap();
        rustix::process::kill_process(watchdog, rustix::process::Signal::KILL).unwrap();
        until("the watchdog is dead", || !runs(watchdog.as_raw_pid())).await;
        let (_other, words) = start(FAMILY).await;
        tell(Path::new(&directory), &words[0]);
        return std::future::pending().await;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut victim = act_as_victim("a_lost_watchdog_is_replaced", directory.path());
    let told = line_in(&directory.path().join("told")).await;
    victim.kill().await.unwrap();
    until_gone(told.split('.').next().unwrap()).await;
}

/// Set in a copy of this program that acts as Haft and is killed: the file for its report.
const VICTIM: &str = "HAFT_TEST_CHILD";

fn act_as_victim(test: &str, directory: &Path) -> tokio::process::Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("backend::process::tests::{test}")])
        .env(VICTIM, directory)
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

fn tell(directory: &Path, text: &str) {
    std::fs::write(directory.join("told"), format!("{text}\n")).unwrap();
}

fn children_of(pid: u32) -> Vec<i32> {
    scan::processes(scan::Start::EVER)
        .unwrap()
        .into_iter()
        .filter(|process| u32::try_from(process.parent).unwrap() == pid)
        .map(|process| process.pid)
        .collect()
}

/// Returns true if the process has become `sleep`, after `env` and `setsid`.
fn is_sleep(pid: i32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).unwrap().starts_with(b"sleep")
}

fn is_watchdog(pid: i32) -> bool {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    String::from_utf8_lossy(&command).contains("haft-watchdog")
}
