//! Shared parts of the tests of the program with real servers.

use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::{Fixture, Running, Transport};

/// A streamable HTTP server that writes what it sees to `NAME.facts` in the workspace.
pub fn serve(workspace: &Workspace, name: &str, mut scenario: Value) -> Running {
    scenario["facts"] = json!(workspace.path().join(format!("{name}.facts")));
    Fixture::serve(Transport::Http, &scenario)
}

/// The settings of a server that is a process of ours.
pub fn stdio(workspace: &Workspace, name: &str, mut scenario: Value) -> Value {
    scenario["facts"] = json!(workspace.path().join(format!("{name}.facts")));
    json!({"command": Fixture::path(), "args": Fixture::stdio_args(&scenario)})
}

/// An entry of a toolbox's `mcps`.
pub fn mcp(name: &str, url: &str, mode: &str) -> Value {
    let mut entry = json!({
        "name": name, "transport": "streamable_http", "url": url, "mode": mode,
        "reconnect": {"attempts": 0},
    });
    if mode == "dynamic" {
        entry["default_tool_config"] = json!({"max_instances": 10, "timeout": "P0DT0H0M30S"});
    }
    entry
}

/// Writes a toolbox file.
pub fn toolbox(workspace: &Workspace, tools: &[&str], mcps: &[Value]) {
    let tools: Vec<Value> = tools.iter().map(|name| json!({ "name": name })).collect();
    let file = json!({"myai": {"toolbox": {"max_concurrent": 10, "tools": tools, "mcps": mcps}}});
    workspace.write("toolbox.yaml", file.to_string());
}

/// Writes a native file with these servers.
pub fn native(workspace: &Workspace, servers: &Value) {
    workspace.write("haft.yaml", json!({ "servers": servers }).to_string());
}
