//! Stdio servers: the fixture as a child process.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use encoding_rs::{Encoding, UTF_8};
use haft_mcp::transport::Pipes;
use haft_mcp::{BoxFuture, Connector, Failure, MessageRouter, Transport, TransportError};
use serde_json::{Value, json};
use testkit::fixture::Fixture;
use tokio::process::{Child, Command};

use crate::suite::{Served, connect};

suite!(serve);

fn serve(scenario: &Value) -> Served {
    serve_as(scenario, UTF_8)
}

fn serve_as(scenario: &Value, encoding: &'static Encoding) -> Served {
    let connector =
        Program { args: Fixture::stdio_args(scenario), encoding, child: Mutex::new(None) };
    Served::new(connector, None)
}

/// Starts the fixture; it ends with the connector.
struct Program {
    args: Vec<String>,
    encoding: &'static Encoding,
    child: Mutex<Option<Child>>,
}

impl Connector for Program {
    fn open(
        &self,
        router: MessageRouter,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, TransportError>> {
        Box::pin(async move {
            let mut command = Command::new(Fixture::path());
            command.args(&self.args).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
            let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
            *self.child.lock().unwrap() = Some(child);
            let transport: Arc<dyn Transport> =
                Arc::new(Pipes::start(reader, writer, self.encoding, router));
            Ok(transport)
        })
    }
}

#[tokio::test]
async fn prints_on_the_channel_are_set_aside_and_counted() {
    let noise = json!({"noise": ["\u{1b}[32mready\u{1b}[0m", "", "{not json}"]});
    let connected = connect(serve, "legacy", noise).await;
    connected.call("flood", json!({"bytes": 1024 * 1024})).await.unwrap();
    let counts = connected.client.session().router().counts();
    assert!(counts.noise_bytes > 1024 * 1024, "{counts:?}");
    assert_eq!((counts.malformed, counts.unmatched), (0, 0));
}

#[tokio::test]
async fn a_line_without_end_is_cut_off_at_the_limit() {
    let connected = connect(serve, "legacy", json!({})).await;
    let error = connected.call("long_line", json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "the server sent a message of more than 8388608 bytes");
    assert_eq!(connected.client.ended().unwrap().kind, Failure::Protocol);
}

#[tokio::test]
async fn half_a_line_fails_the_call_it_would_have_answered() {
    let connected = connect(serve, "legacy", json!({})).await;
    let error = connected.call("half_line", json!({})).await.unwrap_err();
    assert!(error.to_string().starts_with("the server sent a broken message"), "{error}");
    connected.call("text", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_server_may_speak_another_encoding() {
    fn latin1(scenario: &Value) -> Served {
        serve_as(scenario, encoding_rs::WINDOWS_1252)
    }
    fn shift_jis(scenario: &Value) -> Served {
        serve_as(scenario, encoding_rs::SHIFT_JIS)
    }
    let latin1 = connect(latin1, "legacy", json!({"encoding": "latin1"})).await;
    let args = json!({"text": "grüße"});
    assert_eq!(latin1.structured("echo", args.clone()).await, args);
    let shift_jis = connect(shift_jis, "legacy", json!({"encoding": "shift_jis"})).await;
    let args = json!({"text": "こんにちは"});
    assert_eq!(shift_jis.structured("echo", args.clone()).await, args);
}
