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
    tools.filter(|tool| server.filter.value.passes(&server.name, tool)).any(|tool| {
        let plain = match server.tool_prefix.value {
            ToolPrefix::None => offered(tool),
            ToolPrefix::Server => prefixed(&server.name, tool),
        };
        let entry = entry(config, server, tool, &plain);
        let renamed = entry.and_then(|entry| entry.overrides.rename.as_ref());
        // The collision rule may have added the server's name as a prefix.
        let is_named = renamed.map_or(&plain, |rename| &rename.value) == name
            || prefixed(&server.name, tool) == name;
        is_named && is_registered(server, entry)
    })
}

/// Returns the entry that applies to a tool of a server.
fn entry<'c>(
    config: &'c Config,
    server: &ServerConfig,
    tool: &str,
    offered: &str,
) -> Option<&'c ToolEntry> {
    let speaks = |entry: &&ToolEntry| speaks_of(entry, Some(&server.name), tool, offered);
    let entries: Vec<&ToolEntry> = config.tools.iter().filter(speaks).collect();
    let exact = entries.iter().rev().find(|entry| entry.mcp.is_some());
    exact.or(entries.last()).copied()
}

/// Returns true if registration accepts the tool, given its entry and the server's mode.
fn is_registered(server: &ServerConfig, entry: Option<&ToolEntry>) -> bool {
    match (server.mode.value, entry) {
        (Mode::Strict, None) => false,
        (Mode::Dynamic, None) | (Mode::Strict, Some(_)) => true,
        (Mode::Dynamic, Some(entry)) => {
            let own_mode = entry.mode.as_ref().map(|mode| mode.value);
            own_mode != Some(Mode::Strict) || is_complete(entry)
        }
    }
}
