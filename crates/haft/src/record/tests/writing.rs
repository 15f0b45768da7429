//! The content of a line, and exactly one line per call.

use super::*;

/// Proves S2-FR-011, S2-KE-05.
#[tokio::test]
async fn a_line_holds_every_field_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let input = raw(r#"{"z":1.10,"a":123456789012345678901234567890}"#);
    let data = raw(r#"{"celsius":21}"#);
    let content = [Content::text(r#"{"celsius":21}"#)];
    let outcome = Outcomes { tool: Outcome::Ok, schema: Outcome::Ok, ..Outcomes::default() };
    let call = Entry {
        server: Some("maps"),
        session: Some("s1"),
        data: Some(&data),
        content: &content,
        outcome,
        ..entry("e1", &input)
    };
    log.append(&call).await.unwrap();
    assert_eq!(
        fs::read_to_string(dir.path().join(TODAY)).unwrap(),
        concat!(
            r#"{"execution_id":"e1","timestamp":"2026-07-15T12:00:00.123Z","tool":"weather","#,
            r#""source":"local","server":"maps","caller":null,"session":"s1","#,
            r#""input":{"z":1.10,"a":123456789012345678901234567890},"output":{"celsius":21},"#,
            r#""status":"success","outcome":{"transport":"none","rpc":"none","tool":"ok","#,
            r#""schema":"ok"},"queued_ms":0,"duration_ms":1}"#,
            "\n"
        )
    );
}

/// Proves S2-EC-10: the entry of a failed call has its input, and the answer that was refused.
#[tokio::test]
async fn a_failed_call_is_recorded_with_its_input_error_and_answer() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let input = raw(r#"{"city":"Atlantis"}"#);
    let data = raw("[1]");
    let content = [Content::text("sunk"), Content::text("long ago")];
    let error = ErrorBody {
        code: Code::OutputValidationError,
        message: "no object".into(),
        remedy: None,
        details: serde_json::json!({"at": ""}),
        stage: Stage::Failed,
        rpc: None,
    };
    let call = Entry {
        data: Some(&data),
        content: &content,
        error: Some(&error),
        status: Status::Error,
        ..entry("e1", &input)
    };
    log.append(&call).await.unwrap();
    let found = read(dir.path(), &Filter::default()).unwrap().next().unwrap().unwrap();
    assert_eq!(found.input.get(), input.get());
    assert_eq!(found.output.unwrap().get(), "[1]");
    assert_eq!(
        found.content.unwrap().get(),
        r#"[{"type":"text","text":"sunk"},{"type":"text","text":"long ago"}]"#
    );
    assert_eq!((found.error, found.status), (Some(error), Status::Error));
}

#[tokio::test]
async fn an_answer_without_structure_is_recorded_as_its_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let input = raw("{}");
    log.append(&Entry { content: &[Content::text("hi")], ..entry("e1", &input) }).await.unwrap();
    let found = read(dir.path(), &Filter::default()).unwrap().next().unwrap().unwrap();
    assert_eq!(found.output.unwrap().get(), r#"[{"type":"text","text":"hi"}]"#);
    assert!(found.content.is_none());
}

#[tokio::test]
async fn an_input_of_several_lines_makes_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let input = raw("{\n  \"b\": \"x  \\n y\",\r\n  \"a\": [ 1.0,\n 2 ]\n}");
    log.append(&entry("e1", &input)).await.unwrap();
    let text = fs::read_to_string(dir.path().join(TODAY)).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert!(text.contains(r#""input":{"b":"x  \n y","a":[1.0,2]}"#), "{text}");
}

#[tokio::test]
async fn secrets_do_not_reach_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let redactor = Redactor::new(["canary-value".to_string()]);
    let log = ExecutionLog::open(LogOptions::new(dir.path()), redactor, clock()).unwrap();
    let input = raw(r#"{"password":"p","note":"canary-value","max_tokens":9}"#);
    log.append(&Entry { caller: Some("canary-value"), ..entry("e1", &input) }).await.unwrap();
    let text = fs::read_to_string(dir.path().join(TODAY)).unwrap();
    assert!(text.contains(r#""caller":"***""#), "{text}");
    assert!(text.contains(r#""input":{"password":"***","note":"***","max_tokens":9}"#), "{text}");
}

async fn append_a_thousand_at_once(options: LogOptions) {
    let dir = options.dir.clone();
    let log = open(options);
    let tasks = tokio_util::task::TaskTracker::new();
    for number in 0..1000 {
        let log = log.clone();
        tasks.spawn(async move {
            append(&log, &format!("e{number}"), NOON).await.unwrap();
        });
    }
    tasks.close();
    tasks.wait().await;
    let mut found = ids(&dir);
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 1000);
    assert_eq!(fs::read_to_string(dir.join(TODAY)).unwrap().lines().count(), 1000);
}

/// Proves S2-SC-006.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_calls_at_once_make_a_thousand_lines() {
    let dir = tempfile::tempdir().unwrap();
    append_a_thousand_at_once(LogOptions::new(dir.path())).await;
}

/// Proves S2-SC-006.
#[tokio::test]
async fn a_thousand_calls_on_one_thread_make_a_thousand_lines() {
    let dir = tempfile::tempdir().unwrap();
    append_a_thousand_at_once(LogOptions::new(dir.path())).await;
}

/// Proves S2-SC-006.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_calls_synced_to_disk_make_a_thousand_lines() {
    let dir = tempfile::tempdir().unwrap();
    let options = LogOptions { durability: Durability::Disk, ..LogOptions::new(dir.path()) };
    append_a_thousand_at_once(options).await;
}

/// Two logs in one directory stand for two processes: they share nothing but the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_writers_of_one_file_do_not_mix_their_lines() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = tokio_util::task::TaskTracker::new();
    for writer in 0..2 {
        let log = open(LogOptions::new(dir.path()));
        tasks.spawn(async move {
            for number in 0..300 {
                append(&log, &format!("w{writer}-{number}"), NOON).await.unwrap();
            }
        });
    }
    tasks.close();
    tasks.wait().await;
    let mut calls = read(dir.path(), &Filter::default()).unwrap();
    assert_eq!((calls.by_ref().count(), calls.malformed()), (600, 0));
}

#[tokio::test]
async fn detached_entries_are_written_by_close() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let input = raw("{}");
    for number in 0..2000 {
        log.append_detached(&entry(&format!("e{number}"), &input));
    }
    log.close().await.unwrap();
    let expected: Vec<String> = (0..2000).map(|number| format!("e{number}")).collect();
    assert_eq!(ids(dir.path()), expected);
}

#[tokio::test]
async fn an_append_that_is_dropped_unawaited_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(LogOptions::new(dir.path()));
    let input = raw("{}");
    drop(log.append(&entry("e1", &input)));
    log.close().await.unwrap();
    assert_eq!(ids(dir.path()), ["e1"]);
}

/// Arguments that are too long are refused, and their entry is one that readers can take. With a
/// smaller limit here, because 64 MiB take a test some ten seconds.
#[test]
fn a_line_that_no_reader_would_take_is_shortened() {
    let long = "x".repeat(200 << 10);
    let input = raw(&format!(r#"{{"password":"hunter22","a":"{long}"}}"#));
    let data = raw(r#"{"celsius":21}"#);
    let content = [Content::text("\u{1}".repeat(200 << 10))];
    let error = ErrorBody {
        code: Code::ValidationError,
        message: long.clone(),
        remedy: Some(long.as_str().into()),
        details: serde_json::json!([long]),
        stage: Stage::Failed,
        rpc: None,
    };
    let entry = Entry {
        caller: Some(&long),
        data: Some(&data),
        content: &content,
        error: Some(&error),
        ..entry("e1", &input)
    };
    let limit = LineLimit { bytes_max: 1 << 20, field_bytes_max: line::FIELD_BYTES_MAX };
    let line = line::Line::new(&entry, &Redactor::new([]), limit);
    assert!(line.text.len() <= 1 << 20, "{}", line.text.len());

    let call: LoggedCall = serde_json::from_str(&line.text).unwrap();
    let kept: String = serde_json::from_str(call.input.get()).unwrap();
    assert!(kept.starts_with(r#"{"password":"***","a":"xxx"#), "{}", &kept[..40]);
    assert!(kept.ends_with(" of 204825 bytes are not in the log]"), "{}", &kept[kept.len() - 80..]);
    assert!(kept.len() < line::FIELD_BYTES_MAX + 100, "{}", kept.len());
    assert_eq!(call.output.unwrap().get(), data.get());
}
