//! MCP requests of a revoked key that no connection holds open.

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;

use crate::agent::HUMAN;
use crate::faults::until;
use crate::served::{Served, answer, haft};

fn question(id: u64, meta: &Value) -> Value {
    let arguments = json!({"question": "Which colour?"});
    let params = json!({"name": "request_human_input", "arguments": arguments, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

async fn post(served: &Served, key: &str, headers: &[(&str, &str)], body: &Value) -> Value {
    let mut request = served.request_as(key, Method::POST, "/mcp");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.header("content-type", "application/json");
    let request = request.header("accept", "application/json, text/event-stream");
    answer(request.body(body.to_string())).await.json()
}

async fn open_questions(served: &Served) -> usize {
    served.get("/api/v1/inbox").await.json()["items"].as_array().unwrap().len()
}

/// A request that is suspended until its client answers ends when the client's key is revoked. The requests of
/// another key stay.
#[tokio::test]
async fn suspended_requests_end_with_their_key() {
    let keys = [("boss", Scope::Admin), ("one", Scope::Call), ("two", Scope::Call)];
    let (served, keys) = Served::with_keys(Workspace::with(&[("haft.yaml", HUMAN)]), &keys);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "request_human_input"),
    ];
    for key in &keys[1..] {
        let asked = post(&served, key, &headers, &question(1, &meta)).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    }
    assert_eq!(open_questions(&served).await, 2);
    let revoked = haft(&served.workspace, &["keys", "revoke", "one"]).run();
    assert_eq!(revoked.code, 0, "{}", revoked.stderr);
    until("the question is withdrawn", async || (open_questions(&served).await == 1).then_some(()))
        .await;
    let left = served.get("/api/v1/inbox").await.json();
    assert_eq!(left["items"][0]["caller"], "key:two");
    until("the call is recorded", async || {
        let log = served.log();
        let entry = log.iter().find(|entry| entry["caller"] == "key:one")?;
        assert_eq!(entry["error"]["code"], "Cancelled", "{entry}");
        Some(())
    })
    .await;
}
