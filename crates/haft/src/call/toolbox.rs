//! A consistent view of the toolbox for calls, replaced as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use super::flow::ToolLabels;
use crate::call_limit::LimitTable;
use crate::config::Config;
use crate::error::CallError;
use crate::policy::Policy;
use crate::record::ExecutionLog;
use crate::registry::ActiveTool;
use crate::tool_filter::ToolFilter;
use haft_text::nearest;

/// The tools in use, their limits and their log.
pub(crate) struct Toolbox {
    tools: HashMap<String, Arc<ActiveTool>>,
    order: Vec<Arc<ActiveTool>>,
    pub(crate) policy: Policy,
    /// The labels of the tools.
    pub(super) labels: ToolLabels,
    /// None in a toolbox that is only inspected.
    pub(crate) log: Option<ExecutionLog>,
    pub(crate) config: Arc<Config>,
    pub(crate) output_bytes_max: usize,
    /// The limit for values and keys in the arguments or the structured answer of a call.
    pub(crate) nodes_max: usize,
}

/// The parts of a toolbox beside its tools.
pub(crate) struct ToolboxParts {
    pub(crate) policy: Policy,
    pub(crate) log: Option<ExecutionLog>,
    pub(crate) config: Arc<Config>,
}

impl Toolbox {
    pub(crate) fn new(order: Vec<Arc<ActiveTool>>, parts: ToolboxParts) -> Self {
        let ToolboxParts { policy, log, config } = parts;
        let tools = order.iter().map(|tool| (tool.name().to_owned(), tool.clone())).collect();
        let output_bytes_max = config.defaults.output_bytes_max.value as usize;
        let nodes_max = config.limits.nodes_max();
        let labels = ToolLabels::new(&config, order.iter().map(|tool| &**tool));
        Self { tools, order, policy, labels, log, config, output_bytes_max, nodes_max }
    }

    /// Makes the limits of this toolbox those of the gates it shares with the one before.
    pub(crate) fn set_limits(&self) {
        self.policy.toolbox.resize(self.config.defaults.max_concurrent.value);
        for tool in &self.order {
            tool.gate.resize(tool.registered.effective.max_instances.value);
        }
    }

    /// Gives a tool the rates and quotas of its configuration. Unchanged ones keep their counters.
    pub(crate) fn limit_calls(tool: &mut ActiveTool, config: &Config, limits: &LimitTable) {
        let server = tool.registered.source.server();
        let server = server.and_then(|name| config.servers.iter().find(|it| it.name == name));
        let server = server.and_then(|it| limits.server(&it.name, it.limits.limits()));
        let own = limits.tool(tool.name(), tool.registered.effective.limits.limits());
        tool.call_limits = server.into_iter().chain(own).collect();
    }

    /// The tools, in the order of registration.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &Arc<ActiveTool>> {
        self.order.iter()
    }

    /// The tool of a name.
    pub(crate) fn resolve(&self, name: &str) -> Option<&Arc<ActiveTool>> {
        self.tools.get(name)
    }

    /// The name most like `name` among the tools that the caller may see.
    pub(super) fn nearest(&self, name: &str, tool_filter: &ToolFilter) -> Option<String> {
        let shown = |tool: &&Arc<ActiveTool>| tool_filter.shows_tool(tool);
        let near = nearest(name, self.order.iter().filter(shown).map(|tool| tool.name()));
        near.map(ToOwned::to_owned)
    }

    /// No tool runs without a record, unless the configuration allows it.
    pub(super) async fn require_log(&self, tool: &str) -> Result<(), CallError> {
        let ready = match &self.log {
            Some(log) => log.ready().await.map_err(|error| error.problem()),
            None => Err("this toolbox was started only to look at it".to_owned()),
        };
        ready.map_err(|problem| CallError::LogUnavailable { tool: tool.to_owned(), problem })
    }
}
