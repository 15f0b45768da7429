//! Title, annotations and icons in `tools/list`, in both eras.

use serde_json::{Value, json};
use testkit::Workspace;

use crate::support::{Client, server};

/// A workspace with a local tool, a server's tools, and entries for both.
fn workspace(entries: &Value) -> Workspace {
    let scenario = json!({"tools": ["annotated", {
        "name": "odd", "inputSchema": {"type": "object"}, "title": "Odd",
        "annotations": {"readOnlyHint": "perhaps", "x-own": [1]},
        "icons": [{"src": "https://example.com/odd.png", "x-own": true}],
        "x-unknown": {"b": 1, "a": 2},
    }, {
        "name": "strange", "inputSchema": {"type": "object"}, "annotations": "none", "icons": "none",
    }]});
    let config = json!({
        "registry": {"dir": "tools"}, "servers": {"far": server(&scenario)}, "tools": entries,
    });
    let tools = json!({"tools": [{
        "name": "greet", "description": "Greets.", "type": "local", "title": "Greet",
        "input_schema": {"type": "object"}, "annotations": {"readOnlyHint": true},
        "icons": [{"src": "https://example.com/greet.png"}],
        "config": {"script_path": "greet.py"},
    }]});
    Workspace::with(&[
        ("haft.json", &config.to_string()),
        ("tools/tools.json", &tools.to_string()),
        ("tools/mcp.json", r#"{"mcp_servers": {}}"#),
        ("tools/greet.py", "def run(args):\n    return {}\n"),
    ])
}

/// Every tool of `tools/list`, without how it is registered, in the era of `meta`.
fn listed(workspace: &Workspace, meta: Option<&Value>) -> Vec<Value> {
    let mut client = match meta {
        None => Client::connect(workspace),
        Some(_) => Client::start(workspace),
    };
    let params = meta.map_or_else(|| json!({}), |meta| json!({"_meta": meta}));
    let mut answer = client.ask(&json!(1), "tools/list", &params);
    let tools = answer["result"]["tools"].take();
    let without_meta = |mut tool: Value| {
        tool.as_object_mut().unwrap().shift_remove("_meta");
        tool
    };
    tools.as_array().unwrap().iter().cloned().map(without_meta).collect()
}

fn both_eras(workspace: &Workspace) -> Vec<Value> {
    let legacy = listed(workspace, None);
    let modern = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    assert_eq!(listed(workspace, Some(&modern)), legacy);
    legacy
}

/// Proves S1-6: local tools show what they declare, and a server's tools pass unmodified, whatever form
/// their metadata has.
#[test]
fn declared_metadata_reaches_clients() {
    let tools = both_eras(&workspace(&json!([])));
    assert_eq!(tools[0]["title"], "Greet");
    assert_eq!(tools[0]["annotations"], json!({"readOnlyHint": true}));
    assert_eq!(tools[0]["icons"], json!([{"src": "https://example.com/greet.png"}]));
    assert_eq!(
        tools[2].to_string(),
        r#"{"name":"odd","title":"Odd","description":"","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"perhaps","x-own":[1]},"icons":[{"src":"https://example.com/odd.png","x-own":true}],"x-unknown":{"b":1,"a":2}}"#
    );
    assert_eq!((&tools[3]["annotations"], &tools[3]["icons"]), (&json!("none"), &json!("none")));
}

/// The file's metadata of a server's tool wins key by key; the rest of its definition passes unmodified.
#[test]
fn entries_override_the_metadata_of_servers() {
    let entries = json!([
        {"name": "odd", "mcp": "far", "title": "Even", "annotations": {"readOnlyHint": true, "destructiveHint": false}},
        {"name": "strange", "mcp": "far", "icons": [{"src": "https://example.com/s.png", "sizes": ["any"]}]},
        {"name": "greet", "annotations": {"openWorldHint": false}},
    ]);
    let tools = both_eras(&workspace(&entries));
    assert_eq!(tools[0]["annotations"], json!({"readOnlyHint": true, "openWorldHint": false}));
    assert_eq!(tools[1]["annotations"]["readOnlyHint"], true, "no entry speaks of it");
    assert_eq!(
        tools[2].to_string(),
        r#"{"name":"odd","title":"Even","description":"","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"x-own":[1],"destructiveHint":false},"icons":[{"src":"https://example.com/odd.png","x-own":true}],"x-unknown":{"b":1,"a":2}}"#
    );
    assert_eq!(tools[3]["annotations"], "none");
    assert_eq!(tools[3]["icons"], json!([{"src": "https://example.com/s.png", "sizes": ["any"]}]));
}
