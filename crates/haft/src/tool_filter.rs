//! Visibility of tools for a caller.

use std::fmt;
use std::sync::Arc;

use crate::error::CallError;
use crate::registry::ActiveTool;

/// Returns true for a server (`None` for a local tool) and a tool name that the caller may see.
type FilterFn = Arc<dyn Fn(Option<&str>, &str) -> bool + Send + Sync>;

/// The tools a caller may see: all by default.
#[derive(Clone, Default)]
pub(crate) struct ToolFilter {
    pub(crate) shows: Option<FilterFn>,
    /// True if the caller is a model, which does not see tools of user interfaces.
    pub(crate) is_model: bool,
}

impl ToolFilter {
    pub(crate) fn shows(&self, server: Option<&str>, tool: &str) -> bool {
        self.shows.as_ref().is_none_or(|shows| shows(server, tool))
    }

    pub(crate) fn shows_tool(&self, tool: &ActiveTool) -> bool {
        let is_hidden = self.is_model && tool.backend.is_app_only();
        !is_hidden && self.shows(tool.registered.source.server(), tool.name())
    }

    /// Returns the tool if the caller may see it.
    pub(crate) fn check(&self, tool: &Arc<ActiveTool>) -> Result<Arc<ActiveTool>, CallError> {
        if self.shows_tool(tool) {
            return Ok(Arc::clone(tool));
        }
        Err(CallError::UnknownTool { tool: tool.name().to_owned(), nearest: None })
    }
}

impl fmt::Debug for ToolFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ToolFilter").field(&self.shows.is_some()).field(&self.is_model).finish()
    }
}
