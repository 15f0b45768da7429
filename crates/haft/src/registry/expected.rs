//! Tools of unreachable servers: known from earlier runs and checked by the registration rules.

use super::KnownTools;
use super::register::{is_complete, speaks_of};
use crate::config::choices::{Mode, ToolPrefix};
use crate::config::model::{Config, ServerConfig, ToolEntry};
use haft_text::name::{offered, prefixed};

/// Returns true if `server` would offer a tool under `name` once it is reachable. A tool that
/// registration refuses or a list excludes counts as unknown.
pub fn would_offer(config: &Config, server: &ServerConfig, known: &KnownTools, name: &str) -> bool {
    if server.disabled.value || !server.load_tools.value {
        return false;
    }
    let tools = known.of(&server.name).into_iter().flatten();
    tools.filter(|tool| server.filter.value.passes(tool)).any(|tool| {
        let plain = match server.tool_prefix.value {
            ToolPrefix::None => offered(tool),
            ToolPrefix::Server => prefixed(&server.name, tool),
        };
        // The collision rule may have added the server's name as a prefix.
        let is_named = plain == name || prefixed(&server.name, tool) == name;
        is_named && is_registered(config, server, tool, &plain)
    })
}

/// Returns true if registration accepts the tool, given its entry and the server's mode.
fn is_registered(config: &Config, server: &ServerConfig, tool: &str, offered: &str) -> bool {
    let speaks = |entry: &&ToolEntry| speaks_of(entry, Some(&server.name), tool, offered);
    let entries: Vec<&ToolEntry> = config.tools.iter().filter(speaks).collect();
    let exact = entries.iter().rev().find(|entry| entry.mcp.is_some());
    match (server.mode.value, exact.or(entries.last())) {
        (Mode::Strict, None) => false,
        (Mode::Dynamic, None) | (Mode::Strict, Some(_)) => true,
        (Mode::Dynamic, Some(entry)) => {
            let own_mode = entry.mode.as_ref().map(|mode| mode.value);
            own_mode != Some(Mode::Strict) || is_complete(entry)
        }
    }
}
