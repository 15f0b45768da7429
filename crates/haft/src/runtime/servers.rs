//! A configured MCP server as shown to programs and people.

use serde::{Deserialize, Serialize};

use crate::backend::mcp::Connection;
use crate::config::choices::{Mode, Start};
use crate::config::model::ServerConfig;
use crate::config::oauth::{OauthConfig, OauthInfo};
pub use crate::server_state::ServerState;
use crate::words::{Word, transport_word};

/// One configured server and its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// The handling of its unconfigured tools.
    pub mode: Mode,
    /// Its transport.
    #[serde(deserialize_with = "transport_word")]
    pub transport: Word,
    /// Its address or command line, with secrets masked.
    pub endpoint: String,
    /// The time at which it connects.
    pub start: Start,
    /// Its OAuth settings, if configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OauthInfo>,
    /// Its connection state.
    pub state: ServerState,
    /// The reason of its state, for the operator: with the last line of its standard error.
    pub reason: Option<String>,
    /// The reason without that line, for every caller.
    #[serde(skip)]
    pub cause: Option<String>,
    /// The time of the last state change, RFC 3339; `None` for a server that is only configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Number of consecutive reconnection attempts.
    pub retries: u32,
    /// The identity the server reported, while it is connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerIdentity>,
    /// Number of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// Number of prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<usize>,
    /// Number of lines on its standard output that are not MCP messages.
    pub stray_lines: u64,
    /// The end of its standard error, for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<String>,
}

/// The identity a server reports. It is not verified.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerIdentity {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The protocol's version.
    pub protocol_version: String,
    /// The server's instructions for its use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Its capabilities, unmodified.
    pub capabilities: serde_json::Value,
}

impl ServerInfo {
    /// Returns a server as configured, without a connection.
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

    /// Returns a server with the state of its connection.
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
