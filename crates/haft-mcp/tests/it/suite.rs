//! One suite for every transport. A transport takes part with one line: `suite!(serve);`, where
//! `serve` starts a fixture for a scenario.

mod broken;
mod healthy;

pub use broken::*;
pub use healthy::*;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft_mcp::{
    BoxFuture, CallOptions, Client, ClientOptions, Connector, Handler, Protocol, RequestError,
    RpcError, ServerRequest,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::fixture;

/// Runs every case of the suite over one transport.
macro_rules! suite {
    ($serve:ident) => {
        suite! { @each $serve:
            the_handshake_comes_first_and_calls_follow
            lists_are_read_page_by_page
            a_call_returns_the_output_of_the_tool
            numbers_key_order_and_unknown_fields_arrive_untouched
            large_messages_pass_both_ways
            progress_arrives_in_order
            notifications_arrive_in_order
            a_change_of_the_tools_is_received
            a_request_of_the_server_is_answered
            a_ping_of_the_server_is_answered
            five_calls_are_in_flight_at_once
            each_of_many_calls_gets_its_own_answer
            a_dropped_call_notifies_the_server
            an_answer_with_a_wrong_id_is_counted_and_ignored
            of_two_answers_the_first_wins
            deep_nesting_fails_its_own_call_only
            bad_utf8_fails_the_call
            a_message_over_the_limit_fails_the_call
            a_crash_in_the_middle_of_a_call_leaves_the_outcome_open
        }
    };
    (@each $serve:ident: $($case:ident)*) => { $(
        #[tokio::test]
        async fn $case() {
            $crate::suite::$case($serve).await;
        }
    )* };
}

/// A fixture and the way to it.
pub struct Served {
    /// Opens a connection to it.
    pub connector: Box<dyn Connector>,
    /// Its process, where the connector does not start it. Ends with the test.
    _server: Option<fixture::Running>,
}

impl Served {
    /// A fixture that `connector` reaches.
    pub fn new(connector: impl Connector + 'static, server: Option<fixture::Running>) -> Self {
        Self { connector: Box::new(connector), _server: server }
    }
}

/// Starts a fixture for a scenario.
pub type Serve = fn(&Value) -> Served;

/// A connected client, its received messages, and the server's records.
pub struct Connected {
    pub client: Client,
    pub received: Arc<RecordingHandler>,
    /// Ends with the test, after the client.
    _served: Served,
    folder: TempDir,
}

/// Starts a fixture and connects to it. Fields of `scenario` are added to the era.
pub async fn connect(serve: Serve, era: &str, scenario: Value) -> Connected {
    let folder = TempDir::new().unwrap();
    let mut whole = json!({"era": era, "facts": folder.path().join("facts")});
    whole.as_object_mut().unwrap().extend(scenario.as_object().unwrap().clone());
    let served = serve(&whole);
    let received = Arc::new(RecordingHandler::default());
    let protocol = if era == "modern" { Protocol::Modern } else { Protocol::Auto };
    let options = ClientOptions { protocol, ..ClientOptions::default() };
    let handler = Arc::clone(&received) as Arc<dyn Handler>;
    let client = Client::connect(&*served.connector, None, handler, options).await.unwrap();
    Connected { client, received, _served: served, folder }
}

impl Connected {
    /// The whole result of a tool, as it came.
    pub async fn call(&self, tool: &str, args: Value) -> Result<Box<RawValue>, RequestError> {
        self.client.call_tool(tool, &to_raw_value(&args).unwrap(), CallOptions::default()).await
    }

    /// The structured content of a tool's result.
    pub async fn structured(&self, tool: &str, args: Value) -> Value {
        let result = self.call(tool, args).await.unwrap();
        serde_json::from_str::<Value>(result.get()).unwrap()["structuredContent"].take()
    }

    /// The messages of one method that the server received.
    pub fn received(&self, method: &str) -> Vec<Value> {
        fixture::messages(&self.folder.path().join("facts"), method)
    }

    /// The methods of all messages that the server received, in order.
    pub fn trace(&self) -> Vec<String> {
        let messages = fixture::events(&self.folder.path().join("facts"), "message");
        let method = |fact: &Value| fact["message"]["method"].as_str().map(ToOwned::to_owned);
        messages.iter().filter_map(method).collect()
    }

    /// The facts of one kind.
    pub fn facts(&self, event: &str) -> Vec<Value> {
        fixture::events(&self.folder.path().join("facts"), event)
    }
}

/// Waits until `probe` finds something, however long the machine takes.
pub async fn eventually<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = probe() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(testkit::DEADLINE, looking).await;
    found.unwrap_or_else(|_| panic!("never happened: {what}"))
}

/// Records its messages and answers sampling.
#[derive(Default)]
pub struct RecordingHandler {
    pub notifications: Mutex<Vec<(String, Value)>>,
    pub endings: Mutex<Vec<String>>,
}

impl RecordingHandler {
    /// The parameters of the notifications with this method, in order.
    pub fn of(&self, method: &str) -> Vec<Value> {
        let notifications = self.notifications.lock().unwrap();
        let same = notifications.iter().filter(|(received, _)| received == method);
        same.map(|(_, params)| params.clone()).collect()
    }
}

impl Handler for RecordingHandler {
    fn capabilities(&self) -> Value {
        json!({"sampling": {}})
    }

    fn request(&self, request: ServerRequest) -> BoxFuture<'_, Result<Box<RawValue>, RpcError>> {
        Box::pin(async move {
            match request.method.as_str() {
                "sampling/createMessage" => Ok(to_raw_value(&json!({
                    "role": "assistant", "model": "none",
                    "content": {"type": "text", "text": "hello"},
                }))
                .unwrap()),
                other => Err(RpcError::new(-32601, format!("no {other}"))),
            }
        })
    }

    fn notification(&self, method: &str, params: Option<&RawValue>) {
        let params = params.map_or(Value::Null, |it| serde_json::from_str(it.get()).unwrap());
        self.notifications.lock().unwrap().push((method.to_owned(), params));
    }

    fn ended(&self, reason: &haft_mcp::TransportError) {
        self.endings.lock().unwrap().push(reason.message.clone());
    }
}
