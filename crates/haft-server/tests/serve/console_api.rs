//! The endpoints that the web console added: history, import, sign-in, profiles, stored messages and log filters.

use haft_server::keys::Scope;
use reqwest::{Method, redirect};
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::{Fixture, Transport};
use testkit::guarded::Guarded;
use testkit::model::{ModelServer, Step};

use crate::agent::{RUNS, over, workspace};
use crate::faults::until;
use crate::served::{Served, answer, haft, toolbox};

fn toolbox_with(config: &str) -> Workspace {
    let workspace = toolbox();
    workspace.write("haft.yaml", config);
    workspace
}

/// The states of a server's history, the oldest first.
async fn states(served: &Served, name: &str) -> Vec<String> {
    let details = served.get(&format!("/api/v1/servers/{name}")).await.json();
    let history = details["history"].as_array().unwrap().iter();
    history.map(|change| change["state"].as_str().unwrap().to_owned()).collect()
}

/// The history has every change with its time and reason, also those between two requests of a reader.
#[tokio::test]
async fn a_server_keeps_the_history_of_its_states() {
    let served = Served::with_admin(toolbox());
    let mut docs = Fixture::serve(Transport::Http, &json!({"tools": ["echo"]}));
    let body = json!({"name": "docs", "url": docs.url, "mode": "dynamic"}).to_string();
    assert_eq!(served.post("/api/v1/servers", &body).await.status, 201);
    assert_eq!(states(&served, "docs").await, ["connecting", "ready"]);
    docs.kill();
    served.post("/api/v1/servers/docs/reconnect", "").await;
    until("the server is lost", async || {
        let states = states(&served, "docs").await;
        (states.last()? == "unavailable").then_some(())
    })
    .await;
    let details = served.get("/api/v1/servers/docs").await.json();
    let last = details["history"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["reason"], details["reason"]);
    assert!(last["at"].as_str().unwrap().ends_with('Z'), "{last}");
}

/// The console reads what people paste with the code of `haft import`, and adds nothing by reading it.
#[tokio::test]
async fn pasted_files_become_entries() {
    let served = Served::with_admin(toolbox());
    let import = async |text: &str| {
        served.post("/api/v1/servers/import", &json!({ "text": text }).to_string()).await
    };
    let claude = r#"{"mcpServers": {"time": {"command": "uvx", "args": ["x"], "env": {"K": "${NOT_SET_HERE}"}}}}"#;
    let read = import(claude).await.json();
    let entry =
        json!({"command": "uvx", "args": ["x"], "env": {"K": "${NOT_SET_HERE}"}, "name": "time"});
    assert_eq!(read, json!({"servers": [entry], "unset": ["NOT_SET_HERE"], "warnings": []}));
    let codex = "[mcp_servers.far]\nurl = \"https://example.com/mcp\"\n";
    assert_eq!(import(codex).await.json()["servers"][0]["url"], "https://example.com/mcp");
    let goose =
        "extensions:\n  near: {type: stdio, name: near, enabled: true, cmd: uvx, args: [x]}\n";
    assert_eq!(import(goose).await.json()["servers"][0]["command"], "uvx");
    for broken in ["{", "[]", "{}", "hello", r#"{"mcpServers": {"a": 1}}"#] {
        let refused = import(broken).await;
        assert_eq!(refused.status, 422, "{broken}: {}", refused.text);
        assert!(!refused.text.contains("agent-yaml"), "no list of formats: {}", refused.text);
        let remedy = &refused.json()["remedy"];
        assert!(remedy.as_str().unwrap().starts_with("paste a whole file"), "{broken}: {remedy}");
    }
    assert_eq!(served.get("/api/v1/servers").await.json()["servers"], json!([]));
}

/// A person signs in at a remote server by way of the console; the tokens are those of `haft login`.
#[tokio::test]
async fn a_person_signs_in_at_a_server_from_the_console() {
    let guarded = Guarded::start(3600);
    let config =
        format!("registry: {{dir: tools}}\nservers: {{guarded: {{url: '{}'}}}}\n", guarded.url);
    let served = Served::with_admin(toolbox_with(&config));
    let path = "/api/v1/servers/guarded/sign-in";
    assert_eq!(served.get(path).await.json()["state"], "none");
    let begun = served.post(path, "").await;
    assert_eq!(begun.status, 200, "{}", begun.text);
    let address = begun.json()["url"].as_str().unwrap().to_owned();
    assert_eq!(served.get(path).await.json()["state"], "waiting");
    // The authorization server of the test agrees at once and sends the browser back.
    let browser = reqwest::Client::builder().redirect(redirect::Policy::none()).build().unwrap();
    let back = browser.get(&address).send().await.unwrap();
    let back = back.headers()["location"].to_str().unwrap().to_owned();
    assert!(back.starts_with(&format!("{}/oauth/callback?", served.url)), "{back}");
    let forged =
        answer(browser.get(format!("{}/oauth/callback?state=other&code=x", served.url))).await;
    assert_eq!(forged.status, 400, "{}", forged.text);
    let page = answer(browser.get(&back)).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(!page.text.contains("code"), "the page repeats nothing of the request: {}", page.text);
    until("the person is signed in", async || {
        (served.get(path).await.json()["state"] == "signed_in").then_some(())
    })
    .await;
    until("the server answers", async || {
        let shown = served.get("/api/v1/servers/guarded").await.json();
        (shown["state"] == "ready").then_some(())
    })
    .await;
    assert_eq!(answer(browser.get(&back)).await.status, 400, "an answer counts once");
    assert_eq!(served.delete(path).await.status, 204);
    let state = served.get("/api/v1/servers/guarded").await.json()["state"].clone();
    assert_eq!(state, "unavailable", "without tokens the server refuses");
}

/// Programs of this machine need no sign-in, and servers that cannot be asked explain why.
#[tokio::test]
async fn a_sign_in_that_cannot_begin_is_explained() {
    let config = "registry: {dir: tools}\nservers:\n  near: {command: cat}\n  closed: {url: 'http://127.0.0.1:9/mcp'}\n";
    let served = Served::with_admin(toolbox_with(config));
    let near = served.post("/api/v1/servers/near/sign-in", "").await;
    assert_eq!(near.status, 409, "{}", near.text);
    let closed = served.post("/api/v1/servers/closed/sign-in", "").await;
    assert_eq!(closed.status, 502, "{}", closed.text);
    assert_eq!(served.get("/api/v1/servers/closed/sign-in").await.json()["state"], "failed");
    assert_eq!(served.post("/api/v1/servers/none/sign-in", "").await.status, 404);
}

/// A key that is bound to a profile reads that profile and its own session, and nothing else.
#[tokio::test]
async fn a_profile_key_reads_its_profile_only() {
    let config =
        "registry: {dir: tools}\nprofiles:\n  one: {tools: [echo]}\n  two: {tools: [none]}\n";
    let served = Served::with_admin(toolbox_with(config));
    let args = ["--json", "keys", "create", "--profile", "one", "--name", "bound"];
    let created: Value =
        serde_json::from_str(&haft(&served.workspace, &args).run().stdout).unwrap();
    let key = created["key"].as_str().unwrap();
    let get = async |path: &str| answer(served.request_as(key, Method::GET, path)).await;
    until("the key is known", async || (get("/api/v1/session").await.status == 200).then_some(()))
        .await;
    assert_eq!(get("/api/v1/session").await.json()["profile"], "one");
    let seen = get("/api/v1/profiles").await.json();
    assert_eq!(seen["profiles"].as_array().unwrap().len(), 1, "{seen}");
    assert_eq!(seen["profiles"][0]["tools"][0]["name"], "echo");
    for path in
        ["/api/v1/tools", "/api/v1/servers", "/api/v1/log", "/api/v1/config", "/api/v1/keys"]
    {
        assert_eq!(get(path).await.status, 403, "{path}");
    }
    let all = served.get("/api/v1/profiles").await.json();
    assert_eq!(all["profiles"].as_array().unwrap().len(), 2, "{all}");
}

/// The messages of a conversation come back in order, to its owner and to admins.
#[tokio::test]
async fn a_conversation_is_read_by_its_owner() {
    let steps = [Step::call("echo", json!({"text": "hi"})), Step::text("Done.")];
    let model = ModelServer::openai(steps);
    let keys = [("boss", Scope::Admin), ("one", Scope::Call), ("two", Scope::Call)];
    let (served, keys) = Served::with_keys(workspace(&model, ""), &keys);
    let request = served.request_as(&keys[1], Method::POST, RUNS);
    let request = request.header("content-type", "application/json");
    let begun = answer(request.body(json!({"input": "Say hi"}).to_string())).await.json();
    let run = over(&served, &begun).await;
    let path = format!("/api/v1/conversations/{}", run["session"].as_str().unwrap());
    let read = async |key: &str| answer(served.request_as(key, Method::GET, &path)).await;
    assert_eq!(read(&keys[2]).await.status, 404);
    let own = read(&keys[1]).await.json();
    assert_eq!(own, read(&keys[0]).await.json());
    let messages = own["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tools", "assistant"], "{own}");
    assert_eq!(messages[0]["text"], "Say hi");
    assert_eq!(messages[1]["calls"][0]["tool"], "echo");
    assert_eq!(messages[3]["text"], "Done.");
}

/// The log is searched by error code and by text, on the service and on the command line.
#[tokio::test]
async fn the_log_is_searched_by_code_and_text() {
    let served = Served::with_admin(toolbox());
    served.post("/api/v1/tools/echo/call", r#"{"arguments": {"text": "Needle"}}"#).await;
    served.post("/api/v1/tools/echo/call", r#"{"arguments": {"text": "hay"}}"#).await;
    served.post("/api/v1/tools/missing/call", "{}").await;
    let found = async |query: &str| {
        let answer = served.get(&format!("/api/v1/log?{query}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["calls"].as_array().unwrap().len()
    };
    assert_eq!(found("text=needle").await, 1);
    assert_eq!(found("text=ECHO").await, 2);
    assert_eq!(found("code=UnknownTool").await, 1);
    assert_eq!(found("code=Timeout").await, 0);
    assert_eq!(served.get("/api/v1/log?code=Nonsense").await.status, 400);
    let log = |args: &[&str]| haft(&served.workspace, args);
    let listed = log(&["--json", "log", "--text", "needle"]).run();
    assert_eq!(listed.stdout.matches("execution_id").count(), 1, "{listed:?}");
    let refused = log(&["log", "--code", "Nonsense"]).run();
    assert_eq!(refused.code, 2, "{refused:?}");
}
