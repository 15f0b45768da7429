//! Requests of modern clients that are suspended while their client is asked.

use std::sync::Arc;

use ::http::{HeaderMap, HeaderValue};
use haft_mcp::RpcError;
use haft_mcp::oauth::BoxFuture;
use haft_mcp::server::{
    About, Change, ClientRequest, EndpointOptions, HttpEndpoint, ParamHeaders, Peer, Principal,
    ReplyBody, Routing, Service, Subscription,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast, oneshot};
use tokio_util::sync::CancellationToken;

/// A service whose requests ask their client, and take their answer from elsewhere as soon as `answer` is
/// notified.
struct Asking {
    withdrawn: CancellationToken,
    answer: Arc<Notify>,
    /// Dropped with the request.
    running: std::sync::Mutex<Option<oneshot::Sender<()>>>,
    changes: broadcast::Sender<Change>,
}

impl Service for Asking {
    fn about(self: Arc<Self>) -> BoxFuture<'static, About> {
        Box::pin(async {
            About {
                name: "asking".to_owned(),
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
            let _running = self.running.lock().unwrap().take();
            let peer = request.peer;
            let params = to_raw_value(&json!({"message": "?"})).unwrap();
            let asking =
                peer.ask_until(None, "elicitation/create", Some(&params), Some(&self.withdrawn));
            let text = tokio::select! {
                answer = asking => answer?.get().to_owned(),
                () = self.answer.notified() => "elsewhere".to_owned(),
            };
            Ok(to_raw_value(&json!({ "text": text })).unwrap())
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
    service: Arc<Asking>,
    /// Ends when the request is dropped.
    dropped: oneshot::Receiver<()>,
}

fn setup() -> Setup {
    let (running, dropped) = oneshot::channel();
    let service = Arc::new(Asking {
        withdrawn: CancellationToken::new(),
        answer: Arc::default(),
        running: std::sync::Mutex::new(Some(running)),
        changes: broadcast::Sender::new(1),
    });
    let endpoint = HttpEndpoint::new(Arc::clone(&service) as _, EndpointOptions::default());
    Setup { endpoint, service, dropped }
}

impl Setup {
    async fn post(&self, principal: &Principal, state: Option<&Value>) -> Value {
        let mut params = json!({"name": "tool", "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        }});
        if let Some(state) = state {
            params["requestState"] = state.clone();
        }
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let headers = [
            ("accept", "application/json"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "tool"),
        ];
        let headers: HeaderMap = headers
            .into_iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .collect();
        let reply = self
            .endpoint
            .post(principal, &headers, message.to_string().as_bytes(), Routing::Owner)
            .await;
        let ReplyBody::Json(text) = reply.body else { panic!("not a JSON answer") };
        serde_json::from_str(&text).unwrap()
    }
}

/// A client that retries after its question was answered elsewhere is not asked again, however late the
/// suspended request runs on.
#[tokio::test]
async fn a_question_that_was_answered_elsewhere_is_not_asked_again() {
    let setup = setup();
    let client = Principal::new("client");
    let asked = setup.post(&client, None).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let state = &asked["result"]["requestState"];
    let again = setup.post(&client, Some(state)).await;
    assert_eq!(again["result"]["resultType"], "input_required", "still open: {again}");

    setup.service.withdrawn.cancel();
    let answering = async {
        // The retry waits by now: the other future of the join runs first.
        setup.service.answer.notify_one();
    };
    let state = &again["result"]["requestState"];
    let (result, ()) = tokio::join!(setup.post(&client, Some(state)), answering);
    assert_eq!(result["result"]["text"], "elsewhere", "{result}");
}

/// A suspended request ends with the permission of its client.
#[tokio::test]
async fn a_suspended_request_ends_with_its_permission() {
    let setup = setup();
    let revoked = Arc::new(CancellationToken::new());
    let client = Principal::new("client").until(Arc::clone(&revoked));
    let asked = setup.post(&client, None).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    revoked.cancel();
    let state = asked["result"]["requestState"].clone();
    let Setup { endpoint, service, dropped } = setup;
    let dropped = tokio::time::timeout(testkit::DEADLINE, dropped).await;
    assert!(dropped.expect("the request is dropped").is_err());
    let setup = Setup { endpoint, service, dropped: oneshot::channel().1 };
    let late = setup.post(&Principal::new("client"), Some(&state)).await;
    assert!(late["error"]["message"].to_string().contains("expired"), "{late}");
}
