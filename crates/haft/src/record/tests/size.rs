//! The size limit of the log, and the files deleted beyond it.

use super::*;

const MIB: u64 = 1 << 20;

fn capped(dir: &Path) -> LogOptions {
    LogOptions { max_bytes: Some(MIB), ..LogOptions::new(dir) }
}

fn used(dir: &Path) -> u64 {
    names(dir).iter().map(|name| fs::metadata(dir.join(name)).unwrap().len()).sum()
}

/// Appends entries of about a kilobyte, numbered.
async fn append_many(log: &ExecutionLog, numbers: std::ops::Range<usize>) {
    let input = raw(&format!("{{\"text\":\"{}\"}}", "x".repeat(700)));
    for number in numbers {
        log.append(&entry(&number.to_string(), &input)).await.unwrap();
    }
}

fn numbers(dir: &Path) -> Vec<usize> {
    ids(dir).iter().map(|id| id.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_log_that_is_too_large_loses_its_oldest_entries() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(capped(dir.path()));
    append_many(&log, 0..3000).await;
    assert!(used(dir.path()) <= MIB, "{}", used(dir.path()));
    let kept = numbers(dir.path());
    assert!(kept.len() >= 500, "{}", kept.len());
    assert_eq!(kept, (3000 - kept.len()..3000).collect::<Vec<_>>(), "the newest, without gaps");

    // A process that opens the log again continues where this one stopped.
    drop(log);
    let log = open(capped(dir.path()));
    append_many(&log, 3000..3001).await;
    assert_eq!(numbers(dir.path()).last(), Some(&3000));
    let filter = Filter { limit: Some(3), ..Filter::default() };
    let newest = read(dir.path(), &filter).unwrap().map(|call| call.unwrap().execution_id);
    assert_eq!(newest.collect::<Vec<_>>(), ["2998", "2999", "3000"]);
}

#[tokio::test]
async fn the_files_of_earlier_days_go_before_those_of_today() {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in
        [("tools-2026-07-10.jsonl", 400 << 10), ("tools-2026-07-11.jsonl", 500 << 10)]
    {
        fs::write(dir.path().join(name), vec![b'\n'; bytes]).unwrap();
    }
    let log = open(capped(dir.path()));
    append_many(&log, 0..300).await;
    let oldest = || names(dir.path()).remove(0);
    assert_eq!(oldest(), "tools-2026-07-11.jsonl");
    append_many(&log, 300..700).await;
    assert!(oldest().starts_with("tools-2026-07-15"), "{}", oldest());
    assert_eq!(numbers(dir.path()), (0..700).collect::<Vec<_>>());
}

#[tokio::test]
async fn who_follows_the_log_sees_every_entry_of_every_part_once() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(capped(dir.path()));
    append_many(&log, 0..300).await;
    let mut follow = Follow::new(dir.path(), Filter::default()).unwrap();
    let mut seen: Vec<usize> = Vec::new();
    for start in (300..1500).step_by(100) {
        append_many(&log, start..start + 100).await;
        let calls = follow.poll().unwrap();
        seen.extend(calls.iter().map(|call| call.execution_id.parse::<usize>().unwrap()));
    }
    assert_eq!(seen, (300..1500).collect::<Vec<_>>());

    // All parts are deleted by hand; the day begins again.
    for name in names(dir.path()) {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    append_many(&log, 1500..1501).await;
    assert_eq!(follow.poll().unwrap().len(), 1);
}

#[tokio::test]
async fn an_entry_that_is_larger_than_a_part_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(capped(dir.path()));
    let input = raw(&format!("{{\"text\":\"{}\"}}", "x".repeat(3 << 20)));
    for id in ["e1", "e2", "e3", "e4", "e5"] {
        log.append(&entry(id, &input)).await.unwrap();
    }
    assert!(used(dir.path()) <= MIB, "{}", used(dir.path()));
    assert_eq!(ids(dir.path()).len(), 5);
    let call = read(dir.path(), &Filter::default()).unwrap().next().unwrap().unwrap();
    assert!(
        call.input.get().ends_with("bytes are not in the log]\""),
        "{}",
        call.input.get().len()
    );
}

/// Processes that share a directory leave a part when it is full, whichever process filled it.
#[tokio::test]
async fn two_processes_share_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (open(capped(dir.path())), open(capped(dir.path())));
    for start in (0..2000).step_by(10) {
        append_many(&one, start..start + 5).await;
        append_many(&other, start + 5..start + 10).await;
    }
    // Each counts its own writes and checks the total once a second.
    assert!(used(dir.path()) <= 2 * MIB, "{}", used(dir.path()));
    assert_eq!(numbers(dir.path()).last(), Some(&1999));
}

#[tokio::test]
async fn a_call_that_was_refused_is_recorded_in_short() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let text = "x".repeat(1 << 20);
    let input = raw(&format!("{{\"password\":\"s3cret\",\"text\":\"{text}\"}}"));
    let error = ErrorBody {
        code: Code::UnknownTool,
        message: text.clone(),
        remedy: Some(text.as_str().into()),
        details: serde_json::json!([text]),
        stage: Stage::Failed,
        rpc: None,
    };
    let refused = Entry { tool: &text, started: false, error: Some(&error), ..entry("e1", &input) };
    log.append(&refused).await.unwrap();
    log.append(&entry("e2", &input)).await.unwrap();
    let calls: Vec<_> = read(dir.path(), &Filter::default()).unwrap().map(Result::unwrap).collect();
    let line = serde_json::to_string(&calls[0]).unwrap();
    assert!(line.len() <= REFUSED_ENTRY_BYTES_MAX, "{}", line.len());
    let kept: String = serde_json::from_str(calls[0].input.get()).unwrap();
    assert!(kept.starts_with(r#"{"password":"***","text":"xxx"#), "{kept}");
    assert!(kept.ends_with("bytes are not in the log]"), "{kept}");
    assert!(calls[1].input.get().len() > 1 << 20, "a call that ran is recorded whole");
}

/// The disk has less free space than is to be kept: old files go, then calls are refused.
#[tokio::test]
async fn a_disk_without_the_space_to_keep_free_fails_after_old_files_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("tools-2026-07-14.jsonl"), "\n").unwrap();
    fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    let keep_free = KeepFree::Bytes(u64::MAX / 4);
    let options = LogOptions { keep_free, ..LogOptions::new(dir.path()) };
    let refused = ExecutionLog::open(options.clone(), Redactor::new([]), clock()).unwrap_err();
    assert!(matches!(refused, LogError::NoSpace { .. }), "{refused}");
    assert!(refused.problem().contains("less than `log.keep_free`"), "{refused}");
    assert_eq!(names(dir.path()), ["notes.txt", TODAY]);

    let log = open(LogOptions { on_failure: LogFailurePolicy::Degrade, ..options });
    append(&log, "e1", NOON).await.unwrap();
    let health = log.health();
    assert!(matches!(health, LogHealth::Failing { entries_kept: 1, .. }), "{health:?}");
    assert_eq!(ids(dir.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_disk_that_is_nearly_full_raises_an_alarm_and_takes_entries() {
    let dir = tempfile::tempdir().unwrap();
    let disk = rustix::fs::statvfs(dir.path()).unwrap();
    let keep_free = KeepFree::Bytes(disk.f_bavail * disk.f_frsize / 3 * 2);
    let log = open(LogOptions { keep_free, ..LogOptions::new(dir.path()) });
    append(&log, "e1", NOON).await.unwrap();
    let LogHealth::Working { low_space: Some(low_space), .. } = log.health() else {
        panic!("{:?}", log.health())
    };
    assert!(low_space.to_string().contains("nearly full"), "{low_space}");
    let roomy = open(LogOptions { keep_free: KeepFree::Bytes(1), ..LogOptions::new(dir.path()) });
    assert!(matches!(roomy.health(), LogHealth::Working { low_space: None, .. }));
}

/// The disk fills while no call is made.
#[tokio::test]
async fn an_idle_log_looks_at_its_disk() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { space_check_every: Duration::from_millis(1), ..Limits::default() };
    let options = LogOptions { max_bytes: Some(MIB), ..LogOptions::new(dir.path()) };
    let log = ExecutionLog::open_with(options, limits, Redactor::new([]), clock()).unwrap();
    let old = dir.path().join("tools-2026-07-14.jsonl");
    fs::write(&old, vec![b'\n'; 2 << 20]).unwrap();
    while old.exists() {
        tokio::task::yield_now().await;
    }
    assert!(log.health().is_working());
}
