//! Overload, clients that disconnect, and a shutdown with work in flight.

use std::collections::HashSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::{Program, Workspace, eventually};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::client;
use crate::faults::{all_gone, call, children, error_code, memory, until};
use crate::served::{SERVE, Served, create_key, toolbox};

/// A tool that reports its process id and waits until the file `go` is there.
const HELD_PY: &str = "import os, time\n\ndef run(args):\n    name = os.path.join(args['in'], str(os.getpid()) + '-' + str(args['n']))\n    open(name, 'w').close()\n    while not os.path.exists(args['go']):\n        time.sleep(0.01)\n    return {'n': args['n']}\n";

fn holding(config: &str) -> Workspace {
    let workspace = toolbox();
    let tools = json!({"tools": [
        {"name": "held", "description": "Waits.", "type": "local", "input_schema": {"type": "object"}, "timeout": "2m", "max_instances": 8,
         "config": {"script_path": "held.py"}},
        {"name": "greet", "description": "Greets.", "type": "local", "input_schema": {"type": "object"}, "max_instances": 4,
         "config": {"script_path": "greet.py"}},
    ]});
    workspace.write("haft.yaml", config);
    workspace.write("tools/tools.json", tools.to_string());
    workspace.write("tools/held.py", HELD_PY);
    std::fs::create_dir(workspace.path().join("held")).unwrap();
    workspace
}

fn held(served: &Served, n: u64) -> reqwest::RequestBuilder {
    let (inside, go) = (served.workspace.path().join("held"), served.workspace.path().join("go"));
    let body = json!({"arguments": {"in": inside, "go": go, "n": n}}).to_string();
    let request = served.request(Method::POST, "/api/v1/tools/held/call");
    request.header("content-type", "application/json").body(body)
}

/// Waits until `count` calls of `held` run; returns their processes.
async fn running(served: &Served, count: usize) -> Vec<u32> {
    let folder = served.workspace.path().join("held");
    until("the calls run", async || {
        let names = std::fs::read_dir(&folder).unwrap().flatten().map(|it| it.file_name());
        let names: Vec<String> = names.map(|it| it.into_string().unwrap()).collect();
        let pids = names.iter().map(|name| name.split_once('-').unwrap().0.parse().unwrap());
        (names.len() == count).then(|| pids.collect())
    })
    .await
}

/// Silent clients take every descriptor: connected clients get an answer, and everything works again when they are
/// gone.
#[tokio::test]
async fn running_out_of_descriptors_passes() {
    let workspace = toolbox();
    let key = create_key(&workspace, "me", haft_server::keys::Scope::Admin);
    let haft = env!("CARGO_BIN_EXE_haft");
    let program = Program::new("prlimit", &workspace).args(&["--nofile=64:64", haft]).args(&SERVE);
    let served = Served::run(workspace, Some(key), program);
    // This one connection stays open.
    assert_eq!(served.get("/healthz").await.status, 200);
    let address = served.url.strip_prefix("http://").unwrap();
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(TcpStream::connect(address).await.unwrap());
    }
    let descriptors = || std::fs::read_dir(format!("/proc/{}/fd", served.pid)).unwrap().count();
    eventually("every descriptor is taken", || (descriptors() >= 63).then_some(()));
    assert_eq!(served.get("/healthz").await.status, 200);
    let starved = call(&served, "fail", &json!({})).await;
    assert!(error_code(&starved).is_string(), "{}", starved.text);
    eventually("it says so", || {
        served.stderr().contains("cannot take new connections").then_some(())
    });
    drop(idle);
    until("it recovers", async || {
        let greeted = call(&served, "greet", &json!({"name": "Ada"})).await;
        (error_code(&greeted) == Value::Null).then_some(())
    })
    .await;
    assert!(descriptors() < 63);
    // Files that could not be looked at meanwhile are looked at again.
    until("it is ready again", async || {
        (served.get("/readyz").await.json()["status"] == json!("ready")).then_some(())
    })
    .await;
    assert!(served.log().iter().any(|it| it["execution_id"] == starved.json()["execution_id"]));
}

/// Proves X-10: ten thousand calls at once are answered, those that find no room with `Busy`; memory stays where
/// it was, and the log has every one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_at_once_are_bounded() {
    const CLIENTS: usize = 50;
    const CALLS_EACH: usize = 200;
    let workspace = holding("registry: {dir: tools}\ndefaults: {queue_max: 100}\n");
    let served = Served::with_admin(workspace);
    let wave = async || {
        let mut calls = JoinSet::new();
        for _ in 0..CLIENTS {
            let client = client().http2_prior_knowledge().build().unwrap();
            for _ in 0..CALLS_EACH {
                let url = format!("{}/api/v1/tools/greet/call", served.url);
                let request = client.post(url).header("x-api-key", served.admin.as_ref().unwrap());
                let request = request.header("content-type", "application/json");
                let request = request.body(r#"{"arguments":{"name":"Ada"}}"#);
                calls.spawn(async move {
                    let response = request.send().await.unwrap();
                    serde_json::from_str::<Value>(&response.text().await.unwrap()).unwrap()
                });
            }
        }
        calls.join_all().await
    };
    let first = wave().await;
    let (_, after_first) = memory(served.pid);
    let second = wave().await;
    let (_, after_second) = memory(served.pid);
    println!(
        "at most {} MiB after 10,000 calls, {} MiB after 20,000",
        after_first >> 20,
        after_second >> 20
    );
    assert!(after_first < 400 << 20, "{after_first}");
    assert!(after_second < after_first + after_first / 2, "{after_first} {after_second}");
    let mut ids = HashSet::new();
    let (mut worked, mut busy) = (0, 0);
    for envelope in first.iter().chain(&second) {
        match &envelope["error"]["code"] {
            Value::Null => worked += 1,
            code => {
                assert_eq!(code, &json!("Busy"), "{envelope}");
                busy += 1;
            }
        }
        ids.insert(envelope["execution_id"].as_str().unwrap().to_owned());
    }
    assert!(worked > 100 && busy > 0, "{worked} worked, {busy} found no room");
    assert_eq!(ids.len(), 2 * CLIENTS * CALLS_EACH);
    let logged = served.log();
    let logged_ids: HashSet<String> =
        logged.iter().map(|it| it["execution_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((logged.len(), &logged_ids), (ids.len(), &ids));
    let figures = served.get("/api/v1/status").await.json();
    assert_eq!(
        (&figures["calls"]["in_flight"], &figures["calls"]["waiting"]),
        (&json!(0), &json!(0))
    );
}

/// A disconnect cancels the work: the process ends, and the log has the outcome.
#[tokio::test]
async fn a_client_that_leaves_cancels_its_call() {
    let served = Served::with_admin(holding("registry: {dir: tools}\n"));
    let client = client().build().unwrap();
    let request = held(&served, 1).build().unwrap();
    let mut calling = JoinSet::new();
    calling.spawn(async move { client.execute(request).await });
    let pids = running(&served, 1).await;
    calling.shutdown().await;
    let entry = until("the call is logged", async || served.log().pop()).await;
    assert_eq!((&entry["tool"], &entry["error"]["code"]), (&json!("held"), &json!("Cancelled")));
    all_gone(&pids);
    assert_eq!(served.log().len(), 1);
    let status = served.get("/api/v1/status").await.json();
    assert_eq!(status["calls"]["in_flight"], json!(0));
}

/// SIGTERM with calls in flight: nothing new is accepted, those in flight are answered and logged, nothing is left.
#[tokio::test]
async fn an_end_lets_calls_finish_and_leaves_nothing_behind() {
    const CALLS: u64 = 5;
    let mut served = Served::with_admin(holding("registry: {dir: tools}\n"));
    let mut calls = JoinSet::new();
    for n in 0..CALLS {
        let request = held(&served, n);
        calls.spawn(async move { request.send().await.unwrap().text().await.unwrap() });
    }
    let mut pids = running(&served, usize::try_from(CALLS).unwrap()).await;
    pids.extend(children(served.pid));
    served.terminate();
    let address = served.url.strip_prefix("http://").unwrap().to_owned();
    until("nobody new is taken", async || {
        TcpStream::connect(&address).await.is_err().then_some(())
    })
    .await;
    served.workspace.write("go", "");
    for text in calls.join_all().await {
        let envelope: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(envelope["status"], json!("success"), "{text}");
    }
    let finished = served.ended();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    all_gone(&pids);
    let log = served.log();
    assert_eq!(log.len(), 5);
    assert!(log.iter().all(|entry| entry["status"] == "success"), "{log:?}");
}

/// The same with calls that take longer than the grace period: they are cut, answered, logged, and nothing is
/// left.
#[tokio::test]
async fn an_end_cuts_calls_that_take_too_long() {
    let config = "registry: {dir: tools}\napi: {shutdown_grace: 200ms}\n";
    let mut served = Served::with_admin(holding(config));
    let mut calls = JoinSet::new();
    for n in 0..3 {
        let request = held(&served, n).timeout(Duration::from_mins(1));
        calls.spawn(async move { request.send().await.unwrap().text().await.unwrap() });
    }
    let mut pids = running(&served, 3).await;
    pids.extend(children(served.pid));
    served.terminate();
    let finished = served.ended();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    all_gone(&pids);
    let log = served.log();
    assert_eq!(log.len(), 3, "{log:?}");
    for entry in log {
        let code = &entry["error"]["code"];
        assert_eq!(code, "Stopping", "{entry}");
    }
    for text in calls.join_all().await {
        let envelope: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(envelope["error"]["code"], "Stopping", "{text}");
    }
}
