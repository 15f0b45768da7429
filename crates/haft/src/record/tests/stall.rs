//! A disk that hangs, played by a pipe that nobody empties.

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

fn open_watched(dir: &Path, on_failure: OnLogFailure) -> ExecutionLog {
    let limits = Limits { stall_after: Duration::from_millis(20), ..Limits::default() };
    let options = LogOptions { on_failure, ..LogOptions::new(dir) };
    ExecutionLog::open_with(options, limits, Redactor::new([]), clock()).unwrap()
}

/// On one thread the log's own thread is the one that hangs, so the runtime goes on.
#[tokio::test]
async fn a_disk_that_hangs_is_noticed_and_the_only_worker_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let log = open_watched(dir.path(), OnLogFailure::Refuse);
    let pipe = hang(dir.path());

    let error = append(&log, "e1", NOON).await.unwrap_err();
    assert!(matches!(error, LogError::Stalled { .. }), "{error}");
    assert!(matches!(log.ready().unwrap_err(), LogError::Stalled { .. }));
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
    log.ready().unwrap();
}

/// With several workers the caller itself hangs, but nobody else does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_hangs_holds_up_one_worker_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let log = open_watched(dir.path(), OnLogFailure::Degrade);
    let pipe = hang(dir.path());
    let tasks = tokio_util::task::TaskTracker::new();
    let stuck = tasks.spawn({
        let log = log.clone();
        async move { append(&log, "e1", NOON).await }
    });
    while log.health().is_working() {
        std::thread::yield_now();
    }
    append(&log, "e2", NOON).await.unwrap();
    assert!(!stuck.is_finished());

    let text = unhang(pipe, &log).await;
    stuck.await.unwrap().unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
}
