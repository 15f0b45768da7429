//! A configured MCP server as shown to programs and people.

use haft_config::Remedy;
use serde::{Deserialize, Serialize};

use crate::backend::mcp::{Connection, Health};
use crate::config::MisconfiguredServer;
use crate::config::choices::{Mode, Start};
use crate::config::model::ServerConfig;
use crate::config::oauth::{OauthConfig, OauthInfo};
pub use crate::server_state::ServerState;
use crate::words::{Word, transport_word};
use haft_text::printable;

/// One configured server and its state.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
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
    /// The remedy, if the entry of the server has a problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Remedy>,
    /// The reason without that line, for every caller.
    #[serde(skip)]
    pub cause: Option<String>,
    /// The time of the last state change, RFC 3339; `None` for a server that is only configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// True if an attempt to connect it is over; `None` without a connection.
    #[serde(skip)]
    pub was_tried: Option<bool>,
    /// Number of consecutive reconnection attempts.
    pub retries: u32,
    /// The identity the server reported, while it is connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerIdentity>,
    /// Number of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<usize>,
    /// True if tools and prompts are those of an earlier run, because the server is not connected yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cached: bool,
    /// Number of prompts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompts: Option<usize>,
    /// Number of lines on its standard output that are not MCP messages.
    pub stray_lines: u64,
    /// The end of its standard error, for the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<String>,
    /// Its last changes of state, the oldest first.
    #[serde(skip)]
    pub history: Vec<StateChange>,
}

/// A change of a server's state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateChange {
    /// The new state.
    pub state: ServerState,
    /// The reason, for the operator.
    pub reason: Option<String>,
    /// The reason, for every caller.
    pub cause: Option<String>,
    /// The time of the change, RFC 3339.
    pub at: String,
}

impl From<Health> for StateChange {
    fn from(health: Health) -> Self {
        let Health { state, reason, since, retries: _ } = health;
        Self {
            state,
            reason: reason.as_ref().map(ToString::to_string),
            cause: reason.map(|reason| reason.cause),
            at: since.to_string(),
        }
    }
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
            remedy: None,
            cause: None,
            since: None,
            was_tried: None,
            retries: 0,
            server: None,
            tools: None,
            cached: false,
            prompts: None,
            stray_lines: 0,
            stderr_tail: None,
            history: Vec::new(),
        }
    }

    /// Returns a server whose entry has a problem.
    pub(super) fn misconfigured(server: &MisconfiguredServer) -> Self {
        let MisconfiguredServer { name, transport, place, problem, remedy, variables: _ } = server;
        let reason = format!("{place}: {}", printable(problem));
        Self {
            name: name.clone(),
            mode: Mode::Dynamic,
            transport,
            endpoint: String::new(),
            start: Start::Eager,
            oauth: None,
            state: ServerState::Misconfigured,
            reason: Some(reason.clone()),
            remedy: Some(remedy.clone()),
            cause: Some(reason),
            since: None,
            was_tried: None,
            retries: 0,
            server: None,
            tools: None,
            cached: false,
            prompts: None,
            stray_lines: 0,
            stderr_tail: None,
            history: Vec::new(),
        }
    }

    /// The reason why the server does not work or lacks something, for every caller. `None` if it works, is being
    /// connected for the first time, or is not wanted.
    pub fn failure(&self) -> Option<&str> {
        let cause = self.cause.as_deref();
        match self.state {
            ServerState::Disabled | ServerState::Configured | ServerState::Ready => None,
            // An attempt failed, and another one follows.
            ServerState::Connecting => cause,
            ServerState::Misconfigured
            | ServerState::Degraded
            | ServerState::Unavailable
            | ServerState::Stopped => Some(cause.unwrap_or("it does not answer")),
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
            was_tried: Some(connection.was_tried()),
            retries: health.retries,
            server: identity.map(|identity| ServerIdentity {
                name: identity.name,
                version: identity.version,
                protocol_version: identity.protocol_version,
                instructions: identity.instructions,
                capabilities: identity.capabilities,
            }),
            tools: lists.as_ref().map(|lists| {
                let config = connection.config();
                lists
                    .tools
                    .iter()
                    .filter(|tool| config.filter.value.passes(&config.name, &tool.name))
                    .count()
            }),
            cached: connection.has_cached_lists(),
            prompts: lists.as_ref().map(|lists| lists.prompts.len()),
            stray_lines: connection.stray_lines(),
            stderr_tail: connection.stderr_tail(),
            history: connection.history().into_iter().map(StateChange::from).collect(),
            ..Self::configured(connection.config())
        }
    }
}
