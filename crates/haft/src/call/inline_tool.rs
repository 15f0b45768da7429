//! A tool that comes with its calls instead of the toolbox. It takes the same path as every other.

use std::fmt;
use std::sync::Arc;

use super::Toolbox;
use crate::policy::Gate;
use crate::record::RecordSource;
use crate::registry::{self, ActiveTool};
use crate::tool::Tool;

/// A tool outside the toolbox. Its owner keeps it for all its calls, so that they share its limits.
#[derive(Clone)]
pub struct InlineTool {
    tool: Arc<dyn Tool>,
    gate: Arc<Gate>,
}

impl InlineTool {
    /// A tool for calls that bring it along.
    pub fn new(tool: Arc<dyn Tool>) -> Self {
        // The first call sets the limit of the toolbox's configuration.
        Self { tool, gate: Arc::new(Gate::new(0)) }
    }

    /// The tool itself.
    pub fn tool(&self) -> &dyn Tool {
        &*self.tool
    }
}

impl fmt::Debug for InlineTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InlineTool").field(&self.tool.definition().name).finish()
    }
}

impl Toolbox {
    /// The tool with the limits of a local one. None if its own schema is invalid.
    pub(super) fn inline_tool(&self, inline: &InlineTool) -> Option<Arc<ActiveTool>> {
        let InlineTool { tool, gate } = inline.clone();
        let registered = registry::inline_tool(tool.definition(), &self.config.defaults)?;
        gate.resize(registered.effective.max_instances.value);
        Some(Arc::new(ActiveTool::new(Arc::new(registered), tool, gate, RecordSource::Builtin)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::call::ToolboxParts;
    use crate::config::{LoadOptions, check_text};
    use crate::content::ToolOutput;
    use crate::policy::Policy;
    use crate::tool::FunctionTool;

    #[test]
    fn calls_of_an_inline_tool_share_its_limits() {
        let options = LoadOptions::default();
        let config = Arc::new(check_text("{}", Path::new("haft.yaml"), &options).unwrap());
        let policy = Policy::new(&config.defaults, Arc::new(Gate::new(10)));
        let toolbox = Toolbox::new(Vec::new(), ToolboxParts { policy, log: None, config });
        let tool =
            FunctionTool::new("own", "", serde_json::json!({"type": "object"}), |_, _| async {
                Ok(ToolOutput::default())
            });
        let inline = InlineTool::new(Arc::new(tool));
        let first = toolbox.inline_tool(&inline).unwrap();
        let limit = first.registered.effective.max_instances.value;
        let slots: Vec<_> = (0..limit).map(|_| first.gate.try_enter()).collect();
        assert!(slots.iter().all(Option::is_some), "{limit}");
        let second = toolbox.inline_tool(&inline).unwrap();
        assert!(second.gate.try_enter().is_none(), "the limit of {limit} holds over all calls");
    }
}
