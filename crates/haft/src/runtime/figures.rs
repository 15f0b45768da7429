//! How busy the toolbox is, read off the gates that limit it.

use serde::Serialize;

use super::Runtime;
use crate::policy::Gate;

/// How busy the toolbox is. Calls come and go while it is looked at, so the numbers need not add up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// How many calls run.
    pub in_flight: u32,
    /// How many wait, for a slot of their tool or for one of the toolbox.
    pub waiting: u32,
    /// How many may run at once.
    pub max_concurrent: u32,
    /// The same for each tool, in the order of [`Runtime::tools`].
    pub tools: Vec<ToolFigures>,
}

/// How busy one tool is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolFigures {
    /// The name under which it is offered.
    pub tool: String,
    /// How many of its slots are taken, by calls that run or have only to wait for the toolbox.
    pub in_flight: u32,
    /// How many calls wait for a slot of it.
    pub waiting: u32,
    /// How many slots it has.
    pub max_instances: u32,
}

impl Runtime {
    /// How busy the toolbox is and how long its queues are.
    pub fn figures(&self) -> Figures {
        let snapshot = self.inner.snapshot.load();
        let tool = |tool: &str, gate: &Gate| ToolFigures {
            tool: tool.to_owned(),
            in_flight: gate.taken(),
            waiting: gate.waiting(),
            max_instances: gate.limit(),
        };
        let tools: Vec<_> = snapshot.toolbox.tools().map(|it| tool(it.name(), &it.gate)).collect();
        let toolbox = &snapshot.toolbox.policy.toolbox;
        Figures {
            in_flight: toolbox.taken(),
            waiting: tools.iter().fold(toolbox.waiting(), |sum, it| sum.saturating_add(it.waiting)),
            max_concurrent: toolbox.limit(),
            tools,
        }
    }
}
