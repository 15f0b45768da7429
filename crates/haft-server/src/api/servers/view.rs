//! A server as the API shows it.

use haft::config::choices::{Mode, Start};
use haft::config::show;
use haft::live::{Live, RegistryDocument};
use haft::registry::ToolSource;
use haft::{Config, ServerIdentity, ServerInfo, ServerState, ToolInfo};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::config::Effective;
use crate::api::remedy::endpoint;
use crate::serve::Caller;

/// The reader of a server's details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    Admin,
    /// Any caller that may read.
    Caller,
}

impl From<&Caller> for Audience {
    fn from(caller: &Caller) -> Self {
        if caller.is_admin() { Self::Admin } else { Self::Caller }
    }
}

/// A configured MCP server and how it is doing.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct Server {
    /// Its name.
    pub(super) name: String,
    /// Its state.
    #[schema(value_type = StateName)]
    pub(super) state: ServerState,
    /// Why it is in that state; for an admin with the last line of its standard error.
    reason: Option<String>,
    /// The remedy, for a server whose entry has a problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    remedy: Option<String>,
    /// Since when; nothing for a server that is only configured.
    #[schema(format = DateTime)]
    since: Option<String>,
    /// Number of reconnect attempts in a row.
    retries: u32,
    /// Its transport.
    #[schema(value_type = String)]
    transport: &'static str,
    /// Its address or command line; secrets are masked.
    endpoint: String,
    /// The meaning of its unconfigured tools.
    #[schema(value_type = String)]
    mode: Mode,
    /// When it is connected.
    #[schema(value_type = String)]
    start: Start,
    /// Number of tools, once known.
    tools: Option<usize>,
    /// True if tools and prompts are those of an earlier run, because the server is not connected yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    cached: bool,
    /// Number of prompts, once known.
    prompts: Option<usize>,
    /// Number of output lines that are not MCP messages.
    stray_lines: u64,
    /// The server's own description, while it is connected.
    identity: Option<Identity>,
    /// True if it lies in the registry and can be changed here. Others are configured in files.
    in_registry: bool,
}

/// The state of a server.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "only described, never made")]
pub(in crate::api) enum StateName {
    /// Its entry has a problem.
    Misconfigured,
    /// It is left out.
    Disabled,
    /// Not needed yet.
    Configured,
    /// It is being connected.
    Connecting,
    /// It answers.
    Ready,
    /// It answers, but something is missing.
    Degraded,
    /// It cannot be reached.
    Unavailable,
    /// It was stopped.
    Stopped,
}

/// A server with everything there is to know about it.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct ServerDetails {
    #[serde(flatten)]
    pub(super) server: Server,
    /// The names under which its tools are offered.
    tool_names: Vec<String>,
    /// Every effective setting with its origin; secrets are masked.
    definition: Vec<Effective>,
    /// The end of what it wrote to its standard error, for an admin; secrets are masked.
    stderr_tail: Option<String>,
    /// Its last 50 changes of state, the oldest first.
    history: Vec<StateChange>,
    /// The entry in the registry, for an admin. `null` if it holds a literal secret.
    #[schema(value_type = Option<Object>)]
    pub(super) entry: Option<serde_json::Value>,
}

/// A change of a server's state.
#[derive(Debug, Serialize, ToSchema)]
struct StateChange {
    /// The new state.
    #[schema(value_type = StateName)]
    state: ServerState,
    /// The reason; for an admin with the last line of its standard error.
    reason: Option<String>,
    /// The time of the change, RFC 3339.
    at: String,
}

/// The server's own description. Unverified.
#[derive(Debug, Serialize, ToSchema)]
struct Identity {
    /// Its name.
    name: Option<String>,
    /// Its version.
    version: Option<String>,
    /// The protocol's version.
    protocol_version: String,
    /// Its instructions for use.
    instructions: Option<String>,
    /// Its capabilities, unmodified.
    #[schema(value_type = Object)]
    capabilities: serde_json::Value,
}

impl Server {
    pub(super) fn of(info: ServerInfo, live: &Live, audience: Audience) -> Self {
        let in_registry = live.is_in_registry(RegistryDocument::Servers, &info.name);
        Self {
            name: info.name,
            state: info.state,
            reason: if audience == Audience::Admin { info.reason } else { info.cause },
            remedy: info.remedy.as_ref().map(endpoint),
            since: info.since,
            retries: info.retries,
            transport: info.transport,
            endpoint: info.endpoint,
            mode: info.mode,
            start: info.start,
            tools: info.tools,
            cached: info.cached,
            prompts: info.prompts,
            stray_lines: info.stray_lines,
            identity: info.server.map(Identity::of),
            in_registry,
        }
    }
}

impl ServerDetails {
    pub(super) fn of(info: ServerInfo, live: &Live, audience: Audience) -> Self {
        let runtime = live.runtime();
        let is_its = |tool: &ToolInfo| match &tool.source {
            ToolSource::Mcp { mcp_name, .. } => *mcp_name == info.name,
            ToolSource::Local => false,
        };
        let tools = runtime.tools().into_iter().filter(is_its).map(|tool| tool.name).collect();
        let mut config = Config::clone(&runtime.config());
        config.servers.retain(|server| server.name == info.name);
        let rows = show::rows(&config).into_iter();
        let definition =
            rows.filter(|row| row.path.starts_with("servers.")).map(Effective::of).collect();
        // A server is shared: what it prints may come from the calls of others.
        let stderr_tail = info.stderr_tail.clone().filter(|_| audience == Audience::Admin);
        let history = info.history.iter().map(|change| StateChange {
            state: change.state,
            reason: match audience {
                Audience::Admin => change.reason.clone(),
                Audience::Caller => change.cause.clone(),
            },
            at: change.at.clone(),
        });
        Self {
            tool_names: tools,
            definition,
            stderr_tail,
            history: history.collect(),
            entry: None,
            server: Server::of(info, live, audience),
        }
    }
}

impl Identity {
    fn of(identity: ServerIdentity) -> Self {
        let ServerIdentity { name, version, protocol_version, instructions, capabilities } =
            identity;
        Self { name, version, protocol_version, instructions, capabilities }
    }
}
