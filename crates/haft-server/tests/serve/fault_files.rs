//! Files that fail while the service runs: the log, the configuration, the registry.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::faults::{call, error_code, reasons, until};
use crate::served::{Served, toolbox};

/// Puts a full disk in the place of the log's file. Two days, in case midnight passes meanwhile.
fn fill_disk(logs: &Path) -> Vec<std::path::PathBuf> {
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let days = [today, today.tomorrow().unwrap()];
    let file = |date| {
        let path = logs.join(format!("tools-{date}.jsonl"));
        let link = logs.join("link");
        symlink("/dev/full", &link).unwrap();
        fs::rename(link, &path).unwrap();
        path
    };
    days.map(file).to_vec()
}

/// The disk of the log is full: no tool runs, the health endpoints show the reason, and it ends with the fault.
#[tokio::test]
async fn a_full_disk_refuses_calls_and_shows_in_health() {
    let workspace = toolbox();
    workspace.write(
        "tools/greet.py",
        "def run(args):\n    open('ran', 'a').write('x')\n    return {}\n",
    );
    let served = Served::with_admin(workspace);
    let greet = async || call(&served, "greet", &json!({"name": "Ada"})).await;
    assert_eq!(error_code(&greet().await), Value::Null);
    let files = fill_disk(&served.workspace.path().join("logs"));
    let refused = until("the full disk is noticed", async || {
        let answer = greet().await;
        (error_code(&answer) != Value::Null).then_some(answer)
    });
    let refused = refused.await;
    assert_eq!(error_code(&refused), json!("ServiceUnavailable"), "{}", refused.text);
    let ran = || {
        let found = ["ran", "tools/ran"].into_iter().find_map(|path| served.workspace.read(path));
        found.map_or(0, |text| text.len())
    };
    let runs = ran();
    assert_eq!(error_code(&greet().await), json!("ServiceUnavailable"));
    assert_eq!(ran(), runs, "nothing runs without a record");
    let ready = served.get("/readyz").await;
    assert_eq!((ready.status, &ready.json()["status"]), (503, &json!("unready")), "{}", ready.text);
    let why = reasons(&served).await;
    assert!(
        why.iter().any(|(what, why)| what == "log" && why.contains("No space left")),
        "{why:?}"
    );
    let log = &served.get("/api/v1/status").await.json()["log"];
    assert_eq!(log["is_working"], json!(false), "{log}");
    assert!(log["problem"].as_str().unwrap().contains("No space left"), "{log}");

    for file in files {
        fs::remove_file(file).unwrap();
    }
    until("it recovers", async || (error_code(&greet().await) == Value::Null).then_some(())).await;
    assert_eq!(served.get("/readyz").await.json()["status"], json!("ready"));
}

/// The folder of the log is taken away: the next entry is in a new one.
#[tokio::test]
async fn a_log_folder_that_is_removed_is_made_again() {
    let served = Served::with_admin(toolbox());
    let greet = async || call(&served, "greet", &json!({"name": "Ada"})).await;
    assert_eq!(error_code(&greet().await), Value::Null);
    fs::remove_dir_all(served.workspace.path().join("logs")).unwrap();
    let answer = greet().await;
    assert_eq!(error_code(&answer), Value::Null, "{}", answer.text);
    let log = served.log();
    assert_eq!(log.last().map(|it| &it["execution_id"]), Some(&answer.json()["execution_id"]));
    assert_eq!(served.get("/readyz").await.json()["status"], json!("ready"));
}

/// Proves S2-Q-08, S2-EC-09: whatever happens to a file while it runs, the last good state stays in use, the
/// fault shows, and nothing is written over it.
#[tokio::test]
async fn files_that_break_keep_the_last_good_state_and_are_not_written_over() {
    let served = Served::with_admin(toolbox());
    let entry =
        json!({"name": "new", "url": "http://127.0.0.1:1/mcp", "disabled": true}).to_string();
    for file in ["haft.yaml", "tools/tools.json", "tools/mcp.json"] {
        let path = served.workspace.path().join(file);
        let good = fs::read(&path).unwrap();
        for broken in [None, Some(""), Some("{\"tools\": [{\"name\": "), Some("tools: [}")] {
            let name = format!("{file} as {broken:?}");
            match broken {
                None => fs::remove_file(&path).unwrap(),
                Some(text) => fs::write(&path, text).unwrap(),
            }
            until(&format!("{name} is noticed"), async || {
                let why = reasons(&served).await;
                why.iter().any(|(what, _)| what == "configuration").then_some(())
            })
            .await;
            let problem = &served.get("/api/v1/config").await.json()["live"]["problem"];
            assert!(
                problem["text"].as_str().is_some_and(|text| !text.is_empty()),
                "{name}: {problem}"
            );
            let greeted = call(&served, "greet", &json!({"name": "Ada"})).await;
            assert_eq!(error_code(&greeted), Value::Null, "{name}: {}", greeted.text);
            let refused = served.post("/api/v1/servers", &entry).await;
            assert!([409, 422, 503].contains(&refused.status), "{name}: {}", refused.text);
            assert_eq!(fs::read(&path).ok(), broken.map(|text| text.as_bytes().to_vec()), "{name}");
            fs::write(&path, &good).unwrap();
            until(&format!("{name} is mended"), async || {
                reasons(&served).await.is_empty().then_some(())
            })
            .await;
        }
    }
    assert_eq!(served.post("/api/v1/servers", &entry).await.status, 201);
}
