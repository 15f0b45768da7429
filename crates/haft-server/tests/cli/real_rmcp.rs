//! A server made with `rmcp`, the official Rust SDK.

use serde_json::{Value, json};
use testkit::peers::{self, Address, Era, Reference, free_port};

use crate::real_support::Peer;

fn calls() -> [(&'static str, Value); 4] {
    [
        ("add", json!({"a": 40, "b": 2})),
        ("echo", json!({"message": "grüße"})),
        ("fail", json!({"reason": "no such thing"})),
        ("add", json!({"a": 1, "b": -1})),
    ]
}

/// Proves S1-2, S2-FR-003: over stdio, whichever era is asked for.
#[test]
fn rmcp_over_stdio_is_what_the_typescript_sdk_sees() {
    let address = Address::Stdio(peers::rmcp_stdio());
    let legacy = Reference::TypeScript1.see(&address, &calls());
    for protocol in ["auto", "legacy"] {
        Peer::with(&address, &json!({"protocol": protocol})).assert_sees(&legacy, &calls());
    }
    let modern = Reference::TypeScript2(Era::Modern).see(&address, &calls());
    Peer::with(&address, &json!({"protocol": "modern"})).assert_sees(&modern, &calls());
}

/// Proves S1-3, S2-FR-003, S3-US8-1: over streamable HTTP, whichever era is asked for.
#[test]
fn rmcp_over_http_is_what_the_typescript_sdk_sees() {
    let port = free_port();
    let _server = peers::rmcp_http(port).listen(port);
    let address = Address::Http(format!("http://127.0.0.1:{port}/mcp"));
    let legacy = Reference::TypeScript1.see(&address, &calls());
    for protocol in ["auto", "legacy"] {
        Peer::with(&address, &json!({"protocol": protocol})).assert_sees(&legacy, &calls());
    }
    let modern = Reference::TypeScript2(Era::Modern).see(&address, &calls());
    Peer::with(&address, &json!({"protocol": "modern"})).assert_sees(&modern, &calls());
}
