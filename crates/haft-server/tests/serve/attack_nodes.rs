//! Messages within the limit on bytes that are made of very many tiny values: of clients, of servers, in files.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::fixture::Fixture;
use testkit::{Program, Workspace};

use crate::faults::{call, memory};
use crate::served::{Answer, Served, haft, toolbox};

/// The most that any of this may cost beside what the process takes anyway. It was 1.8 GB.
const MEMORY_MAX: u64 = 256 << 20;
const BODY_BYTES: usize = 3_900_000;

/// The same item again and again.
fn items(item: &str) -> String {
    vec![item; BODY_BYTES / (item.len() + 1)].join(",")
}

/// Bodies of numbers, objects and keys, each with a place for its head and end.
fn values() -> [(&'static str, String); 3] {
    let keys: Vec<String> = (0..BODY_BYTES / 11).map(|n| format!("\"{n:06x}\":0")).collect();
    [
        ("numbers", format!("[{}]", items("0"))),
        ("objects", format!("[{}]", items("{}"))),
        ("keys", format!("{{{}}}", keys.join(","))),
    ]
}

fn rpc(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// Twelve clients at once: every body is refused with its cause and what to do, and memory stays bounded.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_very_many_values_are_refused() {
    let served = Served::with_admin(toolbox());
    let (calm, _) = memory(served.pid);
    let served = &served;
    for (name, values) in &values() {
        let single = format!(r#"{{"arguments":{{"name":{values}}}}}"#);
        let batch = format!(r#"{{"calls":[{{"tool":"greet","arguments":{{"name":{values}}}}}]}}"#);
        let entry = format!(r#"{{"name":"x","command":"cat","config":{values}}}"#);
        let rest = [
            ("/api/v1/tools/greet/call", &single),
            ("/api/v1/calls", &batch),
            ("/api/v1/servers", &entry),
        ];
        let posts = rest.iter().cycle().take(9);
        let answers = join_all(posts.map(|(path, body)| served.post(path, body))).await;
        for Answer { status, text, .. } in answers {
            assert_eq!(status, 413, "{name}: {text}");
            let problem: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(problem["detail"], "the body has more than 100000 values and keys");
            assert!(problem["remedy"].as_str().unwrap().contains("limits.message_nodes_max"));
        }
        let message =
            rpc(7, "tools/call", &format!(r#"{{"name":"greet","arguments":{{"name":{values}}}}}"#));
        let answers = join_all((0..3).map(|_| served.post("/mcp", &message))).await;
        for answer in answers {
            assert_eq!(answer.status, 413, "{name}: {}", answer.text);
            let answer = answer.json();
            assert_eq!(answer["id"], 7, "the refusal reaches the request: {answer}");
            assert_eq!(answer["error"]["code"], -32600);
            let text = answer["error"]["message"].as_str().unwrap();
            assert!(text.contains("more than 100000 values and keys"), "{text}");
        }
    }
    let (_, most) = memory(served.pid);
    assert!(most < calm + MEMORY_MAX, "{} MiB, then {} MiB", calm >> 20, most >> 20);
    assert_eq!(served.log().len(), 0, "none of it was a call");
}

/// The setting decides, also after a reload.
#[tokio::test]
async fn the_setting_changes_the_limit() {
    let workspace = toolbox();
    let config = workspace.read("haft.yaml").unwrap();
    let set = |max: u32| format!("{config}limits: {{message_nodes_max: {max}}}\n");
    workspace.write("haft.yaml", set(2_000));
    let served = Served::with_admin(workspace);
    let numbers = json!({"values": vec![0; 3_000]});
    let body = json!({"arguments": numbers}).to_string();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": numbers});
    assert_eq!(served.post("/api/v1/tools/echo/call", &body).await.status, 413);
    assert_eq!(served.post("/mcp", &message.to_string()).await.status, 413);
    served.workspace.write("haft.yaml", set(5_000));
    assert_eq!(served.post("/api/v1/reload", "").await.status, 200);
    assert_eq!(served.post("/api/v1/tools/echo/call", &body).await.status, 200);
    // It needs a session, and is read at least.
    assert_eq!(served.post("/mcp", &message.to_string()).await.status, 400);
    let shown = served.get("/api/v1/config").await.text;
    assert!(shown.contains("limits.message_nodes_max") && shown.contains("5000"), "{shown:.300}");
}

fn hostile() -> Workspace {
    let scenario = |tools: Value| Fixture::stdio_args(&json!({ "tools": tools }));
    let config = json!({
        "servers": {
            "hostile": {"command": Fixture::path(), "args": scenario(json!([
                "many", {"name": "many_patient", "behaves": "many", "inputSchema": {"type": "object"}}]))},
            "honest": {"command": Fixture::path(), "args": scenario(json!(["text"]))},
        },
        "tools": [{"name": "many", "timeout": "2s"}, {"name": "many_patient", "timeout": "2m"}],
    });
    Workspace::with(&[("haft.json", &config.to_string())])
}

/// Proves the first rule of the faults for such answers: the call ends by its timeout + 1 s with one log entry, a
/// neighbour's calls continue, memory stays bounded, and SIGTERM is obeyed.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_with_very_many_values_harms_no_other_call() {
    let served = Served::open(hostile());
    call(&served, "text", &json!({})).await;
    let (calm, _) = memory(served.pid);
    let (mut calls, nothing) = (1, json!({}));
    // A busy machine may need more than two seconds to send and count 8 MB, so the timeout may come first. A patient
    // call always sees the reason.
    for (tool, kind, codes) in [
        ("many", "blocks", ["ProtocolError", "Timeout"].as_slice()),
        ("many_patient", "blocks", &["ProtocolError"]),
        ("many", "numbers", &["ProtocolError", "Timeout"]),
        ("many_patient", "numbers", &["ProtocolError"]),
        ("many", "list", &["Timeout"]),
    ] {
        let arguments = json!({"kind": kind, "bytes": 8_000_000});
        let mut hostile = std::pin::pin!(call(&served, tool, &arguments));
        let answer = loop {
            // At least one honest call runs beside it.
            let step = tokio::time::timeout(Duration::from_millis(20), &mut hostile);
            let (ended, honest) = tokio::join!(step, call(&served, "text", &nothing));
            calls += 1;
            assert_eq!(honest.json()["status"], "success", "{}", honest.text);
            if let Ok(answer) = ended {
                break answer.json();
            }
        };
        calls += 1;
        let code = answer["error"]["code"].as_str().unwrap_or_default();
        assert!(codes.contains(&code), "{tool} {kind}: {answer:.500}");
        let is_in_time = answer["duration_ms"].as_u64().unwrap() < 3_000;
        assert!(is_in_time || tool == "many_patient", "{kind}: {answer:.500}");
    }
    // Within the budget, unknown content is one warning, however many blocks there are.
    let answer = call(&served, "many", &json!({"kind": "blocks", "bytes": 30_000})).await;
    assert_eq!(answer.json()["status"], "success", "{:.500}", answer.text);
    calls += 1;
    let warnings = served.stderr().matches("of a kind Haft does not know").count();
    assert_eq!(warnings, 1, "{:.2000}", served.stderr());
    let (_, most) = memory(served.pid);
    assert!(most < calm + MEMORY_MAX, "{} MiB, then {} MiB", calm >> 20, most >> 20);
    assert_eq!(served.log().len(), calls, "one entry for each call");
    assert_eq!(served.end().code, 0);
}

/// A registry with a million keys, written by hand: a change over the API is refused by the budget, and costs little.
#[tokio::test]
async fn a_registry_of_a_million_keys_is_refused() {
    let served = Served::with_admin(toolbox());
    let keys: Vec<String> = (0..1_000_000).map(|n| format!("\"{n:x}\":0")).collect();
    let entry = format!(
        r#"{{"name":"big","description":"Big.","type":"local","input_schema":{{"x":{{{}}}}},"config":{{"command":["cat"]}}}}"#,
        keys.join(",")
    );
    served.workspace.write("tools/tools.json", format!(r#"{{"tools":[{entry}]}}"#));
    let (calm, _) = memory(served.pid);
    let new = json!({"name": "new", "description": "New.", "type": "local", "input_schema": {"type": "object"}, "config": {"command": ["cat"]}});
    let refused = served.post("/api/v1/tools", &new.to_string()).await;
    assert!((400..500).contains(&refused.status), "{} {}", refused.status, refused.text);
    assert!(refused.text.contains("more than 100000 values and keys"), "{}", refused.text);
    assert!((400..500).contains(&served.delete("/api/v1/tools/big").await.status));
    let (_, most) = memory(served.pid);
    assert!(most < calm + MEMORY_MAX, "{} MiB, then {} MiB", calm >> 20, most >> 20);
    // The state before stays in use.
    let greeted = call(&served, "greet", &json!({"name": "you"})).await;
    assert_eq!(greeted.json()["status"], "success", "{}", greeted.text);
}

/// A toolbox does not start with such a registry, and reports the reason.
#[test]
fn a_start_with_a_registry_of_a_million_keys_is_refused() {
    let workspace = toolbox();
    let numbers = vec!["0"; 1_000_000].join(",");
    workspace
        .write("tools/mcp.json", format!(r#"{{"mcp_servers":{{"x":{{"args":[{numbers}]}}}}}}"#));
    let program: Program = haft(&workspace, &["check"]);
    let finished = program.run();
    assert_eq!(finished.code, 2, "{}", finished.stderr);
    assert!(finished.stderr.contains("more than 100000 values and keys"), "{}", finished.stderr);
}
