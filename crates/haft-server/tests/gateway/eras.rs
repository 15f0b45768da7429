//! Both eras over one pair of pipes: what each wants to have answered.

use serde_json::{Value, json};

use crate::support::{Client, workspace};

fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    })
}

#[test]
fn the_legacy_era_begins_with_initialize() {
    let workspace = workspace(&json!({}));
    let mut client = Client::start(&workspace);
    let early = client.ask(&json!(1), "tools/list", &json!({}));
    assert_eq!(early["error"]["code"], -32600);
    assert_eq!(client.ask(&json!(2), "ping", &json!({}))["result"], json!({}));
    let asked = json!({"protocolVersion": "2024-11-05", "capabilities": {}});
    let answer = client.ask(&json!("a"), "initialize", &asked);
    assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(answer["result"]["serverInfo"]["name"], "haft");
    assert_eq!(answer["result"]["capabilities"]["tools"], json!({"listChanged": true}));
    let again = client.ask(&json!("b"), "initialize", &asked);
    assert_eq!(again["error"]["code"], -32600);
}

#[test]
fn the_modern_era_needs_no_handshake() {
    let workspace = workspace(&json!({}));
    let mut client = Client::start(&workspace);
    let meta = meta("2026-07-28");
    let about = client.ask(&json!(1), "server/discover", &json!({"_meta": meta}));
    let about = &about["result"];
    assert_eq!(about["supportedVersions"][0], "2026-07-28");
    assert_eq!(about["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "haft");
    assert_eq!(about["resultType"], "complete");
    assert_eq!(about["capabilities"]["tools"], json!({"listChanged": true}));

    let list = client.ask(&json!(2), "tools/list", &json!({"_meta": meta}));
    let list = &list["result"];
    assert_eq!((&list["resultType"], &list["ttlMs"]), (&json!("complete"), &json!(0)));
    assert_eq!(list["cacheScope"], "private");
    let params = json!({"name": "greet", "arguments": {"name": "you"}, "_meta": meta});
    let call = client.ask(&json!(3), "tools/call", &params);
    assert_eq!(call["result"]["resultType"], "complete");
    assert_eq!(call["result"]["structuredContent"], json!({"greeting": "Hello, you!"}));
}

#[test]
fn a_modern_request_without_its_facts_is_refused() {
    let workspace = workspace(&json!({}));
    let mut client = Client::start(&workspace);
    let bare = client.ask(&json!(1), "server/discover", &json!({}));
    assert_eq!(bare["error"]["code"], -32602);
    let future = client.ask(&json!(2), "tools/list", &json!({"_meta": meta("2099-01-01")}));
    assert_eq!(future["error"]["code"], -32022);
    assert_eq!(future["error"]["data"]["supported"][0], "2026-07-28");
    assert_eq!(future["error"]["data"]["requested"], "2099-01-01");
    let mut meta = meta("2026-07-28");
    meta.as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    let incapable = client.ask(&json!(3), "tools/list", &json!({"_meta": meta}));
    assert_eq!(incapable["error"]["code"], -32602);
}
