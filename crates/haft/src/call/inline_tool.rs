//! A tool that comes with its call instead of the toolbox. It takes the same way as every other.

use std::sync::Arc;

use super::Toolbox;
use crate::policy::Gate;
use crate::record::Source as RecordSource;
use crate::registry::{self, ActiveTool};
use crate::tool::Tool;

impl Toolbox {
    /// The tool with the limits of a local one. Nothing where its own schema is of no use.
    pub(super) fn inline_tool(&self, tool: &Arc<dyn Tool>) -> Option<Arc<ActiveTool>> {
        let registered = registry::inline_tool(tool.definition(), &self.config.defaults)?;
        let gate = Arc::new(Gate::new(registered.effective.max_instances.value));
        let backend = Arc::clone(tool);
        Some(Arc::new(ActiveTool { registered, backend, gate, kind: RecordSource::Builtin }))
    }
}
