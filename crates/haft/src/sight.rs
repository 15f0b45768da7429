//! Which tools a caller may know of.

use std::fmt;
use std::sync::Arc;

use crate::error::CallError;
use crate::registry::ActiveTool;

/// Says of a server (none for a local tool) and a tool's name whether the caller may know of it.
type Shows = Arc<dyn Fn(Option<&str>, &str) -> bool + Send + Sync>;

/// Which tools a caller may know of: all, unless somebody said which.
#[derive(Clone, Default)]
pub(crate) struct Sight {
    pub(crate) shows: Option<Shows>,
    /// Whether the caller is a model, which does not see tools of user interfaces.
    pub(crate) is_model: bool,
}

impl Sight {
    pub(crate) fn shows(&self, server: Option<&str>, tool: &str) -> bool {
        self.shows.as_ref().is_none_or(|shows| shows(server, tool))
    }

    pub(crate) fn shows_tool(&self, tool: &ActiveTool) -> bool {
        let is_hidden = self.is_model && tool.backend.is_app_only();
        !is_hidden && self.shows(tool.registered.source.server(), tool.name())
    }

    /// The tool, if the caller may know of it.
    pub(crate) fn of(&self, tool: &Arc<ActiveTool>) -> Result<Arc<ActiveTool>, CallError> {
        if self.shows_tool(tool) {
            return Ok(Arc::clone(tool));
        }
        Err(CallError::UnknownTool { tool: tool.name().to_owned(), nearest: None })
    }
}

impl fmt::Debug for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sight").field(&self.shows.is_some()).field(&self.is_model).finish()
    }
}
