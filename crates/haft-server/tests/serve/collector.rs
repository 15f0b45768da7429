//! A stand-in for a collector of traces: OTLP over HTTP in its JSON form, read strictly.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

/// A collector on a free port. It accepts everything, unless scripted otherwise.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    requests: mpsc::UnboundedReceiver<Request>,
}

/// The collector's answer to one request.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Answers this.
    Status(u16),
    /// Accepts some and reports the number of rejected spans.
    Rejects(u64),
    /// Never answers.
    Nothing,
}

/// The content of one request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) headers: HeaderMap,
    /// The attributes of the service that sends.
    pub(crate) resource: BTreeMap<String, Value>,
    pub(crate) spans: Vec<Span>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(clippy::struct_field_names, reason = "these are the names of OTLP")]
pub(crate) struct Span {
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
    pub(crate) parent_span_id: Option<String>,
    pub(crate) trace_state: Option<String>,
    pub(crate) flags: u32,
    pub(crate) name: String,
    pub(crate) kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Attribute>,
    pub(crate) status: Status,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Status {
    pub(crate) code: Option<u8>,
    pub(crate) message: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Attribute {
    key: String,
    value: AnyValue,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum AnyValue {
    StringValue(String),
    IntValue(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Export {
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResourceSpans {
    resource: Resource,
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resource {
    attributes: Vec<Attribute>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScopeSpans {
    scope: Scope,
    spans: Vec<Span>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scope {
    name: String,
    version: String,
}

impl Span {
    /// Its attributes; each is there once.
    pub(crate) fn attributes(&self) -> BTreeMap<String, Value> {
        flat(&self.attributes)
    }

    fn check(&self) {
        let is_id = |text: &str, length: usize| {
            text.len() == length
                && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
                && text.bytes().any(|byte| byte != b'0')
        };
        assert!(is_id(&self.trace_id, 32) && is_id(&self.span_id, 16), "{self:?}");
        assert!(self.parent_span_id.as_ref().is_none_or(|id| is_id(id, 16)), "{self:?}");
        let time = |text: &str| text.parse::<u64>().unwrap();
        assert!(time(&self.start_time_unix_nano) > 0, "{self:?}");
        assert!(time(&self.start_time_unix_nano) <= time(&self.end_time_unix_nano), "{self:?}");
    }
}

impl Collector {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::unbounded_channel();
        let answers = Arc::default();
        let state = (sender, Arc::clone(&answers));
        let router = Router::new().route("/v1/traces", post(take)).with_state(state);
        TaskTracker::new().spawn(axum::serve(listener, router).into_future());
        Self { address, answers, requests }
    }

    /// Scripts the next answers, one after the other.
    pub(crate) fn answers(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().unwrap().extend(answers);
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Request {
        let next = tokio::time::timeout(testkit::DEADLINE, self.requests.recv()).await;
        next.expect("a request in time").unwrap()
    }

    /// Requests until this many spans have arrived.
    pub(crate) async fn spans(&mut self, count: usize) -> Vec<Span> {
        let mut spans = Vec::new();
        while spans.len() < count {
            spans.extend(self.next().await.spans);
        }
        spans
    }

    /// Returns true if an unread request has arrived.
    pub(crate) fn has_more(&mut self) -> bool {
        self.requests.try_recv().is_ok()
    }
}

type Shared = (mpsc::UnboundedSender<Request>, Arc<Mutex<VecDeque<Answer>>>);

async fn take(
    State((sender, answers)): State<Shared>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    assert_eq!(headers["content-type"], "application/json");
    let export: Export = serde_json::from_slice(&body).expect("an export request");
    let [resource] = &export.resource_spans[..] else { panic!("one resource") };
    let [scope] = &resource.scope_spans[..] else { panic!("one scope") };
    assert_eq!((&*scope.scope.name, &*scope.scope.version), ("haft", env!("CARGO_PKG_VERSION")));
    scope.spans.iter().for_each(Span::check);
    let resource = flat(&resource.resource.attributes);
    let _ = sender.send(Request { headers, resource, spans: scope.spans.clone() });
    let answer = answers.lock().unwrap().pop_front();
    match answer {
        None => "{}".into_response(),
        Some(Answer::Status(status)) => StatusCode::from_u16(status).unwrap().into_response(),
        Some(Answer::Rejects(count)) => {
            let answer = serde_json::json!({"partialSuccess": {
                "rejectedSpans": count.to_string(), "errorMessage": "not wanted",
            }});
            answer.to_string().into_response()
        }
        Some(Answer::Nothing) => std::future::pending().await,
    }
}

fn flat(attributes: &[Attribute]) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for Attribute { key, value } in attributes {
        let value = match value {
            AnyValue::StringValue(text) => Value::from(text.as_str()),
            AnyValue::IntValue(number) => Value::from(number.parse::<i64>().unwrap()),
        };
        assert_eq!(all.insert(key.clone(), value), None, "`{key}` is there twice");
    }
    all
}
