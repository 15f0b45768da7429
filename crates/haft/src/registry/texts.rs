//! The exact messages of registration. Names come from servers, so they are made printable
//! first.

use super::{Level, Record};
use std::fmt::Display;

use haft_text::printable;

/// T1: a strict server has an unconfigured tool.
pub(super) fn unconfigured(tool: &str, server: &str, configured: &[&str]) -> String {
    let (tool, configured) = (printable(tool), list(configured));
    format!(
        "Tool '{tool}' from MCP server '{server}' is not configured in the toolbox.\n\n\
         MCP Server: {server}\nMode: strict\nMissing Tool: {tool}\n\n\
         Configured tools: [{configured}]\n\n\
         To resolve:\n\
         1. Add the tool to myai.toolbox.tools in your configuration, OR\n\
         2. Change the MCP server mode to 'dynamic' and provide default_tool_config"
    )
}

/// T1 for a local tool: local tools are always strict.
pub(super) fn unconfigured_local(tool: &str, configured: &[&str]) -> String {
    let (tool, configured) = (printable(tool), list(configured));
    format!(
        "Tool '{tool}' (local tool) is not configured in the toolbox.\n\n\
         Configured tools: [{configured}]\n\n\
         Local tools must always be explicitly configured in myai.toolbox.tools.\n\
         To resolve: add an entry with `name: {tool}` to the tools in your configuration"
    )
}

fn list(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| printable(name)).collect();
    names.join(", ")
}

/// T2: a server could not be connected at start.
pub fn connect_failure(server: &str, url: &impl Display, error: &str) -> String {
    format!(
        "Failed to connect to MCP server '{server}' at {url}\nError: {error}\n\n\
         The application cannot start without connecting to all configured MCP servers."
    )
}

/// A server that may be skipped could not be connected.
pub fn skipped(server: &str, reason: &str) -> Record {
    let text = format!("mcp: server '{server}' failed to connect: {reason}");
    Record { level: Level::Warning, text }
}

/// T3: a server has no tools.
pub fn no_tools(server: &str, url: &impl Display) -> String {
    format!("MCP server '{server}' at {url} returned no tools")
}

/// T5: a dynamic server's tool has no entry.
pub(super) fn using_default(tool: &str, server: &str) -> String {
    let tool = printable(tool);
    format!(
        "Tool '{tool}' from MCP '{server}' not explicitly configured, using default configuration"
    )
}

/// T6: an entry's tool is gone.
pub(super) fn gone(tool: &str, server: &str) -> String {
    let tool = printable(tool);
    format!("Tool '{tool}' was configured but is no longer available from MCP server '{server}'")
}

/// T7: a dynamic server has a tool that an earlier run did not see.
pub(super) fn discovered(tool: &str, server: &str) -> String {
    let tool = printable(tool);
    format!(
        "New tool '{tool}' discovered from MCP server '{server}', registering with default configuration"
    )
}

/// T8: a tool is registered with its own entry.
pub(super) fn explicit(tool: &str, details: &str) -> String {
    let tool = printable(tool);
    format!("Tool '{tool}' registered with explicit configuration: {details}")
}

/// T9: an entry was merged with the server's default.
pub(super) fn merged(tool: &str, explicit: &str, default: &str, merged: &str) -> String {
    let tool = printable(tool);
    format!(
        "Tool '{tool}' configuration merged: explicit={explicit}, default={default}, final={merged}"
    )
}
