//! MCP Apps through the gateway: user interfaces pass, and their tools stay hidden from models.

use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::messages;

use crate::support::{Client, server, workspace};

const UI: &str = "io.modelcontextprotocol/ui";

/// A server with a tool for all clients, which has a user interface, and one for that interface alone.
fn toolbox(era: &str) -> (Workspace, std::path::PathBuf) {
    let workspace = workspace(&json!({}));
    let facts = workspace.path().join("ui.facts");
    let tool = |name: &str, visibility: Value| {
        json!({
            "name": name, "description": format!("Shows a clock: {name}."),
            "inputSchema": {"type": "object"}, "behaves": "text",
            "_meta": {"ui": {"resourceUri": "ui://clock/view", "visibility": visibility}},
        })
    };
    let clock = server(&json!({
        "era": era, "facts": facts, "resources": [{"uri": "ui://clock/view", "name": "view",
            "mimeType": "text/html;profile=mcp-app", "text": "<p>clock</p>"}],
        "tools": [tool("clock", json!(["model", "app"])), tool("tick", json!(["app"]))],
    }));
    let other = server(&json!({"tools": ["echo"], "resources": [], "templates": []}));
    let config = json!({"servers": {"ui": clock, "other": other}});
    workspace.write("haft.json", config.to_string());
    (workspace, facts)
}

fn params(extensions: &Value, more: Value) -> Value {
    let mut params = more;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": extensions},
    });
    params
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// A client that shows user interfaces sees and calls their tools and reads their resources. Its capabilities reach
/// the server, except those that cannot be forwarded.
#[test]
fn a_client_with_apps_gets_everything() {
    let (workspace, facts) = toolbox("modern");
    let mut client = Client::start(&workspace);
    let able = json!({UI: {"mimeTypes": ["text/html;profile=mcp-app"]}, "com.example/own": {}});
    let about = client.ask(&json!(1), "server/discover", &params(&able, json!({})));
    let extensions = &about["result"]["capabilities"]["extensions"];
    assert_eq!(*extensions, json!({UI: {}, "io.modelcontextprotocol/tasks": {}}));
    let list = client.ask(&json!(2), "tools/list", &params(&able, json!({})));
    assert_eq!(names(&list), ["clock", "tick", "echo"]);
    let meta = &list["result"]["tools"][0]["_meta"]["ui"];
    assert_eq!(meta["resourceUri"], "ui://clock/view");
    let call = client.ask(&json!(3), "tools/call", &params(&able, json!({"name": "tick"})));
    assert_eq!(call["result"]["content"][0]["text"], "plain text", "{call}");
    let read =
        client.ask(&json!(4), "resources/read", &params(&able, json!({"uri": "ui://clock/view"})));
    assert_eq!(read["result"]["contents"][0]["text"], "<p>clock</p>", "{read}");
    let sent = messages(&facts, "tools/call").remove(0);
    let declared = &sent["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(
        declared["extensions"],
        json!({UI: {"mimeTypes": ["text/html;profile=mcp-app"]}}),
        "{declared}"
    );
}

/// To every other client a tool of a user interface does not exist, under either surface.
#[test]
fn tools_of_apps_are_hidden_from_models() {
    let (workspace, _facts) = toolbox("legacy");
    let mut client = Client::connect(&workspace);
    assert_eq!(client.tools(), ["clock", "echo"]);
    let call = client.ask(&json!(1), "tools/call", &json!({"name": "tick"}));
    assert_eq!(call["error"], json!({"code": -32602, "message": "Unknown tool: tick"}));

    let mut client = Client::connect_with(&workspace, &["--surface", "search"]);
    let found = client.call("find_tools", &json!({"query": "show a clock: tick"}));
    assert!(!found.to_string().contains("\"tick\""), "{found}");
    assert!(found.to_string().contains("clock"), "{found}");
    let described = client.call("describe_tool", &json!({"name": "tick"}));
    assert_eq!(described["isError"], true);
    let called = client.call("call_tool", &json!({"name": "tick"}));
    assert_eq!(called["isError"], true);
    assert!(called.to_string().contains("There is no tool `tick`"), "{called}");
}

/// A legacy client declares apps when it connects.
#[test]
fn a_legacy_client_with_apps_sees_their_tools() {
    let (workspace, facts) = toolbox("legacy");
    let mut client = Client::start(&workspace);
    let asked = json!({"protocolVersion": "2025-11-25", "capabilities": {"extensions": {UI: {}}}});
    let about = client.ask(&json!(1), "initialize", &asked);
    assert_eq!(about["result"]["capabilities"]["extensions"], json!({UI: {}}));
    assert_eq!(client.tools(), ["clock", "tick", "echo"]);
    let initialize = messages(&facts, "initialize").remove(0);
    let declared = &initialize["params"]["capabilities"]["extensions"];
    assert_eq!(*declared, json!({UI: {"mimeTypes": ["text/html;profile=mcp-app"]}}));
}
