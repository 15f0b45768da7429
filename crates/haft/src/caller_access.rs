//! The tools and the limits of a caller. The embedding program provides them, by the owner of a call.

use std::sync::Arc;

use haft_config::config::NamePattern;
use haft_config::config::call_limits::CallLimits;
use haft_config::config::gateway::LOCAL;
use haft_config::config::log_quota::LogQuota;

/// The limits of one caller.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallerAccess {
    /// The limits of its calls.
    pub limits: CallLimits,
    /// The only tools and servers that it sees and calls.
    pub lists: AccessLists,
    /// The bytes of its entries in the execution log. Entries beyond it are kept without arguments and answer.
    pub log_quota: Option<LogQuota>,
}

/// The tools and servers that a caller sees, as profiles list them; all by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessLists {
    /// The servers; `local` stands for tools that run here.
    pub servers: Option<Vec<NamePattern>>,
    /// The tools, by name or as `server/tool`.
    pub tools: Option<Vec<NamePattern>>,
}

impl AccessLists {
    /// Returns true if everything is shown.
    pub fn is_whole(&self) -> bool {
        self.servers.is_none() && self.tools.is_none()
    }

    /// Returns true if a tool is shown; `server` is `None` for a local one.
    pub fn shows_tool(&self, server: Option<&str>, name: &str) -> bool {
        let server = server.unwrap_or(LOCAL);
        let is_listed = |it: &Vec<NamePattern>| it.iter().any(|it| it.fits_tool(server, name));
        self.selects(server) && self.tools.as_ref().is_none_or(is_listed)
    }

    /// Returns true if prompts and resources of a server are shown. Lists that name tools and no servers show only
    /// those tools.
    pub fn shows_server(&self, server: &str) -> bool {
        match (&self.servers, &self.tools) {
            (Some(_), _) | (None, None) => self.selects(server),
            (None, Some(_)) => false,
        }
    }

    fn selects(&self, server: &str) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.iter().any(|it| it.fits(server)))
    }
}

/// The limits that hold for an owner.
#[derive(Debug, Clone)]
pub enum CallerStatus {
    /// None.
    Unlimited,
    /// These.
    Limited(Arc<CallerAccess>),
    /// The owner may not call any more, because its key ended.
    Ended,
}

/// Knows the limits of callers. Asked once for each call, so changes hold at once.
pub trait CallerDirectory: Send + Sync {
    /// The limits of the owner of a call ([`ToolCall::owner`](crate::ToolCall::owner)).
    fn status(&self, owner: &str) -> CallerStatus;
}
