//! What a call sees of the toolbox: one consistent whole, replaced as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use super::choice::Choice;
use super::fleet::Fleet;
use super::info::ToolInfo;
use crate::config::{Config, nearest, show};
use crate::error::CallError;
use crate::policy::{Gate, Policy};
use crate::record::{ExecutionLog, Source as RecordSource};
use crate::registry::{KnownTools, Record, RegisteredTool};
use crate::sight::Sight;
use crate::tool::Tool;

/// One state of the toolbox.
pub(crate) struct Snapshot {
    tools: HashMap<String, Arc<Offered>>,
    order: Vec<Arc<Offered>>,
    pub(crate) policy: Policy,
    /// Not there in a toolbox that only looks.
    pub(crate) log: Option<ExecutionLog>,
    pub(crate) output_bytes_max: usize,
    /// How many values and keys the arguments or the structured answer of a call may have.
    pub(crate) nodes_max: usize,
    pub(super) fleet: Fleet,
    pub(super) config: Arc<Config>,
    /// What registration said, so that the next one says only what is new.
    pub(super) said: Vec<Record>,
    /// What would have stopped a start.
    pub(super) violations: Vec<String>,
    /// What the servers had.
    pub(super) known: KnownTools,
    /// What tools are chosen with; made when it is first asked for.
    pub(super) choice: Choice,
}

/// What a snapshot is made of, beside its tools.
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

/// A tool with what runs it and what limits it.
pub(crate) struct Offered {
    pub(crate) registered: RegisteredTool,
    pub(crate) backend: Arc<dyn Tool>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) kind: RecordSource,
}

impl Offered {
    /// The name under which it is offered.
    pub(crate) fn name(&self) -> &str {
        &self.registered.name
    }
}

impl Snapshot {
    pub(super) fn new(offered: Vec<Offered>, parts: SnapshotParts) -> Self {
        let SnapshotParts { config, policy, log, fleet, said, violations, known, choice } = parts;
        let order: Vec<Arc<Offered>> = offered.into_iter().map(Arc::new).collect();
        let tools = order.iter().map(|tool| (tool.name().to_owned(), tool.clone())).collect();
        let output_bytes_max = config.defaults.output_bytes_max.value as usize;
        Self {
            tools,
            order,
            policy,
            log,
            output_bytes_max,
            nodes_max: config.limits.nodes_max(),
            fleet,
            config,
            said,
            violations,
            known,
            choice,
        }
    }

    /// Makes the limits of this state those of the gates it shares with the state before.
    pub(super) fn set_limits(&self) {
        self.policy.toolbox.resize(self.config.defaults.max_concurrent.value);
        for tool in &self.order {
            tool.gate.resize(tool.registered.effective.max_instances.value);
        }
    }

    /// The tools, in the order of registration.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &Arc<Offered>> {
        self.order.iter()
    }

    /// The tool of a name.
    pub(crate) fn resolve(&self, name: &str) -> Option<&Arc<Offered>> {
        self.tools.get(name)
    }

    /// A tool that earlier runs saw is missed, and not unknown, while its server is away.
    pub(crate) fn missing(&self, name: &str, sight: &Sight) -> CallError {
        let is_shown = |server: &str| sight.shows(Some(server), name);
        if let Some(failure) = self.fleet.missing(name, &self.config, &self.known, is_shown) {
            return CallError::Failed { tool: name.to_owned(), failure: Box::new(failure) };
        }
        let shown =
            |tool: &&Arc<Offered>| sight.shows(tool.registered.source.server(), tool.name());
        let near = nearest(name, self.order.iter().filter(shown).map(|tool| tool.name()));
        CallError::UnknownTool { tool: name.to_owned(), nearest: near.map(ToOwned::to_owned) }
    }

    /// A tool as programs and people are shown it.
    pub(super) fn info(&self, tool: &Offered) -> ToolInfo {
        let own_name = &tool.registered.definition.name;
        let script = self.config.local.iter().find(|local| local.definition.name == *own_name);
        let program = script.filter(|_| tool.kind == RecordSource::Local);
        ToolInfo::new(tool, program.map(|local| show::program(&local.program)))
    }

    /// No tool runs without a record, unless the configuration says that it may.
    pub(crate) async fn require_log(&self, tool: &str) -> Result<(), CallError> {
        let ready = match &self.log {
            Some(log) => log.ready().await.map_err(|error| error.problem()),
            None => Err("this toolbox was started only to look at it".to_owned()),
        };
        ready.map_err(|problem| CallError::LogUnavailable { tool: tool.to_owned(), problem })
    }
}
