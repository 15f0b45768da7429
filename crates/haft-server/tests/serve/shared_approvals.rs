//! The answer `always` at one replica, as others see it.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::postgres::database;

use crate::faults::until;
use crate::served::{Answer, Served, answer, haft};
use crate::shared_support::{readiness, replicas};

const ASKING: &str = "builtin: {enabled: false}\n\
                      tools: [{name: greet, approval: ask}, {name: other, approval: ask}]\n";

/// Opens an MCP session, which every replica continues.
async fn open(served: &Served) -> String {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let opened = post(served, None, &request("initialize", &params)).await;
    assert_eq!(opened.status, 200, "{}", opened.text);
    opened.header("mcp-session-id").to_owned()
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

async fn post(served: &Served, session: Option<&str>, message: &Value) -> Answer {
    let request = served.request(Method::POST, "/mcp");
    let request = request.header("accept", "application/json, text/event-stream");
    let request = session.into_iter().fold(request, |it, id| it.header("mcp-session-id", id));
    answer(request.header("content-type", "application/json").body(message.to_string())).await
}

/// Calls a tool in a session, and expects its result.
async fn call(served: &Served, session: &str, tool: &str) {
    let message = request("tools/call", &json!({"name": tool, "arguments": {}}));
    let answered = post(served, Some(session), &message).await;
    assert!(answered.text.contains("greeting"), "{}", answered.text);
}

/// The path of the only open question.
async fn question(at: &Served) -> String {
    let item =
        until("a question", async || at.get("/api/v1/inbox").await.json()["items"].get(0).cloned());
    format!("/api/v1/inbox/{}", item.await["id"].as_str().unwrap())
}

/// Answers the question of a call.
async fn answer_at(served: &Served, given: &str) -> Value {
    let path = question(served).await;
    let answered = served.post(&path, &json!({"answer": given}).to_string()).await;
    assert_eq!(answered.status, 200, "{}", answered.text);
    answered.json()
}

/// Calls a tool until no question is asked.
async fn until_covered(served: &Served, session: &str, tool: &str) {
    until("the approval holds", async || {
        tokio::select! {
            () = call(served, session, tool) => Some(()),
            // The call is given up, and its question with it.
            _ = question(served) => None,
        }
    })
    .await;
}

/// `always`, given at one replica to a call of another one, covers the calls of that session at a third one, also those
/// that wait there; a new replica knows it from its start. Once it is removed, the next call asks again.
#[tokio::test]
async fn an_approval_for_good_holds_at_every_replica_until_it_is_removed() {
    let Some(test) = database() else { return };
    let [one, two, three] = replicas(&test.url, ASKING).await;
    let session = open(&one).await;
    let waiting = call(&three, &session, "greet");
    let approving = async {
        let calling = call(&one, &session, "greet");
        let answering = async {
            until("two questions", async || {
                let items = two.get("/api/v1/inbox").await.json()["items"].clone();
                (items.as_array().unwrap().len() == 2).then_some(())
            })
            .await;
            let list = two.get("/api/v1/inbox").await.json();
            // That of the first replica, wherever it is in the list.
            let items = list["items"].as_array().unwrap();
            let own = items.iter().find(|it| it["id"].as_str().unwrap().ends_with("0001")).unwrap();
            let path = format!("/api/v1/inbox/{}", own["id"].as_str().unwrap());
            let answered = two.post(&path, r#"{"answer": "always"}"#).await;
            assert_eq!((answered.status, &answered.json()["warning"]), (200, &Value::Null));
        };
        tokio::join!(calling, answering);
    };
    // The call that waits at the third replica continues too.
    tokio::join!(waiting, approving);
    until_covered(&two, &session, "greet").await;
    assert_eq!(test.sql("select tool from haft.approval"), "greet");
    let fourth = three.restarted();
    call(&fourth, &session, "greet").await;

    let shared = |args: &[&str]| {
        let finished = haft(&one.workspace, &[&["shared", "approvals"], args].concat()).run();
        (finished.code, finished.stdout)
    };
    let (code, listed) = shared(&["list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((code, &listed[0]["tool"], &listed[1]), (0, &json!("greet"), &Value::Null));
    let id = listed[0]["id"].as_str().unwrap();
    assert_ne!(shared(&["rm", "x"]).0, 0);
    assert_eq!(shared(&["rm", &id[..12]]), (0, format!("removed {id}\n")));
    assert_eq!(shared(&[]), (0, "no call is approved for good\n".to_owned()));
    let asked_again = until("the removal is in force", async || {
        let calling = call(&two, &session, "greet");
        let looking = async {
            let path = question(&one).await;
            one.post(&path, r#"{"answer": "allow"}"#).await
        };
        tokio::select! {
            () = calling => None,
            answered = looking => Some(answered),
        }
    })
    .await;
    assert_eq!(asked_again.status, 200, "{}", asked_again.text);
}

/// Without the database, an approval of before holds. A new one counts for its call alone, and the response reports it.
#[tokio::test]
async fn without_the_database_always_counts_for_one_call_and_reports_it() {
    let Some(test) = database() else { return };
    let [one, two] = replicas(&test.url, ASKING).await;
    let session = open(&one).await;
    let approved = tokio::join!(call(&one, &session, "greet"), answer_at(&one, "always")).1;
    assert_eq!(approved["warning"], Value::Null, "{approved}");
    until_covered(&two, &session, "greet").await;

    test.stop();
    until("the outage is noticed", async || {
        (readiness(&one, "shared").await.1 == "degraded").then_some(())
    })
    .await;
    for replica in [&one, &two] {
        call(replica, &session, "greet").await;
    }
    for _ in 0..2 {
        let approved = tokio::join!(call(&one, &session, "other"), answer_at(&one, "always")).1;
        let warning = approved["warning"].as_str().unwrap_or_default();
        assert!(warning.contains("database"), "{approved}");
    }
    assert!(one.stderr().contains("`always` counts for this call alone"), "{}", one.stderr());

    test.start();
    until("it is ready again", async || {
        (readiness(&one, "shared").await.1 == "ready").then_some(())
    })
    .await;
    let approved = tokio::join!(call(&one, &session, "other"), answer_at(&one, "always")).1;
    assert_eq!(approved["warning"], Value::Null, "{approved}");
    call(&one, &session, "other").await;
}
