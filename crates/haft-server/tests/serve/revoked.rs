//! Open streams and data of a key after the key is gone.

use haft_server::keys::Scope;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use testkit::model::{ModelServer, Step};

use crate::agent::{HUMAN, RUNS, over, path, workspace};
use crate::events::Events;
use crate::faults::until;
use crate::served::{Answer, Served, answer, create_key, haft};

fn revoke(served: &Served, name: &str) {
    let revoked = haft(&served.workspace, &["keys", "revoke", name]).run();
    assert_eq!(revoked.code, 0, "{}", revoked.stderr);
}

fn with_body(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request.header("content-type", "application/json").body(body.to_string())
}

async fn begin(served: &Served, key: &str, body: Value) -> Answer {
    answer(with_body(served.request_as(key, Method::POST, RUNS), &body)).await
}

/// Opens the notification stream of an MCP session.
async fn mcp_notifications(served: &Served, key: &str) -> (String, Events) {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let request = served.request_as(key, Method::POST, "/mcp");
    let request = request.header("accept", "application/json, text/event-stream");
    let session = answer(with_body(request, &message)).await.header("mcp-session-id").to_owned();
    (session.clone(), Events::of(mcp_listen(served, key, &session)).await)
}

fn mcp_listen(served: &Served, key: &str, session: &str) -> RequestBuilder {
    let request = served.request_as(key, Method::GET, "/mcp").header("mcp-session-id", session);
    request.header("accept", "text/event-stream").header("mcp-protocol-version", "2025-11-25")
}

/// Every stream of a revoked key ends, in order, and so do its calls and its runs; those of others continue.
#[tokio::test]
async fn what_a_revoked_key_holds_open_ends() {
    let model = ModelServer::openai([Step::silence(), Step::silence()]);
    let keys = [("boss", Scope::Admin), ("one", Scope::Admin), ("two", Scope::Call)];
    let (served, keys) = Served::with_keys(workspace(&model, HUMAN), &keys);
    let [_, one, two] = [&keys[0], &keys[1], &keys[2]];
    let run = begin(&served, one, json!({"input": "Hi"})).await.json();
    let other = begin(&served, two, json!({"input": "Hi"})).await.json();
    let events = |key: &str, path: &str| Events::of(served.request_as(key, Method::GET, path));
    let mut streams = vec![
        events(one, "/api/v1/inbox/events").await,
        events(one, "/api/v1/log/tail").await,
        events(one, &format!("{}/events", path(&run))).await,
        mcp_notifications(&served, one).await.1,
    ];
    let mut kept = events(two, "/api/v1/inbox/events").await;
    assert_eq!(kept.next().await.0, "open");
    let asked = json!({"arguments": {"question": "Anybody?"}});
    let tool = "/api/v1/tools/request_human_input/call";
    let call = answer(with_body(served.request_as(one, Method::POST, tool), &asked));
    let revoking = async {
        until("the question", async || {
            (served.get("/api/v1/inbox").await.json()["items"][0]["caller"] == "key:one")
                .then_some(())
        })
        .await;
        revoke(&served, "one");
    };
    let (refused, ()) = tokio::join!(call, revoking);
    assert_eq!(refused.status, 401, "{}", refused.text);
    for stream in &mut streams {
        stream.rest().await;
    }
    assert_eq!(over(&served, &run).await["status"], "cancelled");
    assert_eq!(served.get("/api/v1/inbox").await.json(), json!({"items": []}));

    // Streams of others stay open.
    assert_eq!(served.get(&path(&other)).await.json()["status"], "running");
    let call = answer(with_body(served.request_as(two, Method::POST, tool), &asked));
    let refusing = async {
        let (name, item) = kept.next().await;
        assert_eq!(name, "asked");
        let item = format!("/api/v1/inbox/{}", item["id"].as_str().unwrap());
        assert_eq!(served.post(&item, r#"{"refuse": true}"#).await.status, 200);
    };
    tokio::join!(call, refusing);
    assert_eq!(served.delete(&path(&other)).await.status, 202);
    over(&served, &other).await;
}

/// A key that permits less now holds nothing open from before; it works as what it is.
#[tokio::test]
async fn a_key_with_a_lower_scope_starts_over() {
    let model = ModelServer::openai([]);
    let keys = [("boss", Scope::Admin), ("one", Scope::Admin)];
    let (served, keys) = Served::with_keys(workspace(&model, ""), &keys);
    let notifications = served.request_as(&keys[1], Method::GET, "/api/v1/inbox/events");
    let mut notifications = Events::of(notifications).await;
    let file = std::fs::read_dir(served.workspace.path().join(".haft")).unwrap();
    let file = file.map(|it| it.unwrap().path()).find(|it| it.ends_with("keys.json")).unwrap();
    let mut keys_file: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    keys_file["keys"][1]["scope"] = json!("call");
    std::fs::write(&file, keys_file.to_string()).unwrap();
    notifications.rest().await;
    let again = served.request_as(&keys[1], Method::GET, "/api/v1/inbox");
    assert_eq!(answer(again).await.status, 200);
}

/// Streams that were opened without a key end when the first key is created; a run continues.
#[tokio::test]
async fn the_first_key_ends_what_came_without_one() {
    let model = ModelServer::openai([Step::silence()]);
    let mut served = Served::open(workspace(&model, ""));
    let run = crate::agent::begin(&served, json!({"input": "Hi"})).await;
    let mut notifications = Events::of(served.request(Method::GET, "/api/v1/inbox/events")).await;
    served.admin = Some(create_key(&served.workspace, "boss", Scope::Admin));
    notifications.rest().await;
    assert_eq!(served.get(&path(&run)).await.json()["status"], "running");
    assert_eq!(served.delete(&path(&run)).await.status, 202);
    over(&served, &run).await;
}

/// A key that has the name of a revoked one has nothing else of it: neither its runs, nor its conversations,
/// nor its MCP sessions. The log names both alike.
#[tokio::test]
async fn a_key_of_the_same_name_is_another() {
    let model = ModelServer::openai([Step::text("Hello."), Step::text("The boss's.")]);
    let keys = [("boss", Scope::Admin), ("zed", Scope::Call)];
    let (served, keys) = Served::with_keys(workspace(&model, ""), &keys);
    let (boss, old) = (&keys[0], &keys[1]);
    let run = begin(&served, old, json!({"input": "Hi"})).await.json();
    over(&served, &run).await;
    let (session, mut notifications) = mcp_notifications(&served, old).await;
    revoke(&served, "zed");
    notifications.rest().await;
    let new = &create_key(&served.workspace, "zed", Scope::Call);
    let get = async |path: &str| answer(served.request_as(new, Method::GET, path)).await;
    assert_eq!(get(RUNS).await.json(), json!({"runs": []}));
    assert_eq!(get(&path(&run)).await.status, 404);
    assert_eq!(answer(mcp_listen(&served, new, &session)).await.status, 404);
    let going_on = json!({"input": "Again", "session": run["session"]});
    assert_eq!(begin(&served, new, going_on.clone()).await.status, 404);
    let last = begin(&served, boss, going_on).await.json();
    assert_eq!(over(&served, &last).await["text"], "The boss's.");
    assert_eq!(served.get(&path(&run)).await.json()["caller"], "key:zed");
}

/// A conversation whose file has only the name of its key can be resumed by that key, and not by a later one of that
/// name.
#[tokio::test]
async fn a_conversation_with_only_a_name_belongs_to_its_first_key() {
    let model = ModelServer::openai([Step::text("Hello."), Step::text("Again.")]);
    let keys = [("boss", Scope::Admin), ("zed", Scope::Call)];
    let (served, keys) = Served::with_keys(workspace(&model, ""), &keys);
    let run = begin(&served, &keys[1], json!({"input": "Hi"})).await.json();
    over(&served, &run).await;
    let session = run["session"].as_str().unwrap();
    let files = haft(&served.workspace, &["--json", "sessions", "list"]).run();
    assert!(files.stdout.contains(session), "{}", files.stdout);
    let sessions = served.workspace.path().join(".haft/sessions");
    let file = std::fs::read_dir(sessions).unwrap().map(|it| it.unwrap().path());
    let file = file.filter(|it| it.to_string_lossy().contains(session)).find(|it| it.is_file());
    let file = file.unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mut first: Value = serde_json::from_str(first).unwrap();
    assert!(first["owner"].as_str().unwrap().starts_with("key:zed#"), "{first}");
    first["owner"] = json!("key:zed");
    std::fs::write(&file, format!("{first}\n{rest}")).unwrap();

    let going_on = json!({"input": "Again", "session": session});
    let next = begin(&served, &keys[1], going_on.clone()).await;
    assert_eq!(next.status, 202, "{}", next.text);
    assert_eq!(over(&served, &next.json()).await["text"], "Again.");
    revoke(&served, "zed");
    // Times of keys are whole seconds.
    let then = jiff::Timestamp::now().as_second();
    crate::until(|| jiff::Timestamp::now().as_second() > then).await;
    let new = create_key(&served.workspace, "zed", Scope::Call);
    assert_eq!(begin(&served, &new, going_on).await.status, 404);
}
