//! Calls of modern clients that become tasks.

use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, HeaderValue};
use haft_mcp::RpcError;
use haft_mcp::oauth::BoxFuture;
use haft_mcp::server::{
    About, Change, ClientRequest, EndpointOptions, HttpEndpoint, ParamHeaders, Peer, Principal,
    ReplyBody, Routing, Service, Subscription,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast, mpsc};
use tokio_util::sync::CancellationToken;

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A service whose tools wait until they may continue.
struct Working {
    resume: Notify,
    /// Notified when a call is dropped or ends.
    ended: mpsc::UnboundedSender<()>,
    changes: broadcast::Sender<Change>,
}

/// Reports the end of a call.
struct Ended(mpsc::UnboundedSender<()>);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

impl Service for Working {
    fn about(self: Arc<Self>) -> BoxFuture<'static, About> {
        Box::pin(async {
            About {
                name: "working".to_owned(),
                version: "1".to_owned(),
                capabilities: json!({"tools": {}}),
                instructions: None,
            }
        })
    }

    fn request(
        self: Arc<Self>,
        request: ClientRequest,
    ) -> BoxFuture<'static, Result<Box<RawValue>, RpcError>> {
        Box::pin(async move {
            let _ended = Ended(self.ended.clone());
            let params = request.tool.map(|tool| tool.name).unwrap_or_default();
            let peer = request.peer;
            // Only one of the tools waits for nothing but time.
            if !params.contains("slow") {
                peer.task_started();
            }
            let question = to_raw_value(&json!({"message": "?"})).unwrap();
            let ask = || peer.ask(Some("name"), "elicitation/create", Some(&question));
            if params.contains("asking") {
                let (first, second) = tokio::join!(ask(), ask());
                let text = format!("{} {}", first?, second?);
                return Ok(to_raw_value(&json!({ "text": text })).unwrap());
            }
            self.resume.notified().await;
            if params.contains("broken") {
                return Err(RpcError::new(-32050, "it broke"));
            }
            Ok(RawValue::from_string(r#"{"long":12345678901234567890123}"#.to_owned()).unwrap())
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

struct Setup {
    endpoint: Arc<HttpEndpoint>,
    service: Arc<Working>,
    ended: mpsc::UnboundedReceiver<()>,
}

fn setup() -> Setup {
    let (report, ended) = mpsc::unbounded_channel();
    let service = Arc::new(Working {
        resume: Notify::new(),
        ended: report,
        changes: broadcast::Sender::new(1),
    });
    let endpoint = HttpEndpoint::new(Arc::clone(&service) as _, EndpointOptions::default());
    Setup { endpoint, service, ended }
}

impl Setup {
    /// Sends a request with these client capabilities, and returns the whole answer as text.
    async fn text(&self, who: &Principal, method: &str, params: Value, able: Value) -> String {
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": able,
        });
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let name = params.get("taskId").or(params.get("name")).and_then(Value::as_str);
        let headers = [
            ("accept", Some("application/json")),
            ("mcp-protocol-version", Some("2026-07-28")),
            ("mcp-method", Some(method)),
            ("mcp-name", name),
        ];
        let headers: HeaderMap = headers
            .into_iter()
            .filter_map(|(key, value)| {
                Some((key.parse().unwrap(), HeaderValue::from_str(value?).unwrap()))
            })
            .collect();
        let reply =
            self.endpoint.post(who, &headers, message.to_string().as_bytes(), Routing::Owner).await;
        let ReplyBody::Json(text) = reply.body else { panic!("not a JSON answer") };
        text
    }

    async fn post(&self, who: &Principal, method: &str, params: Value) -> Value {
        let able = json!({"elicitation": {}, "extensions": {TASKS: {}}});
        serde_json::from_str(&self.text(who, method, params, able).await).unwrap()
    }

    /// Calls a tool that becomes a task; its id.
    async fn start(&self, who: &Principal, tool: &str) -> Value {
        let mut answer = self.post(who, "tools/call", json!({"name": tool})).await;
        assert_eq!(answer["result"]["resultType"], "task", "{answer}");
        answer["result"]["taskId"].take()
    }

    /// The state of a task, as soon as it is this one.
    async fn state(&self, who: &Principal, id: &Value, status: &str) -> Value {
        loop {
            let mut answer = self.post(who, "tasks/get", json!({"taskId": id})).await;
            if answer["result"]["status"] == status {
                return answer["result"].take();
            }
            assert!(answer.get("error").is_none(), "{answer}");
            tokio::task::yield_now().await;
        }
    }
}

/// A call that a server runs as a task becomes a task of the client, which finds its result unmodified.
#[tokio::test]
async fn a_call_becomes_a_task_and_its_result_is_kept() {
    let setup = setup();
    let me = Principal::new("me");
    let created = setup.post(&me, "tools/call", json!({"name": "tool"})).await;
    let created = &created["result"];
    let mut keys: Vec<_> = created.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    let wanted =
        ["createdAt", "lastUpdatedAt", "pollIntervalMs", "resultType", "status", "taskId", "ttlMs"];
    assert_eq!(keys, wanted);
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    let id = &created["taskId"];
    let working = setup.state(&me, id, "working").await;
    assert_eq!(working["resultType"], "complete");
    setup.service.resume.notify_one();
    setup.state(&me, id, "completed").await;
    let able = json!({"extensions": {TASKS: {}}});
    let text = setup.text(&me, "tasks/get", json!({"taskId": id}), able).await;
    assert!(text.contains(r#""result":{"long":12345678901234567890123}"#), "{text}");
    // Cancelling a task that has ended changes nothing and is not an error.
    let ack = setup.post(&me, "tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(ack["result"], json!({"resultType": "complete"}));
    setup.state(&me, id, "completed").await;

    let id = setup.start(&me, "broken").await;
    setup.service.resume.notify_one();
    let failed = setup.state(&me, &id, "failed").await;
    assert_eq!(failed["error"], json!({"code": -32050, "message": "it broke"}));
}

/// A task belongs to its key. An id of another key and one that never was are refused alike.
#[tokio::test]
async fn a_task_of_another_key_does_not_exist() {
    let setup = setup();
    let id = setup.start(&Principal::new("me"), "tool").await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = |id: &Value| json!({"taskId": id, "inputResponses": {}});
        let other = Principal::new("other");
        let foreign = setup.post(&other, method, params(&id)).await;
        let unknown = setup.post(&other, method, params(&json!("nothing"))).await;
        assert_eq!(foreign, unknown);
        assert_eq!(foreign["error"]["code"], -32602, "{method}: {foreign}");
    }
    setup.state(&Principal::new("me"), &id, "working").await;
}

/// A client that does not declare the extension gets no task and may not ask for one.
#[tokio::test]
async fn without_the_extension_there_are_no_tasks() {
    let setup = setup();
    let me = Principal::new("me");
    setup.service.resume.notify_one();
    let answer = setup.text(&me, "tools/call", json!({"name": "tool"}), json!({})).await;
    assert!(answer.contains(r#""resultType":"complete","long""#), "{answer}");
    for (method, params) in [
        ("tasks/get", json!({"taskId": "x"})),
        ("tasks/update", json!({"taskId": "x", "inputResponses": {}})),
        ("tasks/cancel", json!({"taskId": "x"})),
        ("subscriptions/listen", json!({"notifications": {"taskIds": ["x"]}})),
    ] {
        let refused = setup.text(&me, method, params, json!({})).await;
        let refused: Value = serde_json::from_str(&refused).unwrap();
        assert_eq!(refused["error"]["code"], -32021, "{method}");
        let required = &refused["error"]["data"]["requiredCapabilities"]["extensions"];
        assert_eq!(*required, json!({TASKS: {}}), "{method}");
    }
}

/// The questions of a task are shown until they are answered, one by one or together, each under its own key.
#[tokio::test]
async fn questions_of_a_task_are_answered_by_updates() {
    let setup = setup();
    let me = Principal::new("me");
    let id = setup.start(&me, "asking").await;
    let asking = loop {
        let asking = setup.state(&me, &id, "input_required").await;
        if asking["inputRequests"].as_object().unwrap().len() == 2 {
            break asking;
        }
    };
    assert_eq!(asking["inputRequests"]["name"]["method"], "elicitation/create");
    assert_eq!(asking["inputRequests"]["name-2"]["params"], json!({"message": "?"}));
    let answers = json!({"name": "one", "unknown": "x"});
    let update = json!({"taskId": id, "inputResponses": answers});
    let ack = setup.post(&me, "tasks/update", update).await;
    assert_eq!(ack["result"], json!({"resultType": "complete"}));
    let asking = setup.state(&me, &id, "input_required").await;
    let open: Vec<_> = asking["inputRequests"].as_object().unwrap().keys().collect();
    assert_eq!(open, ["name-2"]);
    let update = json!({"taskId": id, "inputResponses": {"name-2": "two"}});
    setup.post(&me, "tasks/update", update).await;
    let done = setup.state(&me, &id, "completed").await;
    assert_eq!(done["result"], json!({"text": r#""one" "two""#}));
}

/// A cancelled task drops its call, and so does a key that is revoked, whose tasks are gone.
#[tokio::test]
async fn a_task_ends_with_its_cancellation_or_its_key() {
    let mut setup = setup();
    let me = Principal::new("me");
    let id = setup.start(&me, "tool").await;
    setup.post(&me, "tasks/cancel", json!({"taskId": id})).await;
    setup.state(&me, &id, "cancelled").await;
    setup.ended.recv().await.unwrap();

    let revoked = Arc::new(CancellationToken::new());
    let guest = Principal::new("guest").until(Arc::clone(&revoked));
    let id = setup.start(&guest, "tool").await;
    revoked.cancel();
    setup.ended.recv().await.unwrap();
    let gone = setup.post(&Principal::new("guest"), "tasks/get", json!({"taskId": id})).await;
    assert_eq!(gone["error"]["code"], -32602);
}

/// A call that takes long becomes a task by itself; its result expires an hour after its end.
#[tokio::test(start_paused = true)]
async fn a_long_call_becomes_a_task_and_expires() {
    let setup = setup();
    let me = Principal::new("me");
    let began = tokio::time::Instant::now();
    let id = setup.start(&me, "slow").await;
    assert_eq!(began.elapsed().as_secs(), 10);
    setup.service.resume.notify_one();
    let done = setup.state(&me, &id, "completed").await;
    assert_eq!(done["ttlMs"], 3_600_000);
    tokio::time::sleep(Duration::from_secs(3_590)).await;
    setup.state(&me, &id, "completed").await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let gone = setup.post(&me, "tasks/get", json!({"taskId": id})).await;
    assert_eq!(gone["error"]["code"], -32602);
}
