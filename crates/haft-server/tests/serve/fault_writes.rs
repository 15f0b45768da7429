//! Many writers at once, writers that are killed, and the order of system calls of a write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::{Program, Workspace};
use tokio::task::JoinSet;

use crate::client;
use crate::served::{SERVE, Served, answer, create_key, toolbox};

/// Number of kills of a writing service; `cargo xtask faults` sets it.
const KILLS_VARIABLE: &str = "HAFT_TEST_KILLS";
const KILLS_DEFAULT: u64 = 30;

fn servers(workspace: &Workspace) -> serde_json::Map<String, Value> {
    let text = workspace.read("tools/mcp.json").unwrap();
    let mut value: Value =
        serde_json::from_str(&text).unwrap_or_else(|it| panic!("{it}: {text:?}"));
    serde_json::from_value(value["mcp_servers"].take()).unwrap()
}

/// An entry that names its write, and starts nothing.
fn entry(write: u64) -> String {
    json!({"url": format!("http://127.0.0.1:1/{write}"), "disabled": true}).to_string()
}

fn write_of(entry: &Value) -> u64 {
    entry["url"].as_str().unwrap().rsplit_once('/').unwrap().1.parse().unwrap()
}

/// Proves S2-EC-09, S2-FR-015, S2-Q-04: concurrent writers do not lose each other's changes, and a concurrent reader
/// always finds a whole file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_writers_lose_nothing() {
    const WRITERS: u64 = 100;
    let served = Served::with_admin(toolbox());
    let file = served.workspace.path().join("tools/mcp.json");
    let is_over = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let mut states = 0;
            while !is_over.load(Ordering::Relaxed) {
                let text = std::fs::read_to_string(&file).unwrap();
                serde_json::from_str::<Value>(&text).unwrap_or_else(|it| panic!("{it}: {text:?}"));
                states += 1;
            }
            states
        }
    });
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let put = served.request(Method::PUT, &format!("/api/v1/servers/s{writer}"));
        let put = put.header("content-type", "application/json").body(entry(writer));
        let delete = served.request(Method::DELETE, &format!("/api/v1/servers/s{writer}"));
        writers.spawn(async move {
            let added = answer(put).await;
            assert_eq!(added.status, 201, "{}", added.text);
            // Every second one is taken out again.
            if writer % 2 == 1 {
                assert_eq!(answer(delete).await.status, 204);
            }
        });
    }
    while let Some(written) = writers.join_next().await {
        written.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    assert!(reader.join().unwrap() > 0);
    let mut left: Vec<u64> = servers(&served.workspace).values().map(write_of).collect();
    left.sort_unstable();
    assert_eq!(left, (0..WRITERS).step_by(2).collect::<Vec<_>>());
    let shown = served.get("/api/v1/servers").await.json();
    assert_eq!(shown["servers"].as_array().unwrap().len(), 50);
}

/// One writer's knowledge about its own entry.
#[derive(Default)]
struct Written {
    sent: AtomicU64,
    acknowledged: AtomicU64,
}

/// Proves S2-EC-09, S2-Q-08: the service is killed while it writes, again and again. The file is whole each time,
/// acknowledged writes are there, and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_leaves_the_old_or_the_new_state() {
    const WRITERS: usize = 4;
    let kills = std::env::var(KILLS_VARIABLE).map_or(KILLS_DEFAULT, |it| it.parse().unwrap());
    let mut workspace = toolbox();
    let key = create_key(&workspace, "me", haft_server::keys::Scope::Admin);
    let written: Arc<[Written; WRITERS]> = Arc::default();
    let (mut newer, mut acknowledged) = (0, 0);
    for kill in 0..kills {
        let program = crate::served::haft(&workspace, &SERVE);
        let served = Served::run(workspace, Some(key.clone()), program);
        let shown = served.get("/api/v1/servers").await.json();
        let shown: BTreeMap<&str, &Value> = shown["servers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|server| (server["name"].as_str().unwrap(), &server["endpoint"]))
            .collect();
        for (writer, written) in written.iter().enumerate() {
            let last = written.acknowledged.load(Ordering::SeqCst);
            if last > 0 {
                let endpoint = shown[&*format!("w{writer}")].as_str().unwrap();
                let found: u64 = endpoint.rsplit_once('/').unwrap().1.parse().unwrap();
                assert!(found >= last, "kill {kill}: {last} was acknowledged, {found} is there");
            }
        }
        // A different point between the early and the late part of the work each time.
        let writes_before_kill = kill % 13;
        let since_start = Arc::new(AtomicU64::new(0));
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let (written, since_start) = (Arc::clone(&written), Arc::clone(&since_start));
            let (url, key) = (format!("{}/api/v1/servers/w{writer}", served.url), key.clone());
            let client = client().build().unwrap();
            writers.spawn(async move {
                loop {
                    let write = written[writer].sent.fetch_add(1, Ordering::SeqCst) + 1;
                    let put = client.put(&url).header("x-api-key", &key);
                    let put = put.header("content-type", "application/json").body(entry(write));
                    // The service is gone.
                    let Ok(response) = put.send().await else { return };
                    let status = response.status().as_u16();
                    assert!([200, 201].contains(&status), "{status}");
                    written[writer].acknowledged.store(write, Ordering::SeqCst);
                    since_start.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        while since_start.load(Ordering::SeqCst) < writes_before_kill {
            tokio::task::yield_now().await;
        }
        // And not just behind an acknowledgement: somewhere in the next write.
        tokio::time::sleep(std::time::Duration::from_micros(kill * 977 % 7919)).await;
        workspace = served.kill();
        while let Some(writer) = writers.join_next().await {
            writer.unwrap();
        }
        let found = servers(&workspace);
        for (writer, written) in written.iter().enumerate() {
            let (sent, last) =
                (written.sent.load(Ordering::SeqCst), written.acknowledged.load(Ordering::SeqCst));
            let found = found.get(&format!("w{writer}")).map_or(0, write_of);
            assert!(
                (last..=sent).contains(&found),
                "kill {kill}: {last} was acknowledged, {sent} sent, {found} is there"
            );
            newer += u64::from(found > last);
            // What is there now is what the next state has to begin with.
            written.acknowledged.store(found, Ordering::SeqCst);
            acknowledged = acknowledged.max(last);
        }
    }
    let left: Vec<_> = std::fs::read_dir(workspace.path().join("tools"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("mcp.json") && name != "mcp.json")
        .collect();
    println!(
        "{kills} kills, {acknowledged} writes by the busiest writer, {newer} states newer than the last answer, left: {left:?}"
    );
    assert!(left.len() <= 1, "unfinished files are cleared away: {left:?}");
}

/// Proves S2-EC-09, S2-Q-08: an acknowledged write survives a power cut, because the file is synced before the
/// rename, the rename before the folder, and the folder before the answer.
#[tokio::test]
async fn a_write_reaches_the_disk_before_the_answer() {
    let workspace = toolbox();
    let key = create_key(&workspace, "me", haft_server::keys::Scope::Admin);
    let trace = workspace.path().join("trace");
    let calls = "trace=fsync,fdatasync,rename,renameat,renameat2,sendto,sendmsg,write,writev";
    let haft = env!("CARGO_BIN_EXE_haft");
    let strace = ["-f", "-y", "-s", "64", "-e", calls, "-o", trace.to_str().unwrap(), haft];
    let is_there = std::process::Command::new("strace").arg("-V").output().is_ok();
    assert!(is_there, "strace is missing: install the package `strace`");
    let program = Program::new("strace", &workspace).args(&strace).args(&SERVE);
    let mut served = Served::run(workspace, Some(key), program);
    let added = served.put("/api/v1/servers/traced", &entry(1)).await;
    assert_eq!(added.status, 201, "{}", added.text);
    // strace forwards no signal, so the service itself gets it.
    let pid = Pid::from_raw(i32::try_from(served.pid).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let finished = served.ended();
    assert_eq!(finished.code, 0, "{}", finished.stderr);

    let text = std::fs::read_to_string(&trace).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let at = |what: &str, from: usize, fits: &dyn Fn(&str) -> bool| {
        let found = lines.iter().skip(from).position(|line| fits(line));
        found.map_or_else(|| panic!("no {what} after line {from}:\n{text}"), |at| at + from)
    };
    let is_sync = |line: &str| line.contains("fsync(") || line.contains("fdatasync(");
    let folder = served.workspace.path().join("tools");
    let folder = folder.to_str().unwrap();
    let rename = at("rename", 0, &|line| line.contains("rename") && line.contains("/mcp.json\""));
    let temporary = lines[rename].split('"').nth(1).unwrap();
    let file = at("fsync of the file", 0, &|line| is_sync(line) && line.contains(temporary));
    let directory = at("fsync of the folder", rename, &|line| {
        is_sync(line) && line.contains(&format!("{folder}>"))
    });
    let answered = at("answer", 0, &|line| line.contains("HTTP/1.1 201"));
    assert!(file < rename && rename < directory && directory < answered, "{text}");
}
