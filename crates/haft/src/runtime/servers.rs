//! A configured MCP server as programs and people are shown it.

use serde::Serialize;

#[cfg(feature = "mcp")]
use crate::backend::mcp::Connection;
use crate::config::choices::{Mode, Start};
use crate::config::model::ServerConfig;
use crate::config::oauth::{OauthConfig, OauthInfo};
pub use crate::server_state::ServerState;

/// One configured server and how it is doing.
#[derive(Debug, Clone, Serialize)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// What its unconfigured tools mean.
    pub mode: Mode,
    /// How it is reached.
    pub transport: &'static str,
    /// Its address or command line, secrets masked.
    pub endpoint: String,
    /// When it is connected.
    pub start: Start,
    /// How its OAuth tokens are got, where a file says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OauthInfo>,
    /// How it is doing.
    pub state: ServerState,
    /// Why it is in that state, for the operator: with the last line of its standard error.
    pub reason: Option<String>,
    /// The same without that line, for every caller.
    #[serde(skip)]
    pub cause: Option<String>,
    /// Since when, RFC 3339; nothing for a server that is only configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// How often in a row the connection was tried again.
    pub retries: u32,
    /// What the server says about itself, while it is connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerIdentity>,
    /// How many tools it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// How many prompts it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<usize>,
    /// How many lines it wrote to its output that are not MCP messages.
    pub stray_lines: u64,
    /// The end of what it wrote to its standard error, for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<String>,
}

/// What a server says about itself. It can say anything.
#[derive(Debug, Clone, Serialize)]
pub struct ServerIdentity {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The protocol's version.
    pub protocol_version: String,
    /// How it wants to be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// What it can do, as it was sent.
    pub capabilities: serde_json::Value,
}

impl ServerInfo {
    /// A server as configured, without asking it anything.
    pub fn configured(server: &ServerConfig) -> Self {
        let state =
            if server.disabled.value { ServerState::Disabled } else { ServerState::Configured };
        Self {
            name: server.name.clone(),
            mode: server.mode.value,
            transport: server.endpoint.transport(),
            endpoint: server.endpoint.to_string(),
            start: server.start.value,
            oauth: server.endpoint.oauth().map(OauthConfig::info),
            state,
            reason: None,
            cause: None,
            since: None,
            retries: 0,
            server: None,
            tools: None,
            prompts: None,
            stray_lines: 0,
            stderr_tail: None,
        }
    }

    /// A server with its connection.
    #[cfg(feature = "mcp")]
    pub(super) fn connected(connection: &Connection) -> Self {
        let health = connection.health();
        let lists = connection.lists();
        let identity = connection.identity();
        Self {
            state: health.state,
            reason: health.reason.as_ref().map(ToString::to_string),
            cause: health.reason.map(|reason| reason.cause),
            since: (health.state != ServerState::Configured).then(|| health.since.to_string()),
            retries: health.retries,
            server: identity.map(|identity| ServerIdentity {
                name: identity.name,
                version: identity.version,
                protocol_version: identity.protocol_version,
                instructions: identity.instructions,
                capabilities: identity.capabilities,
            }),
            tools: lists.as_ref().map(|lists| {
                let filter = &connection.config().filter.value;
                lists.tools.iter().filter(|tool| filter.passes(&tool.name)).count()
            }),
            prompts: lists.as_ref().map(|lists| lists.prompts.len()),
            stray_lines: connection.stray_lines(),
            stderr_tail: connection.stderr_tail(),
            ..Self::configured(connection.config())
        }
    }
}
