//! Queries.

use super::*;

async fn three_days(dir: &Path) {
    let log = open(LogOptions::new(dir));
    let input = raw("{}");
    for (execution_id, timestamp, tool, status, session) in [
        ("e1", "2026-07-13T10:00:00Z", "weather", Status::Success, Some("s1")),
        ("e2", "2026-07-14T10:00:00Z", "weather", Status::Error, Some("s2")),
        ("e3", "2026-07-14T11:00:00Z", "maps", Status::Success, None),
        ("e4", "2026-07-15T10:00:00Z", "weather", Status::Success, Some("s1")),
        ("e5", "2026-07-15T11:00:00Z", "maps", Status::Error, Some("s1")),
    ] {
        let timestamp = at(timestamp);
        let call = Entry { timestamp, tool, session, status, ..entry(execution_id, &input) };
        log.append(&call).await.unwrap();
    }
}

fn found(dir: &Path, filter: &Filter) -> Vec<String> {
    read(dir, filter).unwrap().map(|call| call.unwrap().execution_id).collect()
}

/// Proves S2-KE-05.
#[tokio::test]
async fn every_filter_narrows_the_answer() {
    let dir = tempfile::tempdir().unwrap();
    three_days(dir.path()).await;
    let all = Filter::default();
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (all.clone(), vec!["e1", "e2", "e3", "e4", "e5"]),
        (Filter { execution_id: text("e3"), ..all.clone() }, vec!["e3"]),
        (Filter { tool: text("weather"), ..all.clone() }, vec!["e1", "e2", "e4"]),
        (Filter { status: Some(Status::Error), ..all.clone() }, vec!["e2", "e5"]),
        (Filter { session: text("s1"), ..all.clone() }, vec!["e1", "e4", "e5"]),
        (Filter { since: Some(at("2026-07-14T11:00:00Z")), ..all.clone() }, vec!["e3", "e4", "e5"]),
        (Filter { until: Some(at("2026-07-14T11:00:00Z")), ..all.clone() }, vec!["e1", "e2"]),
        (Filter { limit: Some(2), ..all.clone() }, vec!["e4", "e5"]),
        (Filter { limit: Some(3), ..all.clone() }, vec!["e3", "e4", "e5"]),
        (Filter { limit: Some(9), ..all.clone() }, vec!["e1", "e2", "e3", "e4", "e5"]),
        (Filter { limit: Some(0), ..all.clone() }, vec![]),
        (Filter { limit: Some(2), tool: text("weather"), ..all.clone() }, vec!["e2", "e4"]),
        (Filter { tool: text("weather"), status: Some(Status::Error), ..all }, vec!["e2"]),
    ];
    for (filter, expected) in cases {
        assert_eq!(found(dir.path(), &filter), expected, "{filter:?}");
    }
}

#[tokio::test]
async fn files_outside_the_period_are_not_opened() {
    let dir = tempfile::tempdir().unwrap();
    three_days(dir.path()).await;
    for outside in ["tools-2026-07-13.jsonl", TODAY] {
        fs::write(dir.path().join(outside), "no entry\n").unwrap();
    }
    let filter = Filter {
        since: Some(at("2026-07-14T00:00:00Z")),
        until: Some(at("2026-07-14T23:00:00Z")),
        ..Filter::default()
    };
    let mut calls = read(dir.path(), &filter).unwrap();
    assert_eq!((calls.by_ref().count(), calls.malformed()), (2, 0));
}

#[tokio::test]
async fn lines_that_are_no_entries_are_counted_and_skipped() {
    let dir = tempfile::tempdir().unwrap();
    three_days(dir.path()).await;
    let path = dir.path().join("tools-2026-07-14.jsonl");
    let good = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{{\"cut\":\n\n{good}\u{7}\n[1]\n{}", &good[..40])).unwrap();
    for limit in [None, Some(100)] {
        let mut calls = read(dir.path(), &Filter { limit, ..Filter::default() }).unwrap();
        assert_eq!((calls.by_ref().count(), calls.malformed()), (5, 4), "{limit:?}");
    }
}

#[tokio::test]
async fn the_newest_come_first_where_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    three_days(dir.path()).await;
    let calls = read(dir.path(), &Filter { limit: Some(3), ..Filter::default() }).unwrap();
    let ids: Vec<String> = calls.newest_first().map(|call| call.unwrap().execution_id).collect();
    assert_eq!(ids, ["e5", "e4", "e3"]);
}

/// Only the offsets of calls are held, so a file that is deleted meanwhile is not an error, and
/// changed content is not shown.
#[tokio::test]
async fn files_that_change_while_they_are_read_are_no_errors() {
    let dir = tempfile::tempdir().unwrap();
    three_days(dir.path()).await;
    let mut calls = read(dir.path(), &Filter { limit: Some(9), ..Filter::default() }).unwrap();
    assert_eq!(calls.next().unwrap().unwrap().execution_id, "e1");
    fs::remove_file(dir.path().join("tools-2026-07-14.jsonl")).unwrap();
    let left: Vec<String> = calls.map(|call| call.unwrap().execution_id).collect();
    assert!(!left.contains(&"e3".to_owned()) && left.contains(&"e5".to_owned()), "{left:?}");
}

#[test]
fn a_log_that_does_not_exist_has_no_entries() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(found(&dir.path().join("none"), &Filter::default()), Vec::<String>::new());
}

#[tokio::test]
async fn a_call_read_back_serializes_to_its_line() {
    let dir = tempfile::tempdir().unwrap();
    three_days(dir.path()).await;
    let text = fs::read_to_string(dir.path().join("tools-2026-07-13.jsonl")).unwrap();
    let call = read(dir.path(), &Filter::default()).unwrap().next().unwrap().unwrap();
    assert_eq!(serde_json::to_string(&call).unwrap(), text.trim_end());
}

/// Neither a folder nor a device, which never ends, keeps the other files from being read.
#[tokio::test]
async fn what_is_no_regular_file_is_reported_and_the_rest_is_read() {
    let dir = tempfile::tempdir().unwrap();
    three_days(dir.path()).await;
    fs::create_dir(dir.path().join("tools-2026-07-12.jsonl")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("tools-2026-07-16.jsonl")).unwrap();
    let pipe = dir.path().join("tools-2026-07-17.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (limit, unreadable) in [(None, 3), (Some(100), 3), (Some(5), 2)] {
        let calls = read(dir.path(), &Filter { limit, ..Filter::default() }).unwrap();
        let (found, errors): (Vec<_>, Vec<_>) = calls.partition(Result::is_ok);
        assert_eq!((found.len(), errors.len()), (5, unreadable), "{limit:?}: {errors:?}");
    }

    let mut follow = Follow::new(dir.path(), Filter::default()).unwrap();
    let log = open(LogOptions::new(dir.path()));
    append(&log, "e6", NOON).await.unwrap();
    let new: Vec<String> =
        follow.poll().unwrap().into_iter().map(|call| call.execution_id).collect();
    assert_eq!(new, ["e6"]);
}
