//! One state of the runtime: the toolbox for calls, its connections and its tool index.

use std::sync::Arc;

use super::choice::Choice;
use super::info::ToolInfo;
use super::masked::MaskedDefinitions;
use super::server_pool::ServerPool;
use crate::call::{Toolbox, ToolboxParts};
use crate::config::model::Origin;
use crate::config::{Config, show};
use crate::error::ToolFailure;
use crate::policy::Policy;
use crate::record::{ExecutionLog, RecordSource};
use crate::registry::{ActiveTool, KnownTools, LocalRegistrations, Record};
use crate::tool_filter::ToolFilter;

/// One state of the runtime.
pub(crate) struct Snapshot {
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) server_pool: ServerPool,
    /// The records of registration, so that the next registration logs new ones only.
    pub(super) said: Vec<Record>,
    /// Violations that would have prevented a start.
    pub(super) violations: Vec<String>,
    /// The known tools of the servers.
    pub(super) known: KnownTools,
    /// The index for tool selection, built on first use.
    pub(super) choice: Choice,
    /// The local tools, for the next snapshot.
    pub(super) locals: Locals,
}

/// The definitions and registrations of local tools.
#[derive(Default)]
pub(super) struct Locals {
    /// Each definition beside its masked form.
    pub(super) masked: MaskedDefinitions,
    pub(super) registrations: LocalRegistrations,
}

/// The parts of a snapshot beside its tools.
pub(super) struct SnapshotParts {
    pub(super) config: Arc<Config>,
    pub(super) policy: Policy,
    pub(super) log: Option<ExecutionLog>,
    pub(super) server_pool: ServerPool,
    pub(super) said: Vec<Record>,
    pub(super) violations: Vec<String>,
    pub(super) known: KnownTools,
    pub(super) choice: Choice,
    pub(super) locals: Locals,
}

impl Snapshot {
    pub(super) fn new(tools: Vec<Arc<ActiveTool>>, parts: SnapshotParts) -> Self {
        let SnapshotParts {
            config,
            policy,
            log,
            server_pool,
            said,
            violations,
            known,
            choice,
            locals,
        } = parts;
        let toolbox = Arc::new(Toolbox::new(tools, ToolboxParts { policy, log, config }));
        Self { toolbox, server_pool, said, violations, known, choice, locals }
    }

    pub(super) fn config(&self) -> &Arc<Config> {
        &self.toolbox.config
    }

    /// Explains the absence of a tool that an earlier run saw: its server is unreachable.
    pub(super) fn unavailable(&self, name: &str, tool_filter: &ToolFilter) -> Option<ToolFailure> {
        let is_shown = |server: &str| tool_filter.shows(Some(server), name);
        self.server_pool.missing(name, self.config(), &self.known, is_shown)
    }

    /// Returns a tool as shown to programs and people.
    pub(super) fn info(&self, tool: &ActiveTool) -> ToolInfo {
        let own_name = &tool.registered.definition.name;
        let script = self.config().local.iter().find(|local| local.definition.name == *own_name);
        let program = script.filter(|_| tool.kind == RecordSource::Local);
        let cached = self.is_cached(tool);
        let server = tool.registered.source.server();
        let server =
            server.and_then(|name| self.config().servers.iter().find(|it| it.name == name));
        let sandbox = program.map(|local| &local.sandbox).or(server.map(|it| &it.sandbox));
        let info = ToolInfo::new(tool, program.map(|local| show::program(&local.program)), cached);
        match sandbox.filter(|sandbox| sandbox.origin != Origin::Default) {
            Some(sandbox) => info.inside(sandbox),
            None => info,
        }
    }

    /// True if an earlier run saw the tool, and its server is not connected yet.
    pub(super) fn is_cached(&self, tool: &ActiveTool) -> bool {
        let server = tool.registered.source.server();
        server
            .and_then(|server| self.server_pool.find(server))
            .is_some_and(|it| it.has_cached_lists())
    }
}
