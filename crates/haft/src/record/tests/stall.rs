//! A hanging disk, simulated by a full pipe.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use super::*;

/// Puts a full pipe in the file's place, so that the next write hangs until it is emptied.
fn hang(dir: &Path) -> fs::File {
    let path = dir.join(TODAY);
    fs::remove_file(&path).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut pipe =
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path).unwrap();
    let chunk = [b'x'; 4096];
    while pipe.write(&chunk).is_ok() {}
    pipe
}

/// Empties the pipe until the log works, and answers with what came after the filling.
async fn unhang(mut pipe: fs::File, log: &ExecutionLog) -> String {
    let mut text = Vec::new();
    while !log.health().is_working() {
        match pipe.read_to_end(&mut text) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => tokio::task::yield_now().await,
            outcome => drop(outcome.unwrap()),
        }
    }
    log.close().await.unwrap();
    let _ = pipe.read_to_end(&mut text);
    String::from_utf8(text).unwrap().trim_start_matches('x').to_owned()
}

fn limits() -> Limits {
    let (stall_after, watch_every) = (Duration::from_millis(20), Duration::from_millis(2));
    Limits { stall_after, watch_every, path_check_every: Duration::ZERO, ..Limits::default() }
}

fn open_watched(dir: &Path, on_failure: LogFailurePolicy) -> ExecutionLog {
    let options = LogOptions { on_failure, ..LogOptions::new(dir) };
    ExecutionLog::open_with(options, limits(), Redactor::new([]), clock()).unwrap()
}

/// On one thread the log's own thread hangs, so the runtime continues.
#[tokio::test]
async fn a_disk_that_hangs_is_noticed_and_the_only_worker_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let log = open_watched(dir.path(), LogFailurePolicy::Refuse);
    let pipe = hang(dir.path());

    let error = append(&log, "e1", NOON).await.unwrap_err();
    assert!(matches!(error, LogError::Stalled { .. }), "{error}");
    assert!(matches!(log.ready().await.unwrap_err(), LogError::Stalled { .. }));
    assert!(matches!(log.close().await.unwrap_err(), LogError::Stalled { .. }));
    append(&log, "e2", NOON).await.unwrap_err();
    assert!(matches!(log.health(), LogHealth::Failing { entries_kept: 2, entries_lost: 0, .. }));

    let text = unhang(pipe, &log).await;
    let lines: Vec<LoggedCall> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines.iter().map(|call| call.execution_id.as_str()).collect::<Vec<_>>(),
        ["e1", "e2"]
    );
    log.ready().await.unwrap();
}

/// With several workers a task of the runtime writes. It hangs with its worker; the call does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_hangs_holds_one_worker_and_no_call() {
    let dir = tempfile::tempdir().unwrap();
    let log = open_watched(dir.path(), LogFailurePolicy::Degrade);
    let pipe = hang(dir.path());
    let tasks = tokio_util::task::TaskTracker::new();
    for id in ["e1", "e2"] {
        let log = log.clone();
        let call = tasks.spawn(async move { append(&log, id, NOON).await });
        tokio::time::timeout(testkit::DEADLINE, call).await.unwrap().unwrap().unwrap();
    }
    // The other worker polls timers and sockets.
    let timer = tasks.spawn(tokio::time::sleep(Duration::from_millis(1)));
    tokio::time::timeout(testkit::DEADLINE, timer).await.unwrap().unwrap();

    let text = unhang(pipe, &log).await;
    assert_eq!(text.lines().count(), 2, "{text}");
}

/// A disk that hangs when the log opens holds the start no longer than a write.
#[tokio::test]
async fn a_disk_that_hangs_at_the_start_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(LogOptions::new(dir.path())));
    let pipe = hang(dir.path());
    let options = LogOptions::new(dir.path());
    let error = ExecutionLog::open_with(options, limits(), Redactor::new([]), clock()).unwrap_err();
    assert!(matches!(error, LogError::Stalled { .. }), "{error}");

    let log = open_watched(dir.path(), LogFailurePolicy::Degrade);
    append(&log, "e1", NOON).await.unwrap();
    let text = unhang(pipe, &log).await;
    assert_eq!(text.trim().lines().count(), 1, "{text}");
}

/// A runtime that ends before its task wrote the entry leaves it to the writer thread.
#[test]
fn a_runtime_that_ends_loses_no_entry() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let tasks = tokio_util::task::TaskTracker::new();
    for number in 0..100 {
        let log = log.clone();
        let call = async move { append(&log, &number.to_string(), NOON).await };
        tasks.spawn_on(call, executor.handle());
    }
    executor.shutdown_background();
    let waiting = tokio::runtime::Builder::new_current_thread().build().unwrap();
    waiting.block_on(log.close()).unwrap();
    drop(log);
    let text = fs::read_to_string(dir.path().join(TODAY)).unwrap();
    assert!(text.lines().all(|line| serde_json::from_str::<LoggedCall>(line).is_ok()), "{text}");
}
