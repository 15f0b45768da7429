//! Detects a file's format by its name and its keys.

use super::Dialect;
use crate::config::node::{Node, NodeValue};
use crate::config::parse::Syntax;

/// Root keys that only the native format has.
const NATIVE_KEYS: [&str; 11] = [
    "defaults",
    "local_tools",
    "registry",
    "log",
    "state_dir",
    "builtin",
    "inbox",
    "agent",
    "api",
    "gateway",
    "profiles",
];

/// The format of a file, or nothing where no format fits.
pub fn detect(path: &str, syntax: Syntax, root: &Node) -> Option<Dialect> {
    let has = |key: &str| root.get(key).is_some();
    let file_name = path.rsplit('/').next().unwrap_or(path);
    if root.value == NodeValue::Null && file_name.starts_with("haft.") {
        // Someone commented everything out: every setting has a default.
        return Some(Dialect::Native);
    }
    if !root.is_map() {
        return None;
    }
    if file_name == "tools.json" {
        return Some(Dialect::ToolsJson);
    }
    if syntax == Syntax::Toml && has("mcp_servers") {
        return Some(Dialect::Codex);
    }
    if has("myai") || has("toolbox") || has("mcps") {
        return Some(Dialect::Toolbox);
    }
    if has("mcpServers") || has("projects") {
        return Some(client(path, root));
    }
    if has("mcp_servers")
        || root.get("tools").is_some_and(|tools| tools.get("mcp_servers").is_some())
    {
        return Some(Dialect::McpServers);
    }
    if has("extensions") {
        return Some(Dialect::Goose);
    }
    let tools = root.get("tools").map(Node::items).unwrap_or_default();
    let tool_has = |key: &str| tools.iter().any(|tool| tool.get(key).is_some());
    if tool_has("input_schema") || tool_has("function") || tool_has("inputs") {
        return Some(Dialect::ToolsJson);
    }
    if tool_has("type") || has("instructions") || file_name.starts_with("agent.") {
        return Some(Dialect::AgentYaml);
    }
    let is_server = |node: &Node| node.get("command").is_some() || node.get("url").is_some();
    // A file that is nothing but servers may have one of such a name.
    let is_section = |key: &&str| root.get(key).is_some_and(|node| !is_server(node));
    if file_name.starts_with("haft.") || NATIVE_KEYS.iter().any(is_section) {
        return Some(Dialect::Native);
    }
    if has("servers") && syntax == Syntax::Json && !uses_native_server_keys(root) {
        return Some(Dialect::Vscode);
    }
    if has("servers") || has("tools") {
        return Some(Dialect::Native);
    }
    let servers = root.entries();
    if !servers.is_empty() && servers.iter().all(|entry| is_server(&entry.value)) {
        return Some(Dialect::Langchain);
    }
    // An empty native file is a valid one: every setting has a default.
    (servers.is_empty() && file_name.starts_with("haft.")).then_some(Dialect::Native)
}

fn uses_native_server_keys(root: &Node) -> bool {
    let servers = root.get("servers").map(Node::entries).unwrap_or_default();
    let native = ["transport", "mode", "env_file", "default_tool_config"];
    servers.iter().any(|server| native.iter().any(|key| server.value.get(key).is_some()))
}

/// Distinguishes the clients that share the key `mcpServers`.
fn client(path: &str, root: &Node) -> Dialect {
    let servers = root.get("mcpServers").map(Node::entries).unwrap_or_default();
    let has = |keys: &[&str]| {
        servers.iter().any(|server| keys.iter().any(|key| server.value.get(key).is_some()))
    };
    let lists = servers.iter().any(|server| {
        ["command", "headers"]
            .iter()
            .any(|key| server.value.get(key).is_some_and(|node| !node.items().is_empty()))
    });
    if lists || has(&["environment", "allowedTools", "excludedTools"]) {
        Dialect::Mcphost
    // Windsurf's entries are Cursor's: an address needs no type.
    } else if path.contains(".cursor/") || path.contains("/windsurf/") || has(&["envFile", "auth"])
    {
        Dialect::Cursor
    } else if has(&["connectionTimeout", "requestTimeout", "protocolEra", "roots", "taskTtl"]) {
        Dialect::Inspector
    } else {
        Dialect::Claude
    }
}
