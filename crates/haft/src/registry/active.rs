//! A registered tool with what runs it and what limits it.

use std::sync::Arc;

use super::RegisteredTool;
use crate::policy::{Gate, ToolLimits};
use crate::record::Source as RecordSource;
use crate::tool::Tool;

/// A tool that can be called.
pub(crate) struct ActiveTool {
    pub(crate) registered: RegisteredTool,
    pub(crate) backend: Arc<dyn Tool>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) kind: RecordSource,
}

impl ActiveTool {
    /// The name under which it is offered.
    pub(crate) fn name(&self) -> &str {
        &self.registered.name
    }

    pub(crate) fn limits(&self) -> ToolLimits<'_> {
        ToolLimits {
            tool: self.name(),
            on_limit: self.registered.effective.on_limit.value,
            gate: &self.gate,
            waits_for_people: self.backend.waits_for_people(),
        }
    }
}
