//! The state of the servers as clients see it: `haft_status`, a line of the instructions, and log messages.

use std::collections::VecDeque;
use std::fmt::Write as _;

use haft::mcp_server::{Level, LogMessage, Peer};
use haft::{Era, RpcError, ServerInfo, ServerState, ToolDescription};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{Gateway, result};

/// The name of the tool.
pub(super) const STATUS: &str = "haft_status";
/// Maximum size of one reason in the instructions.
const REASON_BYTES_MAX: usize = 200;
/// Maximum number of sessions that are remembered. A forgotten one receives the failures again.
const REPORTED_MAX: usize = 1024;

/// The tool as models read it.
pub(super) fn tool() -> ToolDescription {
    let annotations = json!({ "readOnlyHint": true, "openWorldHint": false });
    ToolDescription {
        name: STATUS.to_owned(),
        title: Some("Status of the tool servers".to_owned()),
        description: "Shows which tool servers behind Haft work, and why others do not. Use it when a tool that you \
                      expect is missing or fails."
            .to_owned(),
        input_schema: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        output_schema: None,
        rest: Map::from_iter([("annotations".to_owned(), annotations)]),
    }
}

/// The log message about a server that failed.
pub(super) fn failure_message(server: &str, reason: &str, remedy: Option<&str>) -> LogMessage {
    let mut text = format!("MCP server `{server}` does not work: {}", haft_text::printable(reason));
    if let Some(remedy) = remedy {
        let _ = write!(text, "; {}", haft_text::printable(remedy));
    }
    LogMessage { level: Level::Warning, logger: "haft".to_owned(), text }
}

/// The servers that a search could not include.
pub(super) fn missing_line(missing: &[ServerInfo]) -> Option<String> {
    let shown = |server: &ServerInfo| format!("`{}` ({})", server.name, state(server));
    let names: Vec<String> = missing.iter().map(shown).collect();
    let names = names.join(", ");
    (!names.is_empty()).then(|| format!("The tools of these servers are not known yet: {names}."))
}

impl Gateway {
    /// True if the tool is offered: the configuration and the view show it, and no other tool has its name.
    pub(super) fn offers_status(&self) -> bool {
        self.runtime.config().gateway.status_tool.value
            && self.view.shows_tool(None, STATUS)
            && self.runtime.with_tool(STATUS, |_, _| ()).is_none()
    }

    pub(super) fn status(&self) -> Result<Box<RawValue>, RpcError> {
        let servers = self.shown_servers();
        let lines: Vec<String> = servers.iter().map(line).collect();
        let text =
            if lines.is_empty() { "No server is configured.".to_owned() } else { lines.join("\n") };
        let structured = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "servers": servers.iter().map(entry).collect::<Vec<Value>>(),
        });
        let content = json!([{ "type": "text", "text": text }]);
        result(&json!({ "content": content, "structuredContent": structured, "isError": false }))
    }

    /// The servers that do not work, in one line of the instructions.
    pub(super) fn failed_line(&self) -> Option<String> {
        let servers = self.shown_servers();
        let failed = servers.iter().filter_map(|server| {
            let reason = server.failure()?;
            Some(format!("`{}` ({}: {})", server.name, state(server), brief(reason)))
        });
        let failed: Vec<String> = failed.collect();
        let hint =
            if self.offers_status() { format!(" `{STATUS}` shows more.") } else { String::new() };
        (!failed.is_empty())
            .then(|| format!("These tool servers do not work: {}.{hint}", failed.join(", ")))
    }

    /// Sends a log message for each server that does not work, once for a session. Later failures are announced to
    /// all sessions.
    pub(super) fn report_failed(&self, peer: &Peer) {
        if peer.era() == Era::Legacy && !self.reported.lock().insert(peer.client_id()) {
            return;
        }
        for server in self.shown_servers() {
            let Some(reason) = server.failure() else { continue };
            let remedy = server.remedy.as_ref().map(ToString::to_string);
            let params = failure_message(&server.name, reason, remedy.as_deref()).params();
            if let Ok(params) = RawValue::from_string(params) {
                peer.log(&params);
            }
        }
    }

    /// The servers whose tools are not known.
    pub(super) fn missing_servers(&self) -> Vec<ServerInfo> {
        let mut servers = self.shown_servers();
        servers.retain(|server| server.tools.is_none() && server.state != ServerState::Disabled);
        servers
    }

    fn shown_servers(&self) -> Vec<ServerInfo> {
        let mut servers = self.runtime.servers();
        servers.retain(|server| self.view.shows_server(&server.name));
        servers
    }
}

fn line(server: &ServerInfo) -> String {
    let mut line = format!("{}: {}", server.name, state(server));
    if let Some(tools) = server.tools {
        let cached = if server.cached { ", as an earlier run saw them" } else { "" };
        let noun = if tools == 1 { "tool" } else { "tools" };
        let _ = write!(line, ", {tools} {noun}{cached}");
    }
    if let Some(reason) = server.failure() {
        let _ = write!(line, ": {}", haft_text::printable(reason));
    }
    if let Some(remedy) = &server.remedy {
        let _ = write!(line, "; {}", haft_text::printable(&remedy.to_string()));
    }
    line
}

fn entry(server: &ServerInfo) -> Value {
    let mut entry = json!({ "name": server.name, "state": server.state });
    if let Some(tools) = server.tools {
        entry["tools"] = json!(tools);
    }
    if server.cached {
        entry["cached"] = json!(true);
    }
    if let Some(reason) = server.failure() {
        entry["reason"] = json!(reason);
    }
    if let Some(remedy) = &server.remedy {
        entry["remedy"] = json!(remedy);
    }
    entry
}

fn state(server: &ServerInfo) -> String {
    json!(server.state).as_str().unwrap_or_default().to_owned()
}

fn brief(reason: &str) -> String {
    let line = reason.lines().next().unwrap_or_default();
    let kept = &line[..line.floor_char_boundary(REASON_BYTES_MAX)];
    let cut = if kept.len() < line.len() { "..." } else { "" };
    format!("{}{cut}", haft_text::printable(kept))
}

/// The sessions that were sent the failures of servers, the latest ones.
#[derive(Debug, Default)]
pub(super) struct ReportedSessions(VecDeque<u64>);

impl ReportedSessions {
    /// Adds a session. Returns false if it is there.
    fn insert(&mut self, id: u64) -> bool {
        if self.0.contains(&id) {
            return false;
        }
        if self.0.len() == REPORTED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(id);
        true
    }

    /// True if no session has listed tools, so that each receives the failures with its first list.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
