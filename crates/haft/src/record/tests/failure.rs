//! Disks that are full, gone or locked. The log is never silent about it and loses nothing that
//! it has room for.

use std::io::ErrorKind;
use std::os::unix::fs::symlink;

use super::*;

fn options(dir: &Path, on_failure: LogFailurePolicy) -> LogOptions {
    LogOptions { on_failure, ..LogOptions::new(dir) }
}

fn fill_disk(dir: &Path) {
    let _ = fs::remove_file(dir.join(TODAY));
    symlink("/dev/full", dir.join(TODAY)).unwrap();
}

fn make_room(dir: &Path) {
    fs::remove_file(dir.join(TODAY)).unwrap();
}

/// Small limits, and no retries behind the test's back.
/// The file is looked at before each write: the tests replace it.
fn limits(backlog_entries_max: usize) -> Limits {
    let (retry_every, path_check_every) = (Duration::from_hours(1), Duration::ZERO);
    Limits { retry_every, path_check_every, backlog_entries_max, ..Limits::default() }
}

fn open_limited(options: LogOptions, limits: Limits) -> ExecutionLog {
    ExecutionLog::open_with(options, limits, Redactor::new([]), clock()).unwrap()
}

#[track_caller]
fn assert_full(outcome: Result<(), LogError>) {
    let Err(LogError::Write { path, source }) = outcome else { panic!("{outcome:?}") };
    assert_eq!((path.ends_with(TODAY), source.kind()), (true, ErrorKind::StorageFull));
}

#[tokio::test]
async fn a_full_disk_refuses_calls_until_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let log = open_limited(options(dir.path(), LogFailurePolicy::Refuse), limits(10));
    fill_disk(dir.path());
    log.ready().await.unwrap();
    assert_full(append(&log, "e1", NOON).await);
    assert_full(log.ready().await);
    assert_full(log.close().await);
    let LogHealth::Failing { since, entries_kept: 1, entries_lost: 0, .. } = log.health() else {
        panic!("{:?}", log.health())
    };
    assert_eq!(since, at(NOON));

    make_room(dir.path());
    log.ready().await.unwrap();
    assert!(log.health().is_working());
    assert_eq!(ids(dir.path()), ["e1"]);
}

/// A process that makes one call has no earlier failure to judge by.
#[test]
fn a_disk_that_is_full_from_the_start_is_refused_when_the_log_opens() {
    let dir = tempfile::tempdir().unwrap();
    fill_disk(dir.path());
    let options = options(dir.path(), LogFailurePolicy::Refuse);
    assert_full(ExecutionLog::open(options, Redactor::new([]), clock()).map(drop));
}

#[tokio::test]
async fn opening_the_log_again_and_again_leaves_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    for id in ["e1", "e2", "e3"] {
        open(LogOptions::new(dir.path()));
        append(&open(LogOptions::new(dir.path())), id, NOON).await.unwrap();
    }
    let text = fs::read_to_string(dir.path().join(TODAY)).unwrap();
    assert_eq!((text.lines().count(), text.contains("\n\n")), (3, false), "{text}");
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_lets_calls_run_degraded() {
    let dir = tempfile::tempdir().unwrap();
    let blocked = dir.path().join("logs");
    fs::write(&blocked, "").unwrap();
    let log = open_limited(options(&blocked, LogFailurePolicy::Degrade), limits(1));
    for id in ["e1", "e2"] {
        log.ready().await.unwrap();
        append(&log, id, NOON).await.unwrap();
    }
    let health = log.health();
    assert!(
        matches!(health, LogHealth::Failing { entries_kept: 1, entries_lost: 1, .. }),
        "{health:?}"
    );
    log.close().await.unwrap_err();
    fs::remove_file(&blocked).unwrap();
    log.close().await.unwrap();
    assert_eq!(ids(&blocked), ["e1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_lets_calls_run_degraded_and_what_fits_is_written_later() {
    let dir = tempfile::tempdir().unwrap();
    let log = open_limited(options(dir.path(), LogFailurePolicy::Degrade), limits(3));
    fill_disk(dir.path());
    for id in ["e1", "e2", "e3", "e4", "e5"] {
        log.ready().await.unwrap();
        append(&log, id, NOON).await.unwrap();
    }
    let health = log.health();
    assert!(
        matches!(health, LogHealth::Failing { entries_kept: 3, entries_lost: 2, .. }),
        "{health:?}"
    );

    make_room(dir.path());
    log.close().await.unwrap();
    append(&log, "e6", NOON).await.unwrap();
    assert_eq!(ids(dir.path()), ["e1", "e2", "e3", "e6"]);
    assert!(matches!(log.health(), LogHealth::Working { entries_lost: 2, .. }));
}

#[tokio::test]
async fn the_backlog_is_bounded_in_bytes_and_recovers_even_if_nothing_fits() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { backlog_bytes_max: 100, ..limits(10) };
    let log = open_limited(options(dir.path(), LogFailurePolicy::Refuse), limits);
    fill_disk(dir.path());
    assert_full(append(&log, "too big to keep", NOON).await);
    assert_full(log.ready().await);
    assert!(matches!(log.health(), LogHealth::Failing { entries_kept: 0, entries_lost: 1, .. }));
    make_room(dir.path());
    log.ready().await.unwrap();
    append(&log, "e2", NOON).await.unwrap();
    assert_eq!(ids(dir.path()), ["e2"]);
}

#[tokio::test]
async fn a_log_that_fails_recovers_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { retry_every: Duration::from_millis(1), ..limits(10) };
    let log = open_limited(options(dir.path(), LogFailurePolicy::Degrade), limits);
    fill_disk(dir.path());
    append(&log, "e1", NOON).await.unwrap();
    make_room(dir.path());
    while !log.health().is_working() {
        tokio::task::yield_now().await;
    }
    log.close().await.unwrap();
    assert_eq!(ids(dir.path()), ["e1"]);
}

#[tokio::test]
async fn a_removed_directory_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let logs = dir.path().join("deep/logs");
    let log = open_limited(LogOptions::new(&logs), limits(10));
    append(&log, "e1", NOON).await.unwrap();
    fs::remove_dir_all(dir.path().join("deep")).unwrap();
    append(&log, "e2", NOON).await.unwrap();
    assert_eq!(ids(&logs), ["e2"]);
}

/// A deleted file is noticed by the next entry, however recent the last check of the path is.
#[tokio::test]
async fn the_next_entry_is_not_written_to_a_deleted_file() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { path_check_every: Duration::from_hours(1), ..limits(10) };
    let log = open_limited(LogOptions::new(dir.path()), limits);
    append(&log, "e1", NOON).await.unwrap();
    fs::remove_file(dir.path().join(TODAY)).unwrap();
    append(&log, "e2", NOON).await.unwrap();
    assert_eq!(ids(dir.path()), ["e2"]);
}

#[tokio::test]
async fn a_file_that_was_moved_away_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let log = open_limited(LogOptions::new(dir.path()), limits(10));
    append(&log, "e1", NOON).await.unwrap();
    fs::rename(dir.path().join(TODAY), dir.path().join("moved")).unwrap();
    append(&log, "e2", NOON).await.unwrap();
    assert_eq!(ids(dir.path()), ["e2"]);
    assert_eq!(fs::read_to_string(dir.path().join("moved")).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_fails_with_path_and_cause() {
    let dir = tempfile::tempdir().unwrap();
    let blocked = dir.path().join("file/logs");
    fs::write(dir.path().join("file"), "").unwrap();
    let options = LogOptions::new(&blocked);
    let error = ExecutionLog::open(options, Redactor::new([]), clock()).unwrap_err();
    assert_eq!(
        error.problem(),
        format!(
            "the execution log `{}` cannot be written: Not a directory (os error 20)",
            blocked.display()
        )
    );
}

#[tokio::test]
async fn a_file_that_may_not_be_written_fails_when_the_log_opens_and_while_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    // A directory in the file's place fails for every user; permissions do not stop root.
    fs::create_dir(dir.path().join(TODAY)).unwrap();
    let options = LogOptions::new(dir.path());
    assert!(ExecutionLog::open(options.clone(), Redactor::new([]), clock()).is_err());

    fs::remove_dir(dir.path().join(TODAY)).unwrap();
    let log = open_limited(options, limits(10));
    fs::remove_file(dir.path().join(TODAY)).unwrap();
    fs::create_dir(dir.path().join(TODAY)).unwrap();
    append(&log, "e1", NOON).await.unwrap_err();
    fs::remove_dir(dir.path().join(TODAY)).unwrap();
    log.ready().await.unwrap();
    assert_eq!(ids(dir.path()), ["e1"]);
}

#[tokio::test]
async fn a_line_cut_off_by_a_crash_does_not_spoil_the_next() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(TODAY), r#"{"execution_id":"cut"#).unwrap();
    let log = open(LogOptions::new(dir.path()));
    append(&log, "e1", NOON).await.unwrap();
    append(&log, "e2", NOON).await.unwrap();
    let mut calls = read(dir.path(), &Filter::default()).unwrap();
    let found: Vec<String> = calls.by_ref().map(|call| call.unwrap().execution_id).collect();
    assert_eq!((found, calls.malformed()), (vec!["e1".into(), "e2".into()], 1));
    let text = fs::read_to_string(dir.path().join(TODAY)).unwrap();
    assert_eq!(text.lines().count(), 3, "{text}");
}

/// Opens files whose owner alone may read them.
#[tokio::test]
async fn only_the_owner_may_read_the_log() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    open(LogOptions::new(dir.path()));
    let mode = fs::metadata(dir.path().join(TODAY)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
