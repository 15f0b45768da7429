//! Enforces the lock file: definitions that it does not approve are neither shown nor called.

use std::sync::Arc;

use serde_json::json;

use super::info::ToolInfo;
use super::server_pool::ServerPool;
use super::snapshot::Snapshot;
use super::{Inner, Runtime};
use crate::backend::mcp::{ApprovedLists, Connection, Resources, approved_resources};
use crate::config::Config;
use crate::config::choices::{Definitions, ToolPrefix};
use crate::config::model::ServerConfig;
use crate::error::{CallError, ToolFailure};
use crate::record::RecordSource;
use crate::registry::{
    BlockedDefinition, Level, Record, RegisteredTool, SettingsOrigin, ToolSource,
};
use crate::tool_filter::ToolFilter;
use haft_config::lock::LockedServer;
use haft_text::name::{offered, prefixed};

/// Stands in place of the description of a tool that was not approved.
const WITHHELD: &str = "Not approved in haft.lock, so its definition is withheld.";

/// Marks the registered tools whose current definition is not the approved one.
pub(super) fn mark_blocked(tools: &mut [Arc<RegisteredTool>], server_pool: &ServerPool) {
    for tool in tools {
        let Some(approved) = tool.source.server().and_then(|it| server_pool.approved(it)) else {
            continue;
        };
        let changed = approved.changed_tool(&tool.definition.name);
        Arc::make_mut(tool).blocked = changed.map(|(approved, current)| BlockedDefinition {
            approved: Some(approved.clone()),
            current: current.clone(),
        });
    }
}

/// The log records about definitions that differ from the lock file.
pub(super) fn records(config: &Config, server_pool: &ServerPool) -> Vec<Record> {
    let Some(lock) = config.lock.lock() else { return Vec::new() };
    let mut records = Vec::new();
    for connection in server_pool.all() {
        let server = connection.name();
        let compared = match config.policy.definitions.value {
            Definitions::Follow => None,
            Definitions::Block => server_pool.approved(server).cloned(),
            Definitions::Warn => {
                let pair = lock.servers.get(server).zip(connection.lists());
                pair.map(|(approved, lists)| Arc::new(ApprovedLists::new(approved, lists)))
            }
        };
        let blocks = match config.policy.definitions.value {
            Definitions::Block => " and is blocked until it is approved",
            Definitions::Warn | Definitions::Follow => "",
        };
        for (subject, predicate) in compared.iter().flat_map(|it| it.differences()) {
            let text = format!("{subject} from MCP server '{server}' {predicate}{blocks}");
            records.push(Record { level: Level::Warning, text });
        }
    }
    records
}

/// The error of a call of a tool that its server has and the lock file does not approve.
pub(super) fn unapproved(
    snapshot: &Snapshot,
    name: &str,
    tool_filter: &ToolFilter,
) -> Option<CallError> {
    let (server, tool) = unapproved_tools(snapshot)
        .into_iter()
        .find(|(server, tool)| tool.name == name && tool_filter.shows(Some(server), name))?;
    let own_name = tool.original_name.unwrap_or_else(|| tool.name.clone());
    let current = tool.blocked.map(|blocked| blocked.current).unwrap_or_default();
    Some(CallError::DefinitionChanged {
        tool: tool.name,
        server,
        name: own_name,
        approved: None,
        current,
    })
}

fn unapproved_tools(snapshot: &Snapshot) -> Vec<(String, ToolInfo)> {
    let mut tools = Vec::new();
    for connection in snapshot.server_pool.all() {
        let config = connection.config();
        let Some(approved) = snapshot.server_pool.approved(&config.name) else { continue };
        let passing = approved
            .unapproved
            .iter()
            .filter(|it| config.filter.value.passes(&config.name, &it.name));
        for tool in passing {
            let hash = ApprovedLists::unapproved_hash(tool);
            tools.push((config.name.clone(), withheld(snapshot, config, &tool.name, hash)));
        }
    }
    tools
}

/// A tool that was not approved. Nothing of its definition is shown but its name.
fn withheld(snapshot: &Snapshot, config: &ServerConfig, own_name: &str, hash: String) -> ToolInfo {
    let plain = match config.tool_prefix.value {
        ToolPrefix::None => offered(own_name),
        ToolPrefix::Server => prefixed(&config.name, own_name),
    };
    let is_taken = snapshot.toolbox.resolve(&plain).is_some();
    let name = if is_taken { prefixed(&config.name, own_name) } else { plain };
    ToolInfo {
        original_name: (own_name != name).then(|| own_name.to_owned()),
        name,
        name_warning: None,
        title: None,
        description: WITHHELD.to_owned(),
        annotations: None,
        icons: None,
        source: ToolSource::Mcp { mcp_name: config.name.clone(), mcp_mode: config.mode.value },
        kind: RecordSource::Mcp,
        input_schema: json!({"type": "object"}),
        output_schema: None,
        config_origin: SettingsOrigin::Default,
        config: Vec::new(),
        app_only: false,
        cached: false,
        blocked: Some(BlockedDefinition { approved: None, current: hash }),
        program: None,
    }
}

impl Runtime {
    /// The tools of locked servers that the lock file does not approve. They are not offered and cannot be called, so
    /// their definitions are withheld.
    pub fn unapproved_tools(&self) -> Vec<ToolInfo> {
        let snapshot = self.inner.snapshot.load();
        unapproved_tools(&snapshot).into_iter().map(|(_, tool)| tool).collect()
    }

    /// Refuses a prompt of a locked server that is not the approved one.
    pub(super) async fn check_prompt(
        &self,
        connection: &Connection,
        prompt: &str,
    ) -> Result<(), ToolFailure> {
        let server = connection.name();
        if !self.inner.snapshot.load().server_pool.is_locked(server) {
            return Ok(());
        }
        // Its lists must be those of the server as it is now.
        if connection.connect().await.is_err() {
            return Err(connection.unavailable());
        }
        self.inner.refresh().await;
        let snapshot = self.inner.snapshot.load_full();
        let approved =
            snapshot.server_pool.approved(server).ok_or_else(|| connection.unavailable())?;
        match approved.blocked_prompt(prompt) {
            None => Ok(()),
            Some((approved, current)) => Err(ToolFailure::DefinitionChanged {
                server: server.to_owned(),
                tool: prompt.to_owned(),
                approved: approved.clone(),
                current: current.clone(),
            }),
        }
    }

    /// The resources of a server, with approved templates only if it is locked.
    pub(super) fn approved_resources(&self, server: &str, all: Arc<Resources>) -> Arc<Resources> {
        let snapshot = self.inner.snapshot.load();
        match locked(&snapshot, server) {
            Some(approved) => Arc::new(approved_resources(approved, &all)),
            None => all,
        }
    }
}

/// The approved definitions of a server whose definitions are enforced.
fn locked<'s>(snapshot: &'s Snapshot, server: &str) -> Option<&'s LockedServer> {
    let config = snapshot.config();
    let lock = config.lock.lock().filter(|_| snapshot.server_pool.is_locked(server));
    lock.and_then(|lock| lock.servers.get(server))
}

impl Inner {
    /// Uses another content of the lock file from now on.
    pub(super) async fn relock(&self, loaded: crate::config::LoadedLock) {
        let _one_at_a_time = self.applying.lock().await;
        let old = self.snapshot.load_full();
        let mut config = Config::clone(old.config());
        config.lock.loaded = Some(loaded);
        let new = super::start::relock(Arc::new(config), &self.parts, &old).await;
        self.replace(new);
    }
}
