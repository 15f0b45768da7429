//! Load statistics, read from the gates that limit calls.

use serde::Serialize;

use super::Runtime;
use crate::policy::Gate;

/// The load of the toolbox. Calls start and end while it is read, so the numbers need not add up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoadStats {
    /// Number of running calls.
    pub in_flight: u32,
    /// Number of calls that wait for a slot of their tool or of the toolbox.
    pub waiting: u32,
    /// Maximum number of concurrent calls.
    pub max_concurrent: u32,
    /// The same for each tool, in the order of [`Runtime::tools`].
    pub tools: Vec<ToolLoadStats>,
}

/// The load of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolLoadStats {
    /// The name under which it is offered.
    pub tool: String,
    /// Number of slots in use, by calls that run or wait for the toolbox only.
    pub in_flight: u32,
    /// Number of calls that wait for a slot of the tool.
    pub waiting: u32,
    /// Number of slots.
    pub max_instances: u32,
}

impl Runtime {
    /// Returns the load of the toolbox and the length of its queues.
    pub fn load_stats(&self) -> LoadStats {
        let snapshot = self.inner.snapshot.load();
        let tool = |tool: &str, gate: &Gate| ToolLoadStats {
            tool: tool.to_owned(),
            in_flight: gate.taken(),
            waiting: gate.waiting(),
            max_instances: gate.limit(),
        };
        let tools: Vec<_> = snapshot.toolbox.tools().map(|it| tool(it.name(), &it.gate)).collect();
        let toolbox = &snapshot.toolbox.policy.toolbox;
        LoadStats {
            in_flight: toolbox.taken(),
            waiting: tools.iter().fold(toolbox.waiting(), |sum, it| sum.saturating_add(it.waiting)),
            max_concurrent: toolbox.limit(),
            tools,
        }
    }
}
