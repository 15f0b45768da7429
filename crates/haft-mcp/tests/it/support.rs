//! Shared parts of the tests of HTTP transports.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft_mcp::client::Protocol;
use haft_mcp::{
    BoxFuture, CallOptions, Client, ClientOptions, ConnectError, Connector, Handler, HttpConnector,
    HttpOptions, Limits, RequestError, RpcError, ServerRequest, TransportError,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use testkit::fixture::{self, Fixture, Running, Transport};
use tokio::sync::mpsc;

/// A server with a file of what it saw.
pub struct Server {
    pub running: Running,
    pub facts: PathBuf,
    _folder: tempfile::TempDir,
}

impl Server {
    pub fn start(transport: Transport, mut scenario: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let facts = folder.path().join("facts");
        scenario["facts"] = json!(facts);
        Self { running: Fixture::serve(transport, &scenario), facts, _folder: folder }
    }

    pub fn http(scenario: Value) -> Self {
        Self::start(Transport::Http, scenario)
    }

    pub fn url(&self) -> &str {
        &self.running.url
    }

    /// The requests with this HTTP method that arrived.
    pub fn requests(&self, method: &str) -> Vec<Value> {
        let requests = fixture::events(&self.facts, "http").into_iter();
        requests.filter(|fact| fact["method"] == method).collect()
    }

    pub fn messages(&self, method: &str) -> Vec<Value> {
        fixture::messages(&self.facts, method)
    }
}

/// Nothing takes that long here; tests of limits set their own.
const PATIENCE: Duration = Duration::from_secs(30);

pub fn options(url: &str) -> HttpOptions {
    HttpOptions {
        url: url.parse().unwrap(),
        shown: "the server".to_owned(),
        headers: vec![("X-Canary".to_owned(), "canary-value".to_owned())],
        connect_timeout: PATIENCE,
        timeout: PATIENCE,
        sse_read_timeout: PATIENCE,
        terminate_on_close: true,
        authorizer: None,
    }
}

pub fn http(url: &str) -> HttpConnector {
    HttpConnector::new(options(url)).unwrap()
}

/// The messages that a handler received.
pub struct RecordingHandler(mpsc::UnboundedSender<String>);

impl RecordingHandler {
    pub fn pair() -> (Arc<dyn Handler>, mpsc::UnboundedReceiver<String>) {
        let (received, hear) = mpsc::unbounded_channel();
        (Arc::new(Self(received)), hear)
    }
}

impl Handler for RecordingHandler {
    fn capabilities(&self) -> Value {
        json!({"sampling": {}})
    }

    fn request(&self, _: ServerRequest) -> BoxFuture<'_, Result<Box<RawValue>, RpcError>> {
        Box::pin(async {
            let content = json!({"type": "text", "text": "sampled"});
            let answer = json!({"role": "assistant", "model": "m", "content": content});
            Ok(to_raw_value(&answer).unwrap())
        })
    }

    fn notification(&self, method: &str, _: Option<&RawValue>) {
        let _ = self.0.send(method.to_owned());
    }

    fn ended(&self, reason: &TransportError) {
        let _ = self.0.send(format!("ended: {reason}"));
    }
}

pub async fn connect(connector: &dyn Connector, protocol: Protocol) -> Client {
    try_connect(connector, protocol).await.unwrap()
}

pub async fn try_connect(
    connector: &dyn Connector,
    protocol: Protocol,
) -> Result<Client, ConnectError> {
    let options = ClientOptions { protocol, subscribe: false, ..ClientOptions::default() };
    Client::connect(connector, None, RecordingHandler::pair().0, options).await
}

/// A client that takes no message over `message_bytes_max`.
pub async fn connect_limited(connector: &dyn Connector, message_bytes_max: usize) -> Client {
    let limits = Limits { message_bytes_max, ..Limits::default() };
    let options = ClientOptions { protocol: Protocol::Legacy, limits, ..ClientOptions::default() };
    Client::connect(connector, None, RecordingHandler::pair().0, options).await.unwrap()
}

pub async fn call(client: &Client, tool: &str, arguments: Value) -> Result<Value, RequestError> {
    let arguments = to_raw_value(&arguments).unwrap();
    let result = client.call_tool(tool, &arguments, CallOptions::default()).await?;
    Ok(serde_json::from_str(result.get()).unwrap())
}

/// The failure of a call on the way.
pub async fn failed(client: &Client, tool: &str) -> TransportError {
    match call(client, tool, json!({})).await {
        Err(RequestError::Transport(error)) => error,
        other => panic!("not a failure of the transport: {other:?}"),
    }
}

/// The failure of connecting.
pub async fn unconnected(connector: &dyn Connector) -> TransportError {
    match try_connect(connector, Protocol::Legacy).await {
        Err(ConnectError { cause: RequestError::Transport(error), .. }) => error,
        Err(error) => panic!("not a failure of the transport: {error:?}"),
        Ok(_) => panic!("connected"),
    }
}

/// Waits until `probe` finds something, while everything else runs.
pub async fn eventually<T>(mut probe: impl FnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = probe() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(testkit::DEADLINE, looking).await.expect("never happened")
}
