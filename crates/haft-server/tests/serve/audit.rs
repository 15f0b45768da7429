//! The audit log: what admins did, before it is done.

use std::fs;

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::fixture::Fixture;
use testkit::model::{ModelServer, Step};

use crate::agent::{RUNS, over, workspace};
use crate::faults::until;
use crate::served::{Served, answer, create_key, haft, toolbox};

fn actions(served: &Served, args: &[&str]) -> Vec<Value> {
    let finished = haft(&served.workspace, &[&["--json", "audit"], args].concat()).run();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

/// Each change is recorded with its caller and the item before and after, without secrets.
#[tokio::test]
async fn changes_are_recorded_with_their_caller_and_both_states() {
    let served = Served::with_admin(toolbox());
    let body = json!({"name": "ci", "scope": "call", "rate": "60/min"}).to_string();
    let created = served.post("/api/v1/keys", &body).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let secret = created.json()["key"].as_str().unwrap().to_owned();
    assert_eq!(served.post("/api/v1/keys", &body).await.status, 409);
    let entry = json!({"name": "hello_world", "description": "Says hello.", "type": "local",
        "input_schema": {"type": "object"}, "config": {"script_path": "hello_world.py"}});
    assert_eq!(served.post("/api/v1/tools", &entry.to_string()).await.status, 201);
    assert_eq!(served.delete("/api/v1/tools/hello_world").await.status, 204);
    assert_eq!(served.post("/api/v1/reload", "").await.status, 200);
    assert_eq!(served.post("/api/v1/session", "").await.status, 200);
    assert_eq!(served.delete("/api/v1/keys/ci").await.status, 204);
    // Calls are in the execution log.
    assert_eq!(served.post("/api/v1/tools/echo/call", "{}").await.status, 200);

    let all = served.get("/api/v1/audit").await.json();
    let all = all["actions"].as_array().unwrap();
    let short = |it: &Value| {
        let text = |key: &str| it[key].as_str().unwrap_or("-").to_owned();
        format!("{} {} {} {}", text("who"), text("action"), text("target"), text("outcome"))
    };
    let seen: Vec<String> = all.iter().rev().map(short).collect();
    let user = &all.last().unwrap()["who"].as_str().unwrap()[4..];
    assert_eq!(
        seen.join("\n").replace(user, "USER"),
        "cli:USER key.create me done\n\
         key:me key.create ci done\n\
         key:me key.create - failed\n\
         key:me tool.create hello_world done\n\
         key:me tool.remove hello_world done\n\
         key:me config.reload - done\n\
         key:me session.sign_in - done\n\
         key:me key.revoke ci done"
    );
    let revoked = &all[0];
    assert_eq!((&revoked["before"]["rate"], &revoked["after"]), (&json!("60/min"), &Value::Null));
    assert_eq!(revoked["from"], "127.0.0.1");
    let removed = actions(&served, &["--action", "tool.remove"]);
    assert_eq!(removed[0]["before"]["description"], "Says hello.");
    assert_eq!(actions(&served, &["--who", "me", "--action", "key.*"]).len(), 3);
    assert!(actions(&served, &["--since", "2999-01-01"]).is_empty());
    let text = haft(&served.workspace, &["audit"]).run().stdout;
    assert!(text.contains("config.reload"), "{text}");
    let dir = served.workspace.path().join("logs/audit");
    let files = fs::read_dir(dir).unwrap().map(|file| fs::read_to_string(file.unwrap().path()));
    let written: String = files.map(Result::unwrap).collect();
    assert!(!written.contains(&secret) && !written.contains("haft_"), "{written}");
}

/// A change that cannot be recorded is refused and changes nothing.
#[tokio::test]
async fn a_change_that_cannot_be_recorded_is_refused() {
    let served = Served::with_admin(toolbox());
    let call = create_key(&served.workspace, "agent", Scope::Call);
    let dir = served.workspace.path().join("logs/audit");
    fs::remove_dir_all(&dir).unwrap();
    fs::write(&dir, "in the way").unwrap();
    let refused = served.post("/api/v1/keys", r#"{"name": "ci"}"#).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.starts_with("the change was refused"), "{detail}");
    assert_eq!(served.delete("/api/v1/tools/echo").await.status, 503);
    assert_eq!(served.get("/api/v1/tools/echo").await.status, 200);
    let refused = haft(&served.workspace, &["keys", "revoke", "agent"]).run();
    assert_ne!(refused.code, 0);
    assert!(refused.stderr.contains("nothing was changed"), "{}", refused.stderr);
    let keys = served.get("/api/v1/keys").await.json();
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2);
    // Calls need no audit entry.
    let request = served.request_as(&call, Method::POST, "/api/v1/tools/echo/call");
    let request = request.header("content-type", "application/json").body("{}");
    assert_eq!(answer(request).await.status, 200);
}

/// Damaged lines are left out and counted, as in the execution log. A line that is still being written is not one of
/// them.
#[tokio::test]
async fn damaged_lines_are_counted() {
    let served = Served::with_admin(toolbox());
    let dir = served.workspace.path().join("logs/audit");
    let file = fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&file).unwrap();
    let long = "x".repeat(2 << 20);
    let untimed = r#"{"id": "1", "at": "soon", "action": "key.create", "outcome": "done"}"#;
    fs::write(&file, format!("{{\"id\": \n{long}\n{untimed}\n{text}{{\"id\":")).unwrap();
    let listed = served.get("/api/v1/audit").await.json();
    assert_eq!(listed["malformed"], 3, "{listed}");
    assert_eq!(listed["actions"].as_array().unwrap().len(), 1, "{listed}");
    let finished = haft(&served.workspace, &["--json", "audit"]).run();
    let warning = "3 lines of the audit log cannot be read and are left out";
    assert!(finished.stderr.contains(warning), "{}", finished.stderr);
}

/// The state of an item that cannot be read is recorded as unreadable, with the reason.
#[tokio::test]
async fn an_unreadable_item_is_recorded_as_such() {
    let served = Served::with_admin(toolbox());
    let registry = served.workspace.read("tools/tools.json").unwrap();
    served.workspace.write("tools/tools.json", "{\"tools\": [");
    assert_ne!(served.delete("/api/v1/tools/echo").await.status, 204);
    served.workspace.write("tools/tools.json", registry);
    let action = actions(&served, &["--action", "tool.remove"]).remove(0);
    let reason = action["before"]["unreadable"].as_str().unwrap_or_else(|| panic!("{action}"));
    assert!(reason.contains("tools.json"), "{reason}");
    served.workspace.write(".haft/keys.json", "{\"version\": 1");
    let refused = haft(&served.workspace, &["keys", "revoke", "me"]).run();
    assert_ne!(refused.code, 0);
    let action = actions(&served, &["--action", "key.revoke"]).remove(0);
    let reason = action["before"]["unreadable"].as_str().unwrap_or_else(|| panic!("{action}"));
    assert!(reason.contains("keys.json"), "{reason}");
    assert_eq!(action["outcome"], "failed");
}

/// The approval of a call is recorded with the approver, the question and the answer.
#[tokio::test]
async fn the_approval_of_a_call_is_recorded() {
    let steps = [Step::call("echo", json!({"n": 7})), Step::text("Done.")];
    let model = ModelServer::openai(steps);
    let workspace = workspace(&model, "tools: [{name: echo, approval: ask}]\n");
    let keys = [("boss", Scope::Admin), ("ada", Scope::Approve), ("bot", Scope::Call)];
    let (served, keys) = Served::with_keys(workspace, &keys);
    let post = async |key: &str, path: &str, body: Value| {
        let request = served.request_as(key, Method::POST, path);
        answer(request.header("content-type", "application/json").body(body.to_string())).await
    };
    let run = post(&keys[2], RUNS, json!({"input": "Go."})).await.json();
    let item = until("the question", async || {
        served.get("/api/v1/inbox").await.json()["items"].get(0).cloned()
    })
    .await;
    let path = format!("/api/v1/inbox/{}", item["id"].as_str().unwrap());
    assert_eq!(post(&keys[2], &path, json!({"answer": "allow"})).await.status, 403);
    assert_eq!(post(&keys[1], &path, json!({"answer": "allow"})).await.status, 200);
    over(&served, &run).await;
    let [approved, refused] = &actions(&served, &["--action", "inbox.answer"])[..] else {
        panic!("two answers are recorded");
    };
    assert_eq!((&approved["who"], &approved["outcome"]), (&json!("key:ada"), &json!("done")));
    assert_eq!((&refused["who"], &refused["outcome"]), (&json!("key:bot"), &json!("failed")));
    assert_eq!(approved["target"], item["id"]);
    let before = &approved["before"];
    assert_eq!(
        (&before["tool"], &before["arguments"]["n"]),
        (&json!("echo"), &json!(7)),
        "{before}"
    );
    assert_eq!(approved["after"], json!({"answer": "allow"}));
}

/// The approval of a definition is recorded with the item and the difference.
#[tokio::test]
async fn the_approval_of_a_definition_is_recorded() {
    let workspace = toolbox();
    let write = |description: &str| {
        let tool =
            json!({"name": "read", "description": description, "inputSchema": {"type": "object"}});
        let scenario = json!({"tools": [tool]});
        let server = json!({"command": Fixture::path(), "args": Fixture::stdio_args(&scenario)});
        workspace.write("haft.yaml", json!({"servers": {"files": server}}).to_string());
    };
    write("Reads.");
    let locked = haft(&workspace, &["lock"]).run();
    assert_eq!(locked.code, 0, "{}", locked.stderr);
    write("Reads and sends.");
    let served = Served::with_admin(workspace);
    let wanted = json!({"server": "files", "name": "read"}).to_string();
    until("the approval", async || {
        let approved = served.post("/api/v1/lock/approve", &wanted).await;
        (approved.status == 200).then_some(())
    })
    .await;
    let action = actions(&served, &["--action", "lock.approve"]).remove(0);
    let facts = (&action["who"], &action["target"], &action["outcome"]);
    assert_eq!(facts, (&json!("key:me"), &json!("files/read"), &json!("done")));
    let drift = &action["after"]["approved"][0];
    assert_eq!((&drift["name"], &drift["state"]), (&json!("read"), &json!("changed")), "{action}");
    assert!(drift["changes"].to_string().contains("and sends."), "{action}");
}
