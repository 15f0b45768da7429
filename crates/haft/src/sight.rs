//! Which tools a caller may know of.

use std::fmt;
use std::sync::Arc;

use crate::error::CallError;
use crate::registry::ActiveTool;

/// Says of a server (none for a local tool) and a tool's name whether the caller may know of it.
type Shows = Arc<dyn Fn(Option<&str>, &str) -> bool + Send + Sync>;

/// Which tools a caller may know of: all, unless somebody said which.
#[derive(Clone, Default)]
pub(crate) struct Sight(pub(crate) Option<Shows>);

impl Sight {
    pub(crate) fn shows(&self, server: Option<&str>, tool: &str) -> bool {
        self.0.as_ref().is_none_or(|shows| shows(server, tool))
    }

    /// The tool, if the caller may know of it.
    pub(crate) fn of(&self, tool: &Arc<ActiveTool>) -> Result<Arc<ActiveTool>, CallError> {
        if self.shows(tool.registered.source.server(), tool.name()) {
            return Ok(Arc::clone(tool));
        }
        Err(CallError::UnknownTool { tool: tool.name().to_owned(), nearest: None })
    }
}

impl fmt::Debug for Sight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sight").field(&self.0.is_some()).finish()
    }
}
