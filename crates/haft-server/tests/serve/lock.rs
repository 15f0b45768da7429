//! The lock file of a running service: drift, the inbox, approvals, reload.

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::Fixture;

use crate::faults::until;
use crate::served::{Served, answer, haft};

const APPROVE: &str = "/api/v1/lock/approve";

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// A workspace whose lock file was written for `locked`, and whose server is `now`.
fn workspace(locked: &Value, now: &Value) -> Workspace {
    let workspace = Workspace::new();
    let write = |tools: &Value| {
        let scenario = json!({"tools": tools, "prompts": 0, "resources": [], "templates": []});
        let server = json!({"command": Fixture::path(), "args": Fixture::stdio_args(&scenario)});
        workspace.write("haft.yaml", json!({"servers": {"files": server}}).to_string());
    };
    write(locked);
    let finished = haft(&workspace, &["lock"]).run();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    write(now);
    workspace
}

async fn call(served: &Served, name: &str) -> (u16, Value) {
    let called = served.post(&format!("/api/v1/tools/{name}/call"), "{}").await;
    (called.status, called.json()["error"]["code"].clone())
}

/// The open question about a tool.
async fn question(served: &Served, tool: &str) -> Value {
    until("the question", async || {
        let listed = served.get("/api/v1/inbox").await.json();
        listed["items"].as_array().unwrap().iter().find(|it| it["tool"] == tool).cloned()
    })
    .await
}

/// Each drift is an item of the inbox with the difference. An admin key answers it, a call key does not. The approval
/// is written to the file and counts at once.
#[tokio::test]
async fn drift_is_answered_in_the_inbox() {
    let workspace = workspace(
        &json!([tool("read", "Reads."), tool("list", "Lists.")]),
        &json!([tool("read", "Reads and sends."), tool("list", "Lists all.")]),
    );
    let keys = [("boss", Scope::Admin), ("bot", Scope::Call)];
    let (served, mut keys) = Served::with_keys(workspace, &keys);
    let bot = keys.pop().unwrap();
    let item = question(&served, "read").await;
    assert_eq!((&item["kind"], &item["server"]), (&json!("definition"), &json!("files")));
    assert_eq!(item["options"], json!(["approve", "deny"]));
    let change = &item["arguments"]["changes"][0];
    assert_eq!((&change["kind"], &change["at"]), (&json!("text_changed"), &json!("description")));
    assert!(change["words"].to_string().contains("and sends."), "{item}");
    assert_eq!(call(&served, "read").await, (403, json!("DefinitionChanged")));

    let path = format!("/api/v1/inbox/{}", item["id"].as_str().unwrap());
    let request = served.request_as(&bot, Method::POST, &path);
    let refused =
        request.header("content-type", "application/json").body(r#"{"answer": "approve"}"#);
    assert!([403, 404].contains(&answer(refused).await.status));
    assert_eq!(served.post(&path, r#"{"answer": "approve"}"#).await.status, 200);
    until("the approval", async || (call(&served, "read").await.0 == 200).then_some(())).await;
    let text = served.workspace.read("haft.lock").unwrap();
    assert!(text.contains("Reads and sends.") && !text.contains("Lists all."), "{text}");

    let item = question(&served, "list").await;
    let path = format!("/api/v1/inbox/{}", item["id"].as_str().unwrap());
    assert_eq!(served.post(&path, r#"{"answer": "deny"}"#).await.status, 200);
    assert_eq!(call(&served, "list").await, (403, json!("DefinitionChanged")));
    assert_eq!(served.get("/api/v1/inbox").await.json()["items"], json!([]));
}

/// A tool that is added while the service runs is listed as blocked, appears in the inbox and is approved over the API.
#[tokio::test]
async fn a_tool_added_at_run_time_is_approved_over_the_api() {
    let tools = json!(["add_tool"]);
    let workspace = workspace(&tools, &tools);
    let keys = [("boss", Scope::Admin), ("bot", Scope::Call)];
    let (served, keys) = Served::with_keys(workspace, &keys);
    assert_eq!(served.get("/api/v1/lock").await.json()["drift"], json!([]));
    let added =
        served.post("/api/v1/tools/add_tool/call", r#"{"arguments": {"name": "extra"}}"#).await;
    assert_eq!(added.status, 200, "{}", added.text);
    let item = question(&served, "extra").await;
    assert_eq!(item["arguments"]["state"], "new");
    assert_eq!(call(&served, "extra").await, (403, json!("DefinitionChanged")));
    let listed = served.get("/api/v1/tools?server=files").await.json();
    let extra = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "extra")
        .cloned()
        .unwrap();
    assert!(extra["blocked"]["current"].is_string(), "{extra}");
    assert!(!extra.to_string().contains("The tool extra"), "its definition is withheld: {extra}");

    let status = served.get("/api/v1/lock").await.json();
    let hash = status["drift"][0]["current"].clone();
    let bot = answer(served.request_as(&keys[1], Method::GET, "/api/v1/lock")).await;
    assert_eq!(bot.status, 403);
    let stale = json!({"server": "files", "name": "extra", "hash": "sha256:0"}).to_string();
    assert_eq!(served.post(APPROVE, &stale).await.status, 409);
    let unknown = json!({"server": "files", "name": "other"}).to_string();
    assert_eq!(served.post(APPROVE, &unknown).await.status, 404);
    let wanted = json!({"server": "files", "kind": "tool", "name": "extra", "hash": hash});
    let approved = served.post(APPROVE, &wanted.to_string()).await;
    assert_eq!((approved.status, &approved.json()["approved"][0]["name"]), (200, &json!("extra")));
    assert_eq!(call(&served, "extra").await.0, 200);
    until("an empty inbox", async || {
        let items = served.get("/api/v1/inbox").await.json()["items"].clone();
        (items == json!([])).then_some(())
    })
    .await;
}

/// A file that is changed by hand counts soon; one that cannot be used or is gone leaves the last good state.
#[tokio::test]
async fn the_last_good_lock_file_stays_in_use() {
    let workspace =
        workspace(&json!([tool("read", "Reads.")]), &json!([tool("read", "Reads more.")]));
    let good = workspace.read("haft.lock").unwrap();
    let served = Served::with_admin(workspace);
    assert_eq!(call(&served, "read").await.0, 403);
    let problem = async || {
        until("a problem", async || {
            let text = served.get("/readyz").await.text;
            text.contains("haft.lock").then_some(text)
        })
        .await
    };
    served.workspace.write("haft.lock", good.replacen("version = 1", "version = ", 1));
    let text = problem().await;
    assert!(text.contains("damaged"), "{text}");
    assert_eq!(call(&served, "read").await, (403, json!("DefinitionChanged")));
    std::fs::remove_file(served.workspace.path().join("haft.lock")).unwrap();
    until("a problem", async || {
        served.get("/readyz").await.text.contains("lock file is gone").then_some(())
    })
    .await;
    assert_eq!(call(&served, "read").await, (403, json!("DefinitionChanged")));

    served.workspace.write("haft.lock", &good);
    until("the good file", async || {
        (!served.get("/readyz").await.text.contains("haft.lock")).then_some(())
    })
    .await;
    // Another process approves.
    let finished = haft(&served.workspace, &["lock", "approve", "files"]).run();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    until("the approval", async || (call(&served, "read").await.0 == 200).then_some(())).await;
}
