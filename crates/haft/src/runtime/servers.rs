//! The configured MCP servers, as far as this build can reach them.

use serde::Serialize;

use super::StartError;
use crate::config::choices::{ConnectFailure, Mode, Start};
use crate::config::model::{Config, ServerConfig};
use crate::registry::{Level, Record, connect_failure};

/// Why no server is reached: the transports are not part of this version.
const NO_TRANSPORT: &str = "this version of Haft cannot connect to MCP servers";

/// One configured server.
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
    /// How it is doing.
    pub state: ServerState,
    /// Why it is in that state.
    pub reason: Option<String>,
}

/// How a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// It is left out by `disabled: true`.
    Disabled,
    /// It cannot be reached.
    Unavailable,
    /// It is only configured; nobody tried to reach it.
    Configured,
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
            state,
            reason: None,
        }
    }
}

/// Does with every server what its `on_connect_failure` says.
pub(super) fn connect(config: &Config) -> Result<Vec<ServerInfo>, StartError> {
    let mut infos = Vec::new();
    for server in &config.servers {
        let mut info = ServerInfo::configured(server);
        if info.state == ServerState::Configured && server.start.value == Start::Eager {
            match server.on_connect_failure.value {
                ConnectFailure::Exit => {
                    let text = connect_failure(&server.name, &server.endpoint, NO_TRANSPORT);
                    Record { level: Level::Error, text: text.clone() }.emit();
                    return Err(StartError::Connect { server: server.name.clone(), text });
                }
                ConnectFailure::Skip => {
                    let text =
                        format!("mcp: server '{}' failed to connect: {NO_TRANSPORT}", server.name);
                    Record { level: Level::Warning, text }.emit();
                }
            }
            info.state = ServerState::Unavailable;
            info.reason = Some(NO_TRANSPORT.to_owned());
        }
        infos.push(info);
    }
    Ok(infos)
}
