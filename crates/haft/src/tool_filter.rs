//! Visibility of tools for a caller.

use std::fmt;
use std::sync::Arc;

use crate::caller_access::CallerStatus;
use crate::error::CallError;
use crate::outputs::READ_OUTPUT;
use crate::record::RecordSource;
use crate::registry::ActiveTool;

/// Returns true for a server (`None` for a local tool) and a tool name that the caller may see.
type FilterFn = Arc<dyn Fn(Option<&str>, &str) -> bool + Send + Sync>;

/// The tools a caller may see: all by default.
#[derive(Clone)]
pub(crate) struct ToolFilter {
    pub(crate) shows: Option<FilterFn>,
    /// True if the caller is a model, which does not see tools of user interfaces.
    pub(crate) is_model: bool,
    /// The limits of the owner of the call.
    pub(crate) caller: CallerStatus,
}

impl Default for ToolFilter {
    fn default() -> Self {
        Self { shows: None, is_model: false, caller: CallerStatus::Unlimited }
    }
}

impl ToolFilter {
    pub(crate) fn shows(&self, server: Option<&str>, tool: &str) -> bool {
        self.shows.as_ref().is_none_or(|shows| shows(server, tool)) && self.permits(server, tool)
    }

    fn permits(&self, server: Option<&str>, tool: &str) -> bool {
        match &self.caller {
            CallerStatus::Unlimited => true,
            CallerStatus::Limited(access) => access.lists.shows_tool(server, tool),
            CallerStatus::Ended => false,
        }
    }

    pub(crate) fn shows_tool(&self, tool: &ActiveTool) -> bool {
        let is_hidden = self.is_model && tool.backend.is_app_only();
        let (server, name) = (tool.registered.source.server(), tool.name());
        // A caller reads only the results of its own calls.
        let reads_on = name == READ_OUTPUT && tool.kind == RecordSource::Builtin;
        let reads_on = reads_on && matches!(self.caller, CallerStatus::Limited(_));
        let is_listed = self.shows.as_ref().is_none_or(|shows| shows(server, name));
        !is_hidden && is_listed && (reads_on || self.permits(server, name))
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
