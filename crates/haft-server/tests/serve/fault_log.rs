//! The device of the log hangs. A pipe without a reader takes the place of the file: a write to it
//! blocks in the kernel, as a write to a dead network mount does.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use serde_json::{Value, json};
use testkit::Workspace;

use crate::faults::{call, error_code, reasons, until};
use crate::served::{Served, toolbox};

/// The timeout of every tool here, and how much later a call may end.
const TIMEOUT: Duration = Duration::from_secs(4);
const LATE_MAX: Duration = Duration::from_secs(1);

/// `api.shutdown_grace`, and how much later the process may end.
const GRACE: Duration = Duration::from_secs(5);
const END_LATE_MAX: Duration = Duration::from_secs(4);

fn workspace(on_failure: &str) -> Workspace {
    let workspace = toolbox();
    workspace.write(
        "haft.yaml",
        format!(
            "registry: {{dir: tools}}\nlog: {{on_failure: {on_failure}}}\n\
             defaults: {{tool_timeout: {}s}}\napi: {{shutdown_grace: {}s}}\n",
            TIMEOUT.as_secs(),
            GRACE.as_secs(),
        ),
    );
    workspace
}

/// Puts full pipes in the place of the log's file. Two days, in case midnight passes meanwhile.
fn hang(logs: &Path) -> [fs::File; 2] {
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let pipe = |date| {
        let (path, pipe) = (logs.join(format!("tools-{date}.jsonl")), logs.join("pipe"));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut file =
            OpenOptions::new().read(true).write(true).custom_flags(flags).open(&pipe).unwrap();
        while file.write(&[b'\n'; 4096]).is_ok() {}
        fs::rename(pipe, path).unwrap();
        file
    };
    [today, today.tomorrow().unwrap()].map(pipe)
}

async fn timed_call(served: &Served) -> (Duration, Value) {
    let started = Instant::now();
    let answer = call(served, "greet", &json!({"name": "Ada"})).await;
    (started.elapsed(), error_code(&answer))
}

/// Calls end by their timeout, `/readyz` reports the log, and SIGTERM ends the process.
#[tokio::test]
async fn a_log_that_hangs_with_refuse_holds_no_call_and_no_shutdown() {
    let served = Served::with_admin(workspace("refuse"));
    assert_eq!(timed_call(&served).await.1, Value::Null);
    let _pipes = hang(&served.workspace.path().join("logs"));
    let refused = until("the log is reported", async || {
        let calls = tokio::join!(timed_call(&served), timed_call(&served), timed_call(&served));
        let calls = [calls.0, calls.1, calls.2];
        for (took, _) in &calls {
            assert!(*took <= TIMEOUT + LATE_MAX, "{took:?}");
        }
        calls.into_iter().find(|(_, code)| *code != Value::Null)
    });
    assert_eq!(refused.await.1, json!("ServiceUnavailable"));
    let ready = served.get("/readyz").await;
    assert_eq!((ready.status, &ready.json()["status"]), (503, &json!("unready")), "{}", ready.text);
    let why = reasons(&served).await;
    assert!(
        why.iter().any(|(what, why)| what == "log" && why.contains("took no entry")),
        "{why:?}"
    );
    let started = Instant::now();
    served.terminate();
    end_in_time(served, started);
}

/// With `degrade` calls continue, and their entries are written when the device works again.
#[tokio::test]
async fn a_log_that_hangs_with_degrade_lets_calls_run() {
    let served = Served::with_admin(workspace("degrade"));
    assert_eq!(timed_call(&served).await.1, Value::Null);
    let mut pipes = hang(&served.workspace.path().join("logs"));
    let mut calls = 0;
    let why = until("the log is reported", async || {
        let (took, code) = timed_call(&served).await;
        assert!(took <= TIMEOUT + LATE_MAX && code == Value::Null, "{took:?} {code}");
        calls += 1;
        reasons(&served).await.into_iter().find(|(what, _)| what == "log")
    });
    assert!(why.await.1.contains("took no entry"));
    assert_eq!(served.get("/readyz").await.json()["status"], json!("degraded"));

    // Calls that were recorded before the pipe was noticed are in the file that it replaced.
    let mut text = Vec::new();
    until("the log works again", async || {
        for pipe in &mut pipes {
            let _ = pipe.read_to_end(&mut text);
        }
        reasons(&served).await.is_empty().then_some(())
    })
    .await;
    for pipe in &mut pipes {
        let _ = pipe.read_to_end(&mut text);
    }
    let text = String::from_utf8(text).unwrap();
    let entries = text.lines().filter(|line| !line.trim().is_empty()).count();
    assert!((1..=calls).contains(&entries), "{entries} of {calls}: {text}");
}

/// Entries that could not be written before the end are lost, and the log lines report it.
#[tokio::test]
async fn entries_that_are_lost_at_the_end_are_reported() {
    let workspace = workspace("degrade");
    workspace.write("logs", "");
    let mut served = Served::open(workspace);
    assert_eq!(timed_call(&served).await.1, Value::Null);
    served.terminate();
    let finished = served.ended();
    assert!(finished.stderr.contains("entries of the execution log are lost: "), "{finished:?}");
}

/// Calls that run when the process receives SIGTERM end with it, whatever the log does.
#[tokio::test]
async fn a_log_that_hangs_during_the_shutdown_does_not_hold_it() {
    let served = Served::with_admin(workspace("refuse"));
    assert_eq!(timed_call(&served).await.1, Value::Null);
    let _pipes = hang(&served.workspace.path().join("logs"));
    let nothing = json!({});
    let waiting = call(&served, "wait", &nothing);
    let ending = async {
        let started = async || {
            let workspace = &served.workspace;
            workspace.read("tools/started").or_else(|| workspace.read("started"))
        };
        until("the call runs", started).await;
        let started = Instant::now();
        served.terminate();
        started
    };
    let (answer, started) = tokio::join!(waiting, ending);
    assert_eq!(error_code(&answer), json!("Stopping"), "{}", answer.text);
    end_in_time(served, started);
}

fn end_in_time(mut served: Served, started: Instant) {
    let finished = served.ended();
    let took = started.elapsed();
    assert!(took <= GRACE + END_LATE_MAX, "{took:?}: {}", finished.stderr);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
}

/// `/readyz` reports a disk that is nearly full while calls still work.
#[tokio::test]
async fn a_disk_that_is_nearly_full_shows_in_health_before_calls_fail() {
    let workspace = toolbox();
    let disk = rustix::fs::statvfs(workspace.path()).unwrap();
    let keep_free = disk.f_bavail * disk.f_frsize / 3 * 2;
    let config = format!("registry: {{dir: tools}}\nlog: {{keep_free: {keep_free}}}\n");
    workspace.write("haft.yaml", config);
    let served = Served::with_admin(workspace);
    assert_eq!(timed_call(&served).await.1, Value::Null);
    let ready = served.get("/readyz").await;
    assert_eq!(
        (ready.status, &ready.json()["status"]),
        (200, &json!("degraded")),
        "{}",
        ready.text
    );
    let why = reasons(&served).await;
    assert!(why.iter().any(|(what, why)| what == "log" && why.contains("nearly full")), "{why:?}");
    let log = &served.get("/api/v1/status").await.json()["log"];
    assert!(log["warning"].as_str().unwrap().contains("nearly full"), "{log}");
    assert!(served.get("/metrics").await.text.contains("haft_log_disk_low 1"));
}

/// Anyone who may call can send large requests for tools that do not exist, as often as they like.
#[tokio::test]
async fn calls_that_never_ran_take_little_of_the_log() {
    let served = Served::with_admin(toolbox());
    let text = "x".repeat(1 << 20);
    let calls = [
        ("nothing", json!({"a": text})),
        ("greet", json!({"name": "Ada", "b": text})),
        ("greet", json!([text])),
    ];
    for (tool, arguments) in &calls {
        assert_ne!(error_code(&call(&served, tool, arguments).await), Value::Null);
    }
    assert_eq!(error_code(&call(&served, "greet", &json!({"name": text})).await), Value::Null);
    let log = served.log();
    assert_eq!(log.len(), 4);
    for entry in &log[..3] {
        let bytes = entry.to_string().len();
        assert!(bytes < haft::record::REFUSED_ENTRY_BYTES_MAX, "{bytes}");
        let marked = entry["input"].as_str().is_some_and(|it| it.contains("are not in the log"));
        assert!(marked, "{entry}");
    }
    assert!(log[3].to_string().len() > 1 << 20, "a call that ran is recorded whole");
}
