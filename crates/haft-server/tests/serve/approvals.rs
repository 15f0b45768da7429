//! `policy.approvals`: who approves calls of tools with `approval: ask`.

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::model::{ModelServer, Step};

use crate::agent::{RUNS, over, workspace};
use crate::faults::until;
use crate::served::{Answer, Served, answer, toolbox};

const ASKING: &str = "registry: {dir: tools}\ntools: [{name: echo, approval: ask}]\n";

fn asking(more: &str) -> Workspace {
    let workspace = toolbox();
    workspace.write("haft.yaml", format!("{ASKING}{more}"));
    workspace
}

fn with_keys(workspace: Workspace) -> (Served, String) {
    let keys = [("boss", Scope::Admin), ("bot", Scope::Call)];
    let (served, mut keys) = Served::with_keys(workspace, &keys);
    (served, keys.pop().unwrap())
}

async fn post(served: &Served, key: &str, path: &str, body: Value) -> Answer {
    let request = served.request_as(key, Method::POST, path);
    answer(request.header("content-type", "application/json").body(body.to_string())).await
}

/// With keys, `approved: true` from a call key is denied, alone and in a batch. Its other calls run, and an admin key
/// approves.
#[tokio::test]
async fn a_call_key_does_not_approve_its_own_calls() {
    let (served, bot) = with_keys(asking(""));
    let path = "/api/v1/tools/echo/call";
    for body in [json!({"approved": true}), json!({})] {
        let denied = post(&served, &bot, path, body).await;
        let error = &denied.json()["error"];
        assert_eq!((denied.status, &error["code"]), (403, &json!("Denied")), "{}", denied.text);
        let expected = "this caller cannot approve its own calls: call the tool at `/mcp`, where an approver \
                        answers in the inbox, send `\"approved\": true` with a key of the scope `approve` or \
                        `admin`, let the operator set `policy.approvals: caller`, or set `approval: auto` for \
                        the tool";
        assert_eq!(error["remedy"], expected);
    }
    let greet = json!({"tool": "greet", "arguments": {"name": "Ada"}, "approved": true});
    let calls = json!({"calls": [{"tool": "echo", "approved": true}, greet]});
    let results = post(&served, &bot, "/api/v1/calls", calls.clone()).await.json();
    assert_eq!(results["results"][0]["error"]["code"], "Denied", "{results}");
    assert_eq!(results["results"][1]["status"], "success", "{results}");
    let results = served.post("/api/v1/calls", &calls.to_string()).await.json();
    assert_eq!(results["results"][0]["status"], "success", "{results}");
}

/// A call key sees the approval that its run waits for and cannot answer or refuse it; an admin key can. Neither
/// can it begin a run whose calls all count as approved.
#[tokio::test]
async fn a_call_key_does_not_approve_the_calls_of_its_runs() {
    let steps = [Step::call("echo", json!({})), Step::text("Done.")];
    let model = ModelServer::openai(steps);
    let (served, bot) = with_keys(workspace(&model, "tools: [{name: echo, approval: ask}]\n"));
    let refused = post(&served, &bot, RUNS, json!({"input": "Go.", "approved": true})).await;
    assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("Forbidden")));
    let remedy = refused.json()["remedy"].as_str().unwrap().to_owned();
    assert!(remedy.contains("`policy.approvals: caller`"), "{remedy}");

    let run = post(&served, &bot, RUNS, json!({"input": "Go."})).await.json();
    let item = until("the question", async || {
        let listed = answer(served.request_as(&bot, Method::GET, "/api/v1/inbox")).await.json();
        listed["items"].get(0).cloned()
    })
    .await;
    assert_eq!(item["kind"], "approval");
    let path = format!("/api/v1/inbox/{}", item["id"].as_str().unwrap());
    for body in [json!({"answer": "allow"}), json!({"answer": "always"}), json!({"refuse": true})] {
        let refused = post(&served, &bot, &path, body).await;
        assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("Forbidden")));
    }
    assert_eq!(served.post(&path, r#"{"answer": "allow"}"#).await.status, 200);
    assert_eq!(over(&served, &run).await["text"], "Done.");
}

/// `policy.approvals: caller` lets call keys approve their own calls, in the request and in the inbox.
#[tokio::test]
async fn the_operator_can_leave_approvals_to_callers() {
    let steps = [Step::call("echo", json!({})), Step::text("Done.")];
    let model = ModelServer::openai(steps);
    let workspace = workspace(&model, "tools: [{name: echo, approval: ask}]\n");
    let text = workspace.read("haft.yaml").unwrap();
    workspace.write("haft.yaml", text.replace("policy: {", "policy: {approvals: caller, "));
    let (served, bot) = with_keys(workspace);
    let called = post(&served, &bot, "/api/v1/tools/echo/call", json!({"approved": true})).await;
    assert_eq!(called.status, 200, "{}", called.text);
    let run = post(&served, &bot, RUNS, json!({"input": "Go."})).await.json();
    let item = until("the question", async || {
        served.get("/api/v1/inbox").await.json()["items"].get(0).cloned()
    })
    .await;
    let path = format!("/api/v1/inbox/{}", item["id"].as_str().unwrap());
    assert_eq!(post(&served, &bot, &path, json!({"answer": "allow"})).await.status, 200);
    assert_eq!(over(&served, &run).await["text"], "Done.");
}

/// Without keys there is no approver over HTTP, unless the operator leaves approvals to callers: neither in the request
/// nor in the inbox.
#[tokio::test]
async fn without_keys_no_caller_approves_over_http() {
    let approved = json!({"approved": true}).to_string();
    let path = "/api/v1/tools/echo/call";
    for policy in ["", "policy: {approvals: people}\n"] {
        let served = Served::open(asking(policy));
        let denied = served.post(path, &approved).await;
        assert_eq!((denied.status, &denied.json()["error"]["code"]), (403, &json!("Denied")));
    }
    let served = Served::open(asking("policy: {approvals: caller}\n"));
    assert_eq!(served.post(path, &approved).await.status, 200);

    let model = ModelServer::openai([Step::call("echo", json!({})), Step::text("Done.")]);
    let served = Served::open(workspace(&model, "tools: [{name: echo, approval: ask}]\n"));
    let refused = served.post(RUNS, r#"{"input": "Go.", "approved": true}"#).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    let run = served.post(RUNS, r#"{"input": "Go."}"#).await;
    assert_eq!(run.status, 202, "{}", run.text);
    let item = until("the question", async || {
        served.get("/api/v1/inbox").await.json()["items"].get(0).cloned()
    })
    .await;
    let path = format!("/api/v1/inbox/{}", item["id"].as_str().unwrap());
    let refused = served.post(&path, r#"{"answer": "allow"}"#).await;
    assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("Forbidden")));
}

/// A key with the scope `approve` calls tools, approves its own calls and those of others, and changes nothing.
#[tokio::test]
async fn an_approve_key_approves_and_changes_nothing() {
    let model = ModelServer::openai([Step::call("echo", json!({})), Step::text("Done.")]);
    let workspace = workspace(&model, "tools: [{name: echo, approval: ask}]\n");
    let keys = [("boss", Scope::Admin), ("bot", Scope::Call), ("ada", Scope::Approve)];
    let (served, keys) = Served::with_keys(workspace, &keys);
    let (bot, ada) = (&keys[1], &keys[2]);
    let called = post(&served, ada, "/api/v1/tools/echo/call", json!({"approved": true})).await;
    assert_eq!(called.status, 200, "{}", called.text);
    let run = post(&served, bot, RUNS, json!({"input": "Go."})).await.json();
    let item = until("the question", async || {
        let listed = answer(served.request_as(ada, Method::GET, "/api/v1/inbox")).await.json();
        listed["items"].get(0).cloned()
    })
    .await;
    assert_eq!((&item["kind"], &item["caller"]), (&json!("approval"), &json!("key:bot")));
    let path = format!("/api/v1/inbox/{}", item["id"].as_str().unwrap());
    assert_eq!(post(&served, ada, &path, json!({"answer": "allow"})).await.status, 200);
    assert_eq!(over(&served, &run).await["text"], "Done.");
    // Neither the log nor changes are for it.
    for path in ["/api/v1/log", "/api/v1/keys"] {
        let refused = answer(served.request_as(ada, Method::GET, path)).await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.text);
    }
}
