//! Following the log as it grows.

use std::fs::OpenOptions;
use std::io::Write;

use super::*;

fn poll(follow: &mut Follow) -> Vec<String> {
    follow.poll().unwrap().into_iter().map(|call| call.execution_id).collect()
}

const TOMORROW: &str = "2026-07-16T00:00:01Z";

#[tokio::test]
async fn follow_returns_what_comes_after_it_across_midnight() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    append(&log, "before", NOON).await.unwrap();
    let mut follow = Follow::new(dir.path(), Filter::default()).unwrap();
    assert!(poll(&mut follow).is_empty());

    append(&log, "e1", NOON).await.unwrap();
    assert_eq!(poll(&mut follow), ["e1"]);
    append(&log, "e2", NOON).await.unwrap();
    append(&log, "e3", TOMORROW).await.unwrap();
    append(&log, "e4", NOON).await.unwrap();
    assert_eq!(poll(&mut follow), ["e2", "e4", "e3"]);
    append(&log, "straggler", NOON).await.unwrap();
    append(&log, "e5", "2026-07-17T00:00:00Z").await.unwrap();
    append(&log, "e6", TOMORROW).await.unwrap();
    assert_eq!(poll(&mut follow), ["straggler", "e6", "e5"]);
    assert!(poll(&mut follow).is_empty());
}

/// A reader that polls rarely gets everything, but not at once.
#[tokio::test]
async fn follow_hands_out_a_bounded_part_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut follow = Follow::new(dir.path(), Filter::default()).unwrap();
    let log = open(LogOptions::new(dir.path()));
    for id in 0..300 {
        append(&log, &format!("e{id}"), NOON).await.unwrap();
    }
    fs::rename(dir.path().join(TODAY), dir.path().join("moved")).unwrap();
    let (first, second) = (poll(&mut follow), poll(&mut follow));
    assert!(first.is_empty() && second.is_empty(), "it was never seen");
    fs::rename(dir.path().join("moved"), dir.path().join(TODAY)).unwrap();
    assert_eq!(poll(&mut follow).len(), 256);
    fs::rename(dir.path().join(TODAY), dir.path().join("moved")).unwrap();
    let rest = poll(&mut follow);
    assert_eq!((rest.len(), rest[43].as_str()), (44, "e299"), "although it was moved away");
    assert!(poll(&mut follow).is_empty());
}

#[tokio::test]
async fn follow_takes_a_line_when_it_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    append(&log, "e1", NOON).await.unwrap();
    let path = dir.path().join(TODAY);
    let line = fs::read_to_string(&path).unwrap().replace("e1", "e2");
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&line.as_bytes()[..50]).unwrap();
    let mut follow = Follow::new(dir.path(), Filter::default()).unwrap();
    assert!(poll(&mut follow).is_empty());
    file.write_all(&line.as_bytes()[50..]).unwrap();
    assert_eq!(poll(&mut follow), ["e2"]);
    file.write_all(b"no entry\n").unwrap();
    assert!(poll(&mut follow).is_empty());
    assert_eq!(follow.malformed(), 1);
}

#[tokio::test]
async fn follow_survives_files_and_directories_that_go_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let logs = dir.path().join("logs");
    let mut follow = Follow::new(&logs, Filter::default()).unwrap();
    assert!(poll(&mut follow).is_empty());
    let log = open_checking(LogOptions::new(&logs));
    append(&log, "e1", NOON).await.unwrap();
    assert_eq!(poll(&mut follow), ["e1"]);

    append(&log, "e2", NOON).await.unwrap();
    fs::remove_file(logs.join(TODAY)).unwrap();
    append(&log, "e3", NOON).await.unwrap();
    assert_eq!(poll(&mut follow), ["e2", "e3"]);

    fs::remove_dir_all(&logs).unwrap();
    assert!(poll(&mut follow).is_empty());
    append(&log, "e4", NOON).await.unwrap();
    assert_eq!(poll(&mut follow), ["e4"]);

    fs::write(logs.join(TODAY), "").unwrap();
    assert!(poll(&mut follow).is_empty());
    append(&log, "e5", NOON).await.unwrap();
    assert_eq!(poll(&mut follow), ["e5"]);
}

#[tokio::test]
async fn follow_does_not_replay_older_files() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    for timestamp in ["2026-07-13T00:00:00Z", "2026-07-14T00:00:00Z", NOON] {
        append(&log, "old", timestamp).await.unwrap();
    }
    let mut follow = Follow::new(dir.path(), Filter::default()).unwrap();
    fs::remove_file(dir.path().join(TODAY)).unwrap();
    assert!(poll(&mut follow).is_empty());
}

#[tokio::test]
async fn follow_filters() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let filter = Filter { execution_id: Some("e2".into()), ..Filter::default() };
    let mut follow = Follow::new(dir.path(), filter).unwrap();
    append(&log, "e1", NOON).await.unwrap();
    append(&log, "e2", NOON).await.unwrap();
    assert_eq!(poll(&mut follow), ["e2"]);
}
