//! The audit log: what admins did, before it is done.

use std::fs;

use haft_server::keys::Scope;
use serde_json::{Value, json};

use crate::served::{Served, create_key, haft, toolbox};

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
    let request = served.request_as(&call, reqwest::Method::POST, "/api/v1/tools/echo/call");
    let request = request.header("content-type", "application/json").body("{}");
    assert_eq!(crate::served::answer(request).await.status, 200);
}
