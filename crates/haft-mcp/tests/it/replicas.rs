//! Several endpoints that share their signing keys, as replicas do: which of them answers a request.

use std::num::NonZeroU16;
use std::sync::Arc;

use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use futures_util::StreamExt as _;
use haft_mcp::RpcError;
use haft_mcp::oauth::BoxFuture;
use haft_mcp::server::{
    About, Change, ClientRequest, EndpointOptions, HttpEndpoint, ParamHeaders, Peer, Principal,
    Replica, Reply, ReplyBody, ReplyEvents, Routing, Service, SigningKeys, Subscription,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast};

const NUMBERS: [u16; 2] = [7, 31746];
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A service of one replica. Its tools answer with the replica, ask their client, or wait.
struct Offer {
    number: u16,
    started: Notify,
    changes: broadcast::Sender<Change>,
}

impl Service for Offer {
    fn about(self: Arc<Self>) -> BoxFuture<'static, About> {
        Box::pin(async {
            About {
                name: "replica".to_owned(),
                version: "1".to_owned(),
                capabilities: json!({}),
                instructions: None,
            }
        })
    }

    fn request(
        self: Arc<Self>,
        request: ClientRequest,
    ) -> BoxFuture<'static, Result<Box<RawValue>, RpcError>> {
        Box::pin(async move {
            let peer = request.peer;
            let mut result = json!({
                "replica": self.number, "client": peer.client_id(), "name": peer.client_name(),
                "version": peer.protocol_version(), "capabilities": peer.client_capabilities(),
                "role": peer.role(),
            });
            match request.tool.map(|tool| tool.name).as_deref() {
                Some("ask") => {
                    let params = to_raw_value(&json!({"message": "?"})).unwrap();
                    let answer = peer.ask(Some("q"), "elicitation/create", Some(&params)).await?;
                    result["answer"] = json!(answer);
                }
                Some("task") => {
                    peer.task_started();
                    std::future::pending::<()>().await;
                }
                Some("wait") => {
                    self.started.notify_one();
                    std::future::pending::<()>().await;
                }
                Some(_) | None => {}
            }
            Ok(to_raw_value(&result).unwrap())
        })
    }

    fn subscribe(
        self: Arc<Self>,
        _: String,
        _: Peer,
    ) -> BoxFuture<'static, Result<Subscription, RpcError>> {
        Box::pin(async { Ok(Box::new(()) as Subscription) })
    }

    fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    fn param_headers(&self, _: &str) -> Option<ParamHeaders> {
        None
    }
}

struct OneReplica {
    endpoint: Arc<HttpEndpoint>,
    service: Arc<Offer>,
}

fn replica(number: u16, key: u8) -> OneReplica {
    let service =
        Arc::new(Offer { number, started: Notify::new(), changes: broadcast::Sender::new(8) });
    let replica = Replica {
        number: NonZeroU16::new(number).unwrap(),
        keys: SigningKeys::new([[key; 32]]).unwrap(),
        endpoint: "".into(),
    };
    let options = EndpointOptions { replica: Some(replica), ..EndpointOptions::default() };
    OneReplica { endpoint: HttpEndpoint::new(Arc::clone(&service) as _, options), service }
}

/// Two replicas: the home of the session, and another one.
fn replicas() -> (OneReplica, OneReplica) {
    (replica(NUMBERS[0], 1), replica(NUMBERS[1], 1))
}

fn me() -> Principal {
    Principal::new("key:me").with_role("call")
}

fn headers(values: &[(&'static str, &str)]) -> HeaderMap {
    let header = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
    };
    values.iter().map(header).collect()
}

fn forwarded(reply: &Reply) -> Option<u16> {
    match reply.body {
        ReplyBody::ForwardTo(number) => Some(number.get()),
        _ => None,
    }
}

fn json_of(reply: Reply) -> Value {
    match reply.body {
        ReplyBody::Json(text) => serde_json::from_str(&text).unwrap(),
        ReplyBody::Empty => panic!("empty: {}", reply.status),
        ReplyBody::ForwardTo(number) => panic!("forwarded to {number}"),
        ReplyBody::Response(_) | ReplyBody::Notifications(_) => panic!("a stream"),
    }
}

fn stream_of(reply: Reply) -> ReplyEvents {
    match reply.body {
        ReplyBody::Response(events) | ReplyBody::Notifications(events) => events,
        _ => panic!("no stream: {}", reply.status),
    }
}

/// The next event with a message: its id, and the message.
async fn next(events: &mut ReplyEvents) -> (String, Value) {
    loop {
        let text = events.next().await.expect("the stream ended");
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim().to_owned()
        };
        if let Ok(message) = serde_json::from_str(&field("data:")) {
            return (field("id:"), message);
        }
    }
}

impl OneReplica {
    async fn open(&self) -> String {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {"url": {}}, "experimental": {"x": 1}},
            "clientInfo": {"name": "Ada", "version": "1"},
        });
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let accept = headers(&[("accept", "application/json")]);
        let body = message.to_string();
        let reply = self.endpoint.post(&me(), &accept, body.as_bytes(), Routing::Owner).await;
        reply.session.expect("no session").to_str().unwrap().to_owned()
    }

    async fn send(&self, session: &str, message: &Value, routing: Routing) -> Reply {
        self.send_as(&me(), session, message, routing).await
    }

    async fn send_as(
        &self,
        principal: &Principal,
        session: &str,
        message: &Value,
        routing: Routing,
    ) -> Reply {
        let accept = "application/json, text/event-stream";
        let headers = headers(&[("accept", accept), ("mcp-session-id", session)]);
        self.endpoint.post(principal, &headers, message.to_string().as_bytes(), routing).await
    }

    async fn call(&self, session: &str, tool: &str) -> Reply {
        self.send(session, &request(1, "tools/call", json!({"name": tool})), Routing::Owner).await
    }

    fn listen(&self, session: &str, last: Option<&str>, routing: Routing) -> Reply {
        let mut values = vec![("accept", "text/event-stream"), ("mcp-session-id", session)];
        values.extend(last.map(|last| ("last-event-id", last)));
        self.endpoint.get(&me(), &headers(&values), routing)
    }

    /// A request of the modern era.
    async fn modern(&self, method: &str, mut params: Value, routing: Routing) -> Reply {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":
                {"elicitation": {}, "extensions": {TASKS: {}}},
        });
        let name = params.get("taskId").or(params.get("name")).unwrap().as_str().unwrap();
        let headers = headers(&[
            ("accept", "application/json"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
            ("mcp-name", name),
        ]);
        let body = request(1, method, params.clone()).to_string();
        self.endpoint.post(&me(), &headers, body.as_bytes(), routing).await
    }
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[tokio::test]
async fn every_replica_knows_a_session_and_its_client() {
    let (home, other) = replicas();
    let session = home.open().await;
    assert!(session.len() <= 1536, "{}", session.len());
    let first = json_of(home.call(&session, "about").await)["result"].clone();
    let second = json_of(other.call(&session, "about").await)["result"].clone();
    assert_eq!((&first["replica"], &second["replica"]), (&json!(7), &json!(31746)));
    for field in ["client", "name", "version", "capabilities", "role"] {
        assert_eq!(first[field], second[field], "{field}");
    }
    assert_eq!(first["capabilities"], json!({"elicitation": {"url": {}}}));
    assert_eq!(other.endpoint.session_count(), 1);

    let ping = request(2, "ping", json!({}));
    let foreign = Principal::new("key:other");
    let refused = other.send_as(&foreign, &session, &ping, Routing::Owner).await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    let stranger = replica(9, 2);
    let unknown = stranger.send(&session, &ping, Routing::Owner).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    assert_eq!((other.endpoint.session_count(), stranger.endpoint.session_count()), (1, 0));
}

#[tokio::test]
async fn an_answer_reaches_the_replica_that_asked() {
    let (home, other) = replicas();
    let session = home.open().await;
    let mut events = stream_of(other.call(&session, "ask").await);
    let (_, question) = next(&mut events).await;
    let id = question["id"].as_u64().unwrap();
    assert_eq!((id >> 32, question["method"].as_str()), (31746, Some("elicitation/create")));

    let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"action": "decline"}});
    assert_eq!(forwarded(&home.send(&session, &answer, Routing::Owner).await), Some(31746));
    // An owner that is gone leaves an answer without a question, as any late answer.
    let late = home.send(&session, &answer, Routing::Here).await;
    assert_eq!(late.status, StatusCode::ACCEPTED);
    other.send(&session, &answer, Routing::Here).await;
    let (_, result) = next(&mut events).await;
    assert_eq!(result["result"]["answer"], json!({"action": "decline"}), "{result}");
}

#[tokio::test]
async fn a_stream_resumes_at_the_replica_that_keeps_it() {
    let (home, other) = replicas();
    let session = home.open().await;
    let mut events = stream_of(other.call(&session, "ask").await);
    let (last, question) = next(&mut events).await;
    assert_eq!(last, "31746-1-1");
    drop(events);
    assert_eq!(forwarded(&home.listen(&session, Some(&last), Routing::Owner)), Some(31746));
    // Without its owner the stream is gone, as one that ended.
    let gone = home.listen(&session, Some(&last), Routing::Here);
    assert_eq!(gone.status, StatusCode::BAD_REQUEST);
    let mut events = stream_of(other.listen(&session, Some(&last), Routing::Here));
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "cancel"}});
    other.send(&session, &answer, Routing::Owner).await;
    let (id, result) = next(&mut events).await;
    assert_eq!((id.as_str(), &result["result"]["replica"]), ("31746-1-2", &json!(31746)));
}

#[tokio::test]
async fn the_home_replica_has_level_subscriptions_and_notifications() {
    let (home, other) = replicas();
    let session = home.open().await;
    let requests = [
        request(1, "logging/setLevel", json!({"level": "error"})),
        request(2, "resources/subscribe", json!({"uri": "file:///a"})),
        request(3, "resources/unsubscribe", json!({"uri": "file:///a"})),
    ];
    for request in &requests {
        assert_eq!(forwarded(&other.send(&session, request, Routing::Owner).await), Some(7));
        let answer = json_of(home.send(&session, request, Routing::Here).await);
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    assert_eq!(forwarded(&other.listen(&session, None, Routing::Owner)), Some(7));
    let mut events = stream_of(home.listen(&session, None, Routing::Here));
    // The client listed its tools at another replica.
    home.service.changes.send(Change::Tools).unwrap();
    let (id, changed) = next(&mut events).await;
    assert_eq!(
        (id.as_str(), &changed["method"]),
        ("7-0-1", &json!("notifications/tools/list_changed"))
    );
}

#[tokio::test]
async fn another_replica_takes_over_for_a_home_that_is_gone() {
    let (home, other) = replicas();
    let session = home.open().await;
    drop(home);
    let level = request(1, "logging/setLevel", json!({"level": "error"}));
    let answer = json_of(other.send(&session, &level, Routing::Here).await);
    assert_eq!(answer["result"], json!({}), "{answer}");
    let lists = ["tools", "prompts", "resources"];
    let lists = lists.map(|list| format!("notifications/{list}/list_changed"));
    // The client lost the stream of the home replica, or has none yet.
    for (replica, last) in [(other, Some("7-0-3")), (self::replica(9, 1), None)] {
        let mut events = stream_of(replica.listen(&session, last, Routing::Here));
        let mut changed = Vec::new();
        for _ in 0..3 {
            changed.push(next(&mut events).await.1["method"].as_str().unwrap().to_owned());
        }
        assert_eq!(changed, lists);
    }
}

#[tokio::test]
async fn a_cancelled_request_is_looked_for_everywhere() {
    let (home, other) = replicas();
    let session = home.open().await;
    let call = other.call(&session, "wait");
    let cancelling = async {
        other.service.started.notified().await;
        let params = json!({"requestId": 1});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        let reply = home.send(&session, &cancel, Routing::Owner).await;
        assert_eq!((reply.status, reply.is_for_all), (StatusCode::ACCEPTED, true));
        other.send(&session, &cancel, Routing::Here).await
    };
    let (answer, found) = tokio::join!(call, cancelling);
    assert!(!found.is_for_all, "the request is here");
    assert_eq!(json_of(answer)["error"]["code"], -32800);
}

#[tokio::test]
async fn a_deleted_session_is_not_rebuilt() {
    let (home, other) = replicas();
    let session = home.open().await;
    let named = headers(&[("mcp-session-id", &session)]);
    let reply = other.endpoint.delete(&me(), &named);
    assert_eq!((reply.status, reply.is_for_all), (StatusCode::NO_CONTENT, true));
    home.endpoint.delete(&me(), &named);
    for replica in [&home, &other] {
        let ping = request(1, "ping", json!({}));
        let reply = replica.send(&session, &ping, Routing::Owner).await;
        assert_eq!(reply.status, StatusCode::NOT_FOUND);
        assert_eq!(replica.endpoint.session_count(), 0);
    }
}

#[tokio::test]
async fn a_suspended_request_resumes_at_its_owner() {
    let (owner, other) = replicas();
    let call = json!({"name": "ask"});
    let asked = json_of(owner.modern("tools/call", call, Routing::Owner).await);
    let state = &asked["result"]["requestState"];
    let retry = json!({"name": "ask", "requestState": state, "inputResponses": {"q": {"action": "accept"}}});
    let reply = other.modern("tools/call", retry.clone(), Routing::Owner).await;
    assert_eq!(forwarded(&reply), Some(7));
    // Without its owner it is over, and the error is that of a state that has expired.
    let gone = json_of(other.modern("tools/call", retry.clone(), Routing::Here).await);
    let text = gone["error"]["message"].as_str().unwrap();
    assert!(text.contains("send the request again without it"), "{text}");
    let result = json_of(owner.modern("tools/call", retry, Routing::Here).await);
    assert_eq!(result["result"]["answer"], json!({"action": "accept"}), "{result}");
    assert_eq!(result["result"]["replica"], 7);
}

#[tokio::test]
async fn a_task_is_polled_at_its_owner() {
    let (owner, other) = replicas();
    let begun = json_of(owner.modern("tools/call", json!({"name": "task"}), Routing::Owner).await);
    let id = json!({"taskId": begun["result"]["taskId"]});
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let reply = other.modern(method, id.clone(), Routing::Owner).await;
        assert_eq!(forwarded(&reply), Some(7), "{method}");
    }
    let polled = json_of(owner.modern("tasks/get", id.clone(), Routing::Here).await);
    assert_eq!(polled["result"]["status"], "working", "{polled}");
    let gone = json_of(other.modern("tasks/get", id, Routing::Here).await);
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
}

#[tokio::test]
async fn ids_without_replicas_stay_as_they_were() {
    let OneReplica { service, .. } = replica(1, 1);
    let endpoint = HttpEndpoint::new(Arc::clone(&service) as _, EndpointOptions::default());
    let alone = OneReplica { endpoint, service };
    let session = alone.open().await;
    assert!(session.len() == 32 && session.bytes().all(|it| it.is_ascii_hexdigit()), "{session}");
    let mut events = stream_of(alone.call(&session, "ask").await);
    let (id, question) = next(&mut events).await;
    assert_eq!((id.as_str(), &question["id"]), ("1-1", &json!(1)));
}
