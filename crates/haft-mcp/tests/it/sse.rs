//! HTTP+SSE, the transport before streamable HTTP.

use haft_mcp::client::Protocol;
use haft_mcp::{Client, ClientOptions, Failure, Sent, SseConnector};
use serde_json::{Value, json};
use testkit::fixture::Transport;

use crate::support::{RecordingHandler, Server, call, connect, failed, options, unconnected};

fn serve(scenario: Value) -> Server {
    Server::start(Transport::Sse, scenario)
}

fn sse(server: &Server) -> SseConnector {
    SseConnector::new(options(server.url())).unwrap()
}

/// Proves S3-US6-1, S3-US6-2, S3-US6-T and S3-FR-005.
#[tokio::test]
async fn calls_are_answered_over_the_stream_with_headers_on_every_request() {
    let server = serve(json!({}));
    let client = connect(&sse(&server), Protocol::Auto).await;
    let echoed = call(&client, "echo", json!({"text": "hi"})).await.unwrap();
    assert!(echoed["content"][0]["text"].as_str().unwrap().contains("hi"), "{echoed}");
    client.close().await;
    let gets = server.requests("GET");
    assert_eq!(gets.len(), 1);
    assert_eq!(gets[0]["headers"]["accept"], "text/event-stream");
    for request in gets.iter().chain(&server.requests("POST")) {
        assert_eq!(request["headers"]["x-canary"], "canary-value", "{request}");
    }
}

#[tokio::test]
async fn the_server_notifies_and_asks_over_the_stream() {
    let server = serve(json!({}));
    let (handler, mut received) = RecordingHandler::pair();
    let options = ClientOptions { protocol: Protocol::Legacy, ..ClientOptions::default() };
    let client = Client::connect(&sse(&server), None, handler, options).await.unwrap();
    call(&client, "add_tool", json!({"name": "another"})).await.unwrap();
    assert_eq!(received.recv().await.unwrap(), "notifications/tools/list_changed");
    let sampled = call(&client, "sample", json!({"message": "?"})).await.unwrap();
    assert!(sampled.to_string().contains("sampled"), "{sampled}");
    client.close().await;
}

#[tokio::test]
async fn an_address_for_messages_on_another_origin_is_refused() {
    let other = serve(json!({}));
    let server = serve(json!({"sse": {"endpoint": other.url()}}));
    let error = unconnected(&sse(&server)).await;
    let (from, to) = (server.url().trim_end_matches("/sse"), other.url().trim_end_matches("/sse"));
    assert_eq!((error.kind, error.sent), (Failure::Redirect, Sent::No));
    assert_eq!(
        error.message,
        format!("`the server` at `{from}` wants messages sent to another origin, `{to}`")
    );
    assert_eq!(testkit::fixture::events(&other.facts, "connection"), Vec::<Value>::new());
}

/// Proves S3-US6-3 for the time until the server can be spoken to.
#[tokio::test]
async fn a_server_that_never_names_an_address_is_given_up() {
    for (scenario, message) in [
        (json!({"sse": {"no_endpoint": true}}), "did not send the address for messages"),
        (json!({"faults": [{"do": "stall"}]}), "did not answer"),
    ] {
        let server = serve(scenario);
        let timeout = std::time::Duration::from_millis(300);
        let options = haft_mcp::HttpOptions { timeout, ..options(server.url()) };
        let error = unconnected(&SseConnector::new(options).unwrap()).await;
        assert_eq!(error.kind, Failure::Timeout);
        assert_eq!(error.message, format!("`the server` {message} within 300ms"));
    }
}

/// Proves S3-US6-3 for a stream that falls silent.
#[tokio::test]
async fn a_silent_stream_ends_the_connection() {
    let server = serve(json!({}));
    let (handler, mut received) = RecordingHandler::pair();
    let options = ClientOptions { protocol: Protocol::Legacy, ..ClientOptions::default() };
    let client = Client::connect(&sse(&server), None, handler, options).await.unwrap();
    tokio::time::pause();
    let ended = received.recv().await.unwrap();
    assert_eq!(ended, "ended: `the server` sent no event within 30s (`sse_read_timeout`)");
    assert_eq!(client.ended().unwrap().kind, Failure::StreamTimeout);
}

#[tokio::test]
async fn the_end_of_the_stream_ends_the_connection_and_what_waits() {
    let server = serve(json!({}));
    let client = connect(&sse(&server), Protocol::Legacy).await;
    let error = failed(&client, "crash").await;
    assert_eq!((error.kind, error.sent), (Failure::Closed, Sent::Maybe), "{error}");
    assert_eq!(client.ended().map(|error| error.kind), Some(Failure::Closed));
}

#[tokio::test]
async fn refusals_are_distinguished() {
    for (status, kind) in [(401, Failure::AuthRequired), (500, Failure::Status(500))] {
        let server = serve(json!({"faults": [{"do": {"answer": {"status": status}}}]}));
        assert_eq!(unconnected(&sse(&server)).await.kind, kind);
        assert_eq!(server.requests("GET").len(), 1);
    }
    let gone = json!({"answer": {"status": 404, "body": "Session not found"}});
    let server = serve(json!({"faults": [{"rpc": "tools/call", "do": gone}]}));
    let client = connect(&sse(&server), Protocol::Legacy).await;
    let error = failed(&client, "text").await;
    assert_eq!((error.kind, error.sent), (Failure::SessionExpired, Sent::No));
}
