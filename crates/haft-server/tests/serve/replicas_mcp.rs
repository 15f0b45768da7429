//! MCP clients whose every request may arrive at another replica.

use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::cluster::{Cluster, Replica};
use crate::faults::until;
use crate::served::{Answer, answer};

const ACCEPT: &str = "application/json, text/event-stream";
const MODERN: &str = "2026-07-28";

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn post(replica: &Replica, session: &str, message: &Value) -> RequestBuilder {
    let request = replica.request(Method::POST, "/mcp").header("accept", ACCEPT);
    let request = request.header("mcp-session-id", session);
    request.header("content-type", "application/json").body(message.to_string())
}

/// Opens a session of a client that can be asked.
async fn open(replica: &Replica) -> String {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let message = request(0, "initialize", params).to_string();
    let request = replica.request(Method::POST, "/mcp").header("accept", ACCEPT);
    let opened = answer(request.header("content-type", "application/json").body(message)).await;
    assert_eq!(opened.status, 200, "{}", opened.text);
    opened.header("mcp-session-id").to_owned()
}

/// The messages of a stream of events.
struct Messages {
    response: Response,
    text: String,
}

impl Messages {
    async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// The next message, with the id of its event.
    async fn next(&mut self) -> (String, Value) {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name));
                    line.unwrap_or_default().trim().to_owned()
                };
                if let Ok(message) = serde_json::from_str(&field("data:")) {
                    return (field("id:"), message);
                }
            }
            let chunk = tokio::time::timeout(testkit::DEADLINE, self.response.chunk()).await;
            let chunk = chunk.expect("a message in time").unwrap().expect("the stream goes on");
            self.text += std::str::from_utf8(&chunk).unwrap();
        }
    }
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

#[tokio::test]
async fn a_session_works_at_every_replica_until_it_is_deleted() {
    let cluster = Cluster::start().await;
    let session = open(&cluster.replicas[0]).await;
    for replica in &cluster.replicas {
        let answered = answer(post(replica, &session, &call(1, "where", json!({})))).await;
        let text = &answered.json()["result"]["content"][0]["text"];
        assert_eq!(*text, json!(replica.number.to_string()), "{}", answered.text);
        // The home replica answers these.
        let level = request(2, "logging/setLevel", json!({"level": "error"}));
        let answered = answer(post(replica, &session, &level)).await;
        assert_eq!(answered.json()["result"], json!({}), "{}", answered.text);
    }
    // One client, whichever replica it used.
    let mut sessions = Vec::new();
    for replica in &cluster.replicas {
        let log = replica.get("/api/v1/log").await.json();
        sessions.push(log["calls"][0]["session"].clone());
    }
    assert!(
        sessions[0].is_string() && sessions.iter().all(|it| *it == sessions[0]),
        "{sessions:?}"
    );

    let request = cluster.replicas[1].request(Method::DELETE, "/mcp");
    let deleted = answer(request.header("mcp-session-id", &session)).await;
    assert_eq!(deleted.status, 204, "{}", deleted.text);
    for replica in &cluster.replicas {
        let gone = answer(post(replica, &session, &call(3, "where", json!({})))).await;
        assert_eq!(gone.status, 404, "{}", gone.text);
    }
}

#[tokio::test]
async fn the_answer_of_a_client_finds_the_call_that_asked() {
    let cluster = Cluster::start().await;
    let [home, second, third] = &cluster.replicas[..] else { panic!() };
    let session = open(home).await;
    let ask = call(1, "request_human_input", json!({"question": "Which?"}));
    let mut messages = Messages::of(post(second, &session, &ask)).await;
    let (last, question) = messages.next().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    // The stream breaks off, and is resumed at another replica.
    drop(messages);
    let request = third.request(Method::GET, "/mcp").header("accept", "text/event-stream");
    let request = request.header("mcp-session-id", &session).header("last-event-id", last);
    let mut messages = Messages::of(request).await;
    let answered = json!({"jsonrpc": "2.0", "id": question["id"],
        "result": {"action": "accept", "content": {"answer": "blue"}}});
    assert_eq!(answer(post(home, &session, &answered)).await.status, 202);
    let (_, result) = messages.next().await;
    assert_eq!(result["result"]["content"][0]["text"], "blue", "{result}");
}

#[tokio::test]
async fn a_cancelled_request_ends_at_the_replica_that_runs_it() {
    let cluster = Cluster::start().await;
    let [home, second, third] = &cluster.replicas[..] else { panic!() };
    let session = open(home).await;
    let calling = answer(post(second, &session, &call(9, "wait", json!({}))));
    let cancelling = async {
        until("the call runs", async || {
            (!second.live.runtime().running().is_empty()).then_some(())
        })
        .await;
        let params = json!({"requestId": 9});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert_eq!(answer(post(third, &session, &cancel)).await.status, 202);
    };
    let (_, ()) = tokio::join!(calling, cancelling);
    until("the call ends", async || second.live.runtime().running().is_empty().then_some(())).await;
}

#[tokio::test]
async fn notifications_continue_at_another_replica_when_the_home_is_gone() {
    let cluster = Cluster::start().await;
    let [home, second, third] = &cluster.replicas[..] else { panic!() };
    let session = open(home).await;
    let listen = |replica: &Replica, last: Option<&str>| {
        let request = replica.request(Method::GET, "/mcp").header("accept", "text/event-stream");
        let request = request.header("mcp-session-id", &session);
        last.into_iter().fold(request, |request, last| request.header("last-event-id", last))
    };
    let first = listen(second, None).send().await.unwrap();
    let chunk = { first }.chunk().await.unwrap().unwrap();
    assert!(chunk.starts_with(b"id: 7-0-0\n"), "the home replica answers: {chunk:?}");

    cluster.set_address(home.number, None);
    let mut messages = Messages::of(listen(third, Some("7-0-0"))).await;
    let (id, changed) = messages.next().await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert!(id.starts_with("31746-0-"), "{id}");
}

async fn modern(replica: &Replica, mut params: Value) -> Answer {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    let name = params["name"].as_str().unwrap().to_owned();
    let mut headers = HeaderMap::new();
    for (header, value) in [
        ("accept", ACCEPT),
        ("content-type", "application/json"),
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/call"),
        ("mcp-name", &name),
    ] {
        headers.insert(header, value.parse().unwrap());
    }
    let message = request(1, "tools/call", params).to_string();
    answer(replica.request(Method::POST, "/mcp").headers(headers).body(message)).await
}

#[tokio::test]
async fn a_suspended_request_resumes_where_it_waits() {
    let cluster = Cluster::start().await;
    let [first, second, third] = &cluster.replicas[..] else { panic!() };
    let call = json!({"name": "request_human_input", "arguments": {"question": "Which?"}});
    let asked = modern(first, call.clone()).await.json()["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (name, _) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let mut retry = call.clone();
    retry["requestState"] = asked["requestState"].clone();
    let content = json!({"action": "accept", "content": {"answer": "red"}});
    retry["inputResponses"] = json!({name: content});
    let done = modern(second, retry.clone()).await.json();
    assert_eq!(done["result"]["content"][0]["text"], "red", "{done}");
    let log = first.get("/api/v1/log").await.json();
    assert_eq!(log["calls"].as_array().unwrap().len(), 1, "one call: {log}");
    assert_eq!(second.get("/api/v1/log").await.json()["calls"], json!([]));

    // The owner dies while its request waits: the client has to begin again.
    let asked = modern(third, call).await.json()["result"].clone();
    retry["requestState"] = asked["requestState"].clone();
    cluster.set_address(third.number, None);
    let gone = modern(second, retry).await.json();
    let text = gone["error"]["message"].as_str().unwrap();
    assert!(text.contains("send the request again without it"), "{text}");
}
