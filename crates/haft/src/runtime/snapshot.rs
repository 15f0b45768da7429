//! One state of the runtime: the toolbox that calls use, with the connections and the choice behind it.

use std::sync::Arc;

use super::choice::Choice;
use super::fleet::Fleet;
use super::info::ToolInfo;
use crate::call::{Toolbox, ToolboxParts};
use crate::config::{Config, show};
use crate::error::ToolFailure;
use crate::policy::Policy;
use crate::record::{ExecutionLog, Source as RecordSource};
use crate::registry::{ActiveTool, KnownTools, Record};
use crate::sight::Sight;

/// One state of the runtime.
pub(crate) struct Snapshot {
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) fleet: Fleet,
    /// What registration said, so that the next one says only what is new.
    pub(super) said: Vec<Record>,
    /// What would have stopped a start.
    pub(super) violations: Vec<String>,
    /// What the servers had.
    pub(super) known: KnownTools,
    /// What tools are chosen with; made when it is first asked for.
    pub(super) choice: Choice,
}

/// The parts of a snapshot beside its tools.
pub(super) struct SnapshotParts {
    pub(super) config: Arc<Config>,
    pub(super) policy: Policy,
    pub(super) log: Option<ExecutionLog>,
    pub(super) fleet: Fleet,
    pub(super) said: Vec<Record>,
    pub(super) violations: Vec<String>,
    pub(super) known: KnownTools,
    pub(super) choice: Choice,
}

impl Snapshot {
    pub(super) fn new(tools: Vec<ActiveTool>, parts: SnapshotParts) -> Self {
        let SnapshotParts { config, policy, log, fleet, said, violations, known, choice } = parts;
        let toolbox = Arc::new(Toolbox::new(tools, ToolboxParts { policy, log, config }));
        Self { toolbox, fleet, said, violations, known, choice }
    }

    pub(super) fn config(&self) -> &Arc<Config> {
        &self.toolbox.config
    }

    /// Explains the absence of a tool that an earlier run saw: its server cannot be reached.
    pub(super) fn unavailable(&self, name: &str, sight: &Sight) -> Option<ToolFailure> {
        let is_shown = |server: &str| sight.shows(Some(server), name);
        self.fleet.missing(name, self.config(), &self.known, is_shown)
    }

    /// A tool as programs and people are shown it.
    pub(super) fn info(&self, tool: &ActiveTool) -> ToolInfo {
        let own_name = &tool.registered.definition.name;
        let script = self.config().local.iter().find(|local| local.definition.name == *own_name);
        let program = script.filter(|_| tool.kind == RecordSource::Local);
        ToolInfo::new(tool, program.map(|local| show::program(&local.program)))
    }
}
