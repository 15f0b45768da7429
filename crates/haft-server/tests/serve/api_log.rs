//! The execution log over the API.

use std::time::Duration;

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::served::{Served, answer, haft, toolbox};

fn call(served: &Served, args: &[&str]) -> i32 {
    haft(&served.workspace, &[&["call"], args].concat()).run().code
}

fn tools(log: &Value) -> Vec<&str> {
    log["calls"].as_array().unwrap().iter().map(|call| call["tool"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn calls_are_looked_up() {
    let served = Served::with_admin(toolbox());
    let empty = served.get("/api/v1/log").await.json();
    assert_eq!(empty, json!({"calls": [], "malformed": 0, "unreadable": []}));
    assert_eq!(call(&served, &["greet", "name=Ada"]), 0);
    assert_eq!(call(&served, &["fail"]), 1);
    assert_eq!(call(&served, &["greet", "name=Bob"]), 0);

    let log = served.get("/api/v1/log").await.json();
    assert_eq!(tools(&log), ["greet", "fail", "greet"]);
    let log = served.get("/api/v1/log?newest_first=true&limit=2").await.json();
    assert_eq!(tools(&log), ["greet", "fail"]);
    assert_eq!(log["calls"][0]["input"]["name"], json!("Bob"));
    assert_eq!(tools(&served.get("/api/v1/log?status=error").await.json()), ["fail"]);
    assert_eq!(tools(&served.get("/api/v1/log?tool=greet").await.json()), ["greet", "greet"]);
    for none in ["session=x", "server=x", "caller=x", "until=1h", "since=2999-01-01"] {
        let log = served.get(&format!("/api/v1/log?{none}")).await.json();
        assert!(tools(&log).is_empty(), "{none}: {log}");
    }
    let caller = log["calls"][0]["caller"].as_str().unwrap();
    let log = served.get(&format!("/api/v1/log?caller={caller}&since=1h")).await.json();
    assert_eq!(tools(&log).len(), 3);

    let id = log["calls"][1]["execution_id"].as_str().unwrap();
    let one = served.get(&format!("/api/v1/log/{id}")).await;
    assert_eq!((one.status, &one.json()["tool"]), (200, &json!("fail")));
    assert_eq!(served.get("/api/v1/log/none").await.status, 404);
    for wrong in ["limit=0", "limit=1001", "limit=x", "status=odd", "since=soon", "tol=x"] {
        assert_eq!(served.get(&format!("/api/v1/log?{wrong}")).await.status, 400, "{wrong}");
    }
}

/// Foreign lines in the file are left out and counted, and do not hide the entries.
#[tokio::test]
async fn broken_lines_are_counted() {
    let served = Served::with_admin(toolbox());
    assert_eq!(call(&served, &["greet", "name=Ada"]), 0);
    let logs = served.workspace.path().join("logs");
    let file = std::fs::read_dir(logs).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("half a li\n{{}}\n{text}")).unwrap();
    let log = served.get("/api/v1/log").await.json();
    assert_eq!((tools(&log), &log["malformed"]), (vec!["greet"], &json!(2)));
}

/// Each call shows up as an event; a stream ends with the service and does not hold it up.
#[tokio::test]
async fn the_log_is_followed() {
    let served = Served::with_admin(toolbox());
    assert_eq!(call(&served, &["greet", "name=before"]), 0);
    let tail = served.request(Method::GET, "/api/v1/log/tail?tool=greet").send().await.unwrap();
    assert_eq!(tail.headers()["content-type"], "text/event-stream");
    // A disconnected client is removed; the others receive everything.
    drop(served.request(Method::GET, "/api/v1/log/tail").send().await.unwrap());
    let mut tail = tail;
    assert_eq!(call(&served, &["fail"]), 1);
    assert_eq!(call(&served, &["greet", "name=after"]), 0);
    let mut received = String::new();
    while !received.contains("\n\n") {
        let chunk = tokio::time::timeout(testkit::DEADLINE, tail.chunk()).await.unwrap().unwrap();
        received += std::str::from_utf8(&chunk.expect("the stream goes on")).unwrap();
    }
    assert!(
        received.contains("event: call\n") && received.contains("\"name\":\"after\""),
        "{received}"
    );
    assert!(!received.contains("before") && !received.contains("the cause"), "{received}");
    served.terminate();
    let end = tokio::time::timeout(testkit::DEADLINE, async {
        while let Ok(Some(_)) = tail.chunk().await {}
    });
    end.await.expect("the stream ends");
    let mut served = served;
    let finished = served.ended();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
}

/// The log holds what callers sent: not for call keys, nor for those without one.
#[tokio::test]
async fn the_log_is_for_admins() {
    let keys = [("boss", haft_server::keys::Scope::Admin), ("bot", haft_server::keys::Scope::Call)];
    let (served, keys) = Served::with_keys(toolbox(), &keys);
    for path in ["/api/v1/log", "/api/v1/log/x", "/api/v1/log/tail", "/api/v1/config"] {
        let request = served.request_as(&keys[1], Method::GET, path);
        let request = request.timeout(Duration::from_secs(30));
        assert_eq!(crate::served::answer(request).await.status, 403, "{path}");
    }
    let open = Served::open(toolbox());
    assert_eq!(open.get("/api/v1/log").await.status, 401);
    assert_eq!(open.get("/api/v1/status").await.status, 200);
}

/// A request that may not read the log learns from the error what reading it needs, also where no key exists yet.
#[tokio::test]
async fn reading_the_log_needs_an_admin_key() {
    let told = async |request| {
        let answer = answer(request).await;
        format!("{} {}", answer.status, answer.json()["detail"].as_str().unwrap())
    };
    let open = Served::open(toolbox());
    assert_eq!(
        told(open.request(Method::GET, "/api/v1/log")).await,
        "401 reading the log needs an admin key, and this server has no key yet"
    );
    let (served, keys) = Served::with_keys(toolbox(), &[("agent", Scope::Call)]);
    assert_eq!(
        told(served.request(Method::GET, "/api/v1/log")).await,
        "401 reading the log needs an admin key, and the request has none"
    );
    assert_eq!(
        told(served.request_as(&keys[0], Method::GET, "/api/v1/log/tail")).await,
        "403 `key:agent` is a call key, and reading the log needs an admin key"
    );
    // A tool may have any name.
    assert_eq!(
        told(served.request(Method::GET, "/api/v1/tools/log")).await,
        "401 this server needs a key, and the request has none"
    );
}
