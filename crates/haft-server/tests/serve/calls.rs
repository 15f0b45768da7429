//! Calls over the API: answers, statuses, events, batches, cancelling, and their log entries.

use futures_util::StreamExt as _;
use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::Fixture;

use crate::served::{Served, answer, toolbox};

/// The toolbox, with more lines in its `haft.yaml`.
fn toolbox_with(yaml: &str) -> Workspace {
    let workspace = toolbox();
    let text = workspace.read("haft.yaml").unwrap();
    workspace.write("haft.yaml", text + yaml);
    workspace
}

/// A server that is the fixture, as a line of `haft.yaml`.
fn fixture() -> String {
    let server = json!({"far": {
        "command": Fixture::path(), "args": Fixture::stdio_args(&json!({"tools": ["text", "progress"]})), "mode": "dynamic",
    }});
    format!("servers: {server}\n")
}

/// The answer of a call, without fields that differ from run to run.
async fn call(served: &Served, tool: &str, body: &str) -> (u16, Value) {
    let answer = served.post(&format!("/api/v1/tools/{tool}/call"), body).await;
    (answer.status, answer.json())
}

/// The arguments reach the tool unmodified: order, large numbers, escapes. A body with duplicate or unknown fields is
/// refused.
#[tokio::test]
async fn arguments_reach_the_tool_untouched() {
    let served = Served::open(toolbox());
    let body = r#"{"arguments": {"z": 12345678901234567890123, "a": 1.10, "ü": "\u00e9"}}"#;
    let answer = served.post("/api/v1/tools/echo/call", body).await;
    let data = answer.text.split_once("\"data\":").unwrap().1;
    assert!(
        data.starts_with(r#"{"z": 12345678901234567890123, "a": 1.10, "ü": "\u00e9"}"#),
        "{data}"
    );
    let mut seen = Vec::new();
    for body in [
        r#"{"arguments": {}, "arguments": {}}"#,
        r#"{"argument": {}}"#,
        r#"{"arguments": {"a": 1, "a": 2}}"#,
        r#"{"arguments": null}"#,
        r#"{"arguments": {}"#,
        "",
    ] {
        let headers = [("x-request-id", "r1"), ("content-type", "application/json")];
        let answer = served.send(Method::POST, "/api/v1/tools/echo/call", &headers, body).await;
        seen.push(format!("{body}\n{} {:#}", answer.status, answer.json()));
    }
    insta::assert_snapshot!(served.workspace.stable(&seen.join("\n\n")));
}

/// Proves S2-SC-006: after calls of every kind the log holds exactly one entry for each, with the id of the answer.
/// The status shows if the tool ran.
#[tokio::test]
async fn every_call_has_its_status_and_its_entry() {
    let yaml = format!(
        "tools: [{{name: echo, approval: ask}}, {{name: wait, timeout: 100ms}}]\n{}",
        fixture()
    );
    let served = Served::with_admin(toolbox_with(&yaml));
    let mut ids = Vec::new();
    for (tool, body, status, code) in [
        ("greet", r#"{"arguments": {"name": "you"}}"#, 200, None),
        ("fail", "{}", 200, Some("ToolExecutionError")),
        ("wait", "{}", 200, Some("Timeout")),
        ("greet", r#"{"arguments": {"name": 1}}"#, 422, Some("ValidationError")),
        ("greet", r#"{"arguments": {"name": "a", "name": "b"}}"#, 400, Some("ValidationError")),
        ("nobody", "{}", 404, Some("UnknownTool")),
        ("echo", "{}", 403, Some("Denied")),
        ("echo", r#"{"approved": true}"#, 200, None),
        ("text", "{}", 200, None),
    ] {
        let (seen, envelope) = call(&served, tool, body).await;
        assert_eq!(seen, status, "{tool} {body} {envelope}");
        assert_eq!(envelope["error"]["code"].as_str(), code, "{tool} {body}");
        let docs = code.map(|code| format!("docs/troubleshooting.md#{}", code.to_lowercase()));
        assert_eq!(envelope["error"]["docs"].as_str(), docs.as_deref(), "{tool} {body}");
        if status == 403 {
            let remedy = envelope["error"]["remedy"].as_str();
            let expected = "ask a person and send `\"approved\": true` beside the arguments, or set \
                            `approval: auto` for the tool";
            assert_eq!(remedy, Some(expected));
        }
        ids.push(envelope["execution_id"].clone());
    }
    let batch = json!({"calls": [
        {"tool": "greet", "arguments": {"name": "a"}}, {"tool": "nobody"},
        {"tool": "greet", "arguments": {"name": "b"}, "session": "s"},
    ]});
    let answer = served.post("/api/v1/calls", &batch.to_string()).await;
    let results = answer.json()["results"].as_array().unwrap().clone();
    let data: Vec<&Value> = results.iter().map(|it| &it["data"]["greeting"]).collect();
    assert_eq!(data, [&json!("Hello, a!"), &Value::Null, &json!("Hello, b!")]);
    ids.extend(results.iter().map(|it| it["execution_id"].clone()));

    let log = served.log();
    let mut logged: Vec<Value> = log.iter().map(|entry| entry["execution_id"].clone()).collect();
    // Calls of a batch that run at the same time end in any order.
    let by_text = |id: &Value| id.to_string();
    logged.sort_by_key(by_text);
    ids.sort_by_key(by_text);
    assert_eq!(logged, ids);
    assert!(log.iter().all(|entry| entry["caller"] == "key:me"), "{log:?}");
    assert!(log.iter().any(|entry| entry["session"] == "s"), "{log:?}");
    let many = json!({"calls": vec![json!({"tool": "greet"}); 101]});
    assert_eq!(served.post("/api/v1/calls", &many.to_string()).await.status, 400);
    assert_eq!(served.log().len(), ids.len());
}

/// A busy tool that does not queue answers 503, with `Retry-After`.
#[tokio::test]
async fn a_busy_tool_sends_retry_after() {
    let served = Served::open(toolbox_with("tools: [{name: wait, on_limit: reject}]\n"));
    let waiting = served.request(Method::POST, "/api/v1/tools/wait/call");
    let waiting = waiting.header("content-type", "application/json").body("{}");
    let first = async { answer(waiting).await };
    let second = async {
        until_running(&served).await;
        let busy = served.post("/api/v1/tools/wait/call", "{}").await;
        assert_eq!((busy.status, busy.header("retry-after")), (503, "1"), "{}", busy.text);
        let figures = served.get("/api/v1/tools/wait").await.json()["figures"].clone();
        assert_eq!(figures, json!({"in_flight": 1, "waiting": 0, "max_instances": 1}));
        let id = running(&served).await[0]["execution_id"].as_str().unwrap().to_owned();
        assert_eq!(served.delete(&format!("/api/v1/calls/{id}")).await.status, 202);
        id
    };
    let (first, id) = tokio::join!(first, second);
    assert_eq!(first.json()["error"]["code"], "Cancelled");
    assert_eq!(served.delete(&format!("/api/v1/calls/{id}")).await.status, 404);
}

async fn running(served: &Served) -> Vec<Value> {
    served.get("/api/v1/calls").await.json()["calls"].as_array().unwrap().clone()
}

/// Waits until the tool `wait` works.
async fn until_running(served: &Served) {
    let deadline = tokio::time::Instant::now() + testkit::DEADLINE;
    while running(served).await.first().is_none_or(|call| call["state"] != "running") {
        assert!(tokio::time::Instant::now() < deadline, "never ran");
        tokio::task::yield_now().await;
    }
}

/// A call key sees and cancels its own calls only; an admin all.
#[tokio::test]
async fn callers_end_their_own_calls() {
    let keys = [("boss", Scope::Admin), ("one", Scope::Call), ("two", Scope::Call)];
    let (served, keys) = Served::with_keys(toolbox(), &keys);
    let asking = served.request_as(&keys[1], Method::POST, "/api/v1/tools/wait/call");
    let asking = asking.header("content-type", "application/json").body("{}");
    let ending = async {
        until_running(&served).await;
        let calls = running(&served).await;
        assert_eq!(calls[0]["caller"], "key:one");
        let path = format!("/api/v1/calls/{}", calls[0]["execution_id"].as_str().unwrap());
        let as_key = async |key: &str, method: Method, path: &str| {
            answer(served.request_as(key, method, path)).await
        };
        let other = as_key(&keys[2], Method::GET, "/api/v1/calls").await.json();
        assert_eq!(other, json!({"calls": []}));
        assert_eq!(as_key(&keys[2], Method::DELETE, &path).await.status, 404);
        assert_eq!(as_key(&keys[1], Method::DELETE, &path).await.status, 202);
    };
    let (asked, ()) = tokio::join!(answer(asking), ending);
    assert_eq!(asked.json()["error"]["code"], "Cancelled");
}

/// With `Accept: text/event-stream`: that it began, how far it is, its answer.
#[tokio::test]
async fn events_describe_a_call() {
    let served = Served::open(toolbox_with(&fixture()));
    let headers = [
        ("accept", "text/event-stream"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ];
    let body = r#"{"arguments": {"steps": 2}}"#;
    let events = served.send(Method::POST, "/api/v1/tools/progress/call", &headers, body).await;
    assert_eq!((events.status, events.header("content-type")), (200, "text/event-stream"));
    insta::assert_snapshot!(served.workspace.stable(&events.text));
    let trace = served.log()[0]["trace_id"].clone();
    assert_eq!(trace, "0af7651916cd43dd8448eb211c80319c");
}

/// A client that disconnects cancels its call, with events and without: the log has it.
#[tokio::test]
async fn a_client_that_goes_away_cancels_its_call() {
    let served = Served::open(toolbox());
    for (count, accept) in [(1, "text/event-stream"), (2, "application/json")] {
        let request = served.request(Method::POST, "/api/v1/tools/wait/call").body("{}");
        let request = request.header("content-type", "application/json").header("accept", accept);
        let asking = async {
            let mut events = request.send().await.unwrap().bytes_stream();
            while events.next().await.is_some() {}
        };
        tokio::select! {
            () = asking => panic!("it answered"),
            () = until_running(&served) => {}
        }
        crate::until(|| served.log().len() == count).await;
        let log = served.log();
        assert_eq!(log[count - 1]["error"]["code"], "Cancelled", "{log:?}");
    }
}
