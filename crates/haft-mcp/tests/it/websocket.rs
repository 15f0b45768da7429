//! WebSocket servers: the fixture, and servers that do one thing only.

mod broken;
mod frames;
mod handshake;

use std::time::Duration;

use haft_mcp::transport::WebSocketConnector;
use serde_json::{Value, json};
use testkit::fixture::{Fixture, Transport};

use crate::suite::{Served, connect, eventually};

suite!(serve);

fn serve(scenario: &Value) -> Served {
    let server = Fixture::serve(Transport::Ws, scenario);
    Served::new(connector(&server.url), Some(server))
}

/// A connector with limits that no healthy server reaches.
fn connector(url: &str) -> WebSocketConnector {
    WebSocketConnector {
        url: url.parse().unwrap(),
        shown: "ws://shown".to_owned(),
        headers: Vec::new(),
        connect_timeout: testkit::DEADLINE,
        ping_every: testkit::DEADLINE,
        pong_wait: testkit::DEADLINE,
        authorizer: None,
    }
}

/// Proves S3-US7-1, S3-US7-2 and S3-FR-006.
#[tokio::test]
async fn one_handshake_with_the_subprotocol_serves_every_call() {
    let connected = connect(serve, "legacy", json!({})).await;
    for _ in 0..3 {
        connected.call("text", json!({})).await.unwrap();
    }
    let requests = connected.facts("http");
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert_eq!(requests[0]["headers"]["sec-websocket-protocol"], "mcp");
    assert_eq!(connected.facts("connection").len(), 1);
}

#[tokio::test]
async fn a_server_need_not_confirm_the_subprotocol() {
    let connected = connect(serve, "legacy", json!({"ws": {"no_subprotocol": true}})).await;
    connected.call("text", json!({})).await.unwrap();
}

#[tokio::test]
async fn pings_keep_a_healthy_connection() {
    fn often(scenario: &Value) -> Served {
        let server = Fixture::serve(Transport::Ws, scenario);
        let ping_every = Duration::from_millis(1);
        let connector = WebSocketConnector { ping_every, ..connector(&server.url) };
        Served::new(connector, Some(server))
    }
    let connected = connect(often, "legacy", json!({})).await;
    connected.call("sleep", json!({"ms": 50})).await.unwrap();
    connected.client.close().await;
    // The server saw the goodbye, and not a connection that broke.
    let gone = eventually("the server notes the end", || connected.facts("disconnection").pop());
    assert_eq!(gone.await["why"], Value::Null);
}
