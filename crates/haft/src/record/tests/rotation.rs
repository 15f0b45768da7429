//! One file a day, and how long each is kept.

use jiff::SignedDuration;

use super::*;

/// Proves S2-EC-14, S2-FR-016.
#[tokio::test]
async fn a_new_day_starts_a_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let clock = clock();
    let log = ExecutionLog::open(LogOptions::new(dir.path()), Redactor::new([]), clock.clone());
    let log = log.unwrap();
    for id in ["e1", "e2", "e3"] {
        append(&log, id, &clock.now().to_string()).await.unwrap();
        clock.advance(SignedDuration::from_hours(12));
    }
    assert_eq!(names(dir.path()), [TODAY, "tools-2026-07-16.jsonl"]);
    assert_eq!(ids(dir.path()), ["e1", "e2", "e3"]);
    let second = fs::read_to_string(dir.path().join("tools-2026-07-16.jsonl")).unwrap();
    assert_eq!(second.lines().count(), 2);
}

/// Proves S2-EC-14: the record's date in UTC decides, not the time of writing.
#[tokio::test]
async fn a_record_goes_to_the_file_of_its_own_date() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    for (id, timestamp) in [
        ("late", "2026-07-15T23:59:59.999Z"),
        ("early", "2026-07-16T08:59:00+09:00"),
        ("next", "2026-07-16T00:00:00Z"),
        ("straggler", "2026-07-15T23:59:58Z"),
    ] {
        append(&log, id, timestamp).await.unwrap();
    }
    assert_eq!(ids(dir.path()), ["late", "early", "straggler", "next"]);
}

fn touch(dir: &Path, names: &[&str]) {
    for name in names {
        fs::write(dir.join(name), "").unwrap();
    }
}

/// Proves S2-EC-14, S2-FR-016: an entry is kept for 30 whole days, so a file goes when its newest entry
/// is 30 days old.
#[tokio::test]
async fn files_older_than_thirty_days_go_when_the_log_opens_and_when_the_day_turns() {
    let dir = tempfile::tempdir().unwrap();
    touch(
        dir.path(),
        &[
            "tools-2020-01-01.jsonl",
            "tools-2026-06-14.jsonl",
            "tools-2026-06-14.2.jsonl",
            "tools-2026-06-15.jsonl",
        ],
    );
    let log = open(LogOptions::new(dir.path()));
    assert_eq!(names(dir.path()), ["tools-2026-06-15.jsonl", TODAY]);

    append(&log, "e1", "2026-07-16T00:00:00Z").await.unwrap();
    assert_eq!(names(dir.path()), [TODAY, "tools-2026-07-16.jsonl"]);
}

#[tokio::test]
async fn other_files_are_never_touched() {
    let dir = tempfile::tempdir().unwrap();
    let others =
        ["notes.txt", "tools-2020-01-01.jsonl.gz", "tools-20200101.jsonl", "tools-old.jsonl"];
    touch(dir.path(), &others);
    fs::create_dir(dir.path().join("tools-2020-01-02.jsonl")).unwrap();
    open(LogOptions::new(dir.path()));
    let left = names(dir.path());
    assert!(others.iter().all(|other| left.contains(&(*other).into())), "{left:?}");
    assert!(left.contains(&"tools-2020-01-02.jsonl".into()));
}

#[tokio::test]
async fn a_clock_put_back_deletes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let files = ["tools-2026-06-20.jsonl", "tools-2026-07-14.jsonl", TODAY];
    touch(dir.path(), &files);
    let log = open(LogOptions::new(dir.path()));
    append(&log, "e1", "2026-01-01T00:00:00Z").await.unwrap();
    append(&log, "e2", NOON).await.unwrap();
    let mut expected = vec!["tools-2026-01-01.jsonl"];
    expected.extend(files);
    assert_eq!(names(dir.path()), expected);

    drop(log);
    let early = Arc::new(ManualClock::new(at("2026-01-02T00:00:00Z")));
    ExecutionLog::open(LogOptions::new(dir.path()), Redactor::new([]), early).unwrap();
    expected.insert(1, "tools-2026-01-02.jsonl");
    assert_eq!(names(dir.path()), expected);
}

#[tokio::test]
async fn no_retention_setting_deletes_todays_file_or_panics() {
    for retain_days in [0, 1, u32::MAX] {
        let dir = tempfile::tempdir().unwrap();
        touch(dir.path(), &["tools-2026-07-14.jsonl"]);
        open(LogOptions { retain_days, ..LogOptions::new(dir.path()) });
        let kept =
            if retain_days > 0 { vec!["tools-2026-07-14.jsonl", TODAY] } else { vec![TODAY] };
        assert_eq!(names(dir.path()), kept, "retain_days: {retain_days}");
    }
}
