//! Servers of other people over WebSocket, SSE and streamable HTTP.

use serde_json::{Value, json};
use testkit::peers::{self, Address, Era, Everything, Reference, free_port};

use crate::real_support::Peer;

/// A call of each tool the servers of the Python SDK have.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("add", json!({"a": 1, "b": -2})),
        ("echo", json!({"message": "grüße \u{1f980}"})),
        ("image", json!({})),
        ("weather", json!({"city": "Rome"})),
        ("fail", json!({"reason": "no such thing"})),
    ]
}

/// Proves S3-US7-1: a stdio server behind a WebSocket gateway.
#[test]
fn everything_behind_a_websocket_gateway_is_what_the_typescript_sdk_sees() {
    let port = free_port();
    let gateway = peers::supergateway_ws(&peers::everything(Everything::Stdio), port);
    let _gateway = gateway.listen(port);
    let address = Address::WebSocket(format!("ws://127.0.0.1:{port}/message"));
    let calls = [
        ("echo", json!({"message": "over a gateway"})),
        ("get-structured-content", json!({"location": "New York"})),
        ("get-tiny-image", json!({})),
    ];
    let seen = Reference::TypeScript1.see(&address, &calls);
    Peer::new(&address).assert_sees(&seen, &calls);
}

/// Proves S2-FR-003, S3-US7-1: WebSocket of the Python SDK, release 1.
#[test]
fn a_python_websocket_server_is_what_the_python_sdk_sees() {
    let port = free_port();
    let _server = peers::python_websocket_server(port).listen(port);
    let address = Address::WebSocket(format!("ws://127.0.0.1:{port}/ws"));
    let seen = Reference::Python1.see(&address, &calls());
    Peer::new(&address).assert_sees(&seen, &calls());
}

/// Proves S1-3, S2-FR-003, S2-Q-09, S3-US6-1, S3-US6-T: SSE of the Python SDK, release 1.
#[test]
fn a_python_sse_server_is_what_the_python_sdk_sees() {
    let port = free_port();
    let _server = peers::python_sse_server(port).listen(port);
    let address = Address::Sse(format!("http://127.0.0.1:{port}/sse"));
    let seen = Reference::Python1.see(&address, &calls());
    Peer::new(&address).assert_sees(&seen, &calls());
}

/// Proves S1-3, S2-FR-003, S2-Q-09, S3-US8-1, S3-US8-T: streamable HTTP of the Python SDK, release
/// 2, in each era.
#[test]
fn a_python_http_server_of_the_modern_era_is_what_the_python_sdk_sees() {
    let port = free_port();
    let _server = peers::python_streamable_http_server(Era::Modern, port).listen(port);
    let address = Address::Http(format!("http://127.0.0.1:{port}/mcp"));
    let modern = Reference::Python2(Era::Modern).see(&address, &calls());
    for protocol in ["modern", "auto"] {
        let peer = Peer::with(&address, &json!({"protocol": protocol}));
        peer.assert_sees(&modern, &calls());
        assert_eq!(peer.protocol_version(), "2026-07-28");
    }
    let legacy = Reference::Python2(Era::Legacy).see(&address, &calls());
    let peer = Peer::with(&address, &json!({"protocol": "legacy"}));
    peer.assert_sees(&legacy, &calls());
    assert_eq!(peer.protocol_version(), "2025-11-25");
}

/// Proves S3-US8-1: streamable HTTP of the Python SDK, release 1, which knows no modern era.
#[test]
fn a_python_http_server_of_the_legacy_era_is_what_the_python_sdk_sees() {
    let port = free_port();
    let _server = peers::python_streamable_http_server(Era::Legacy, port).listen(port);
    let address = Address::Http(format!("http://127.0.0.1:{port}/mcp"));
    let seen = Reference::Python1.see(&address, &calls());
    let peer = Peer::new(&address);
    peer.assert_sees(&seen, &calls());
    assert_eq!(peer.protocol_version(), "2025-11-25");
}
