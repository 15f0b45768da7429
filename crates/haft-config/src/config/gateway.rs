//! The toolbox as an MCP server: how clients see it, and which parts of it they see.

use std::time::Duration;

use super::choices::Surface;
use super::model::{Config, Setting};
use super::pattern::NamePattern;
use super::place::Place;

/// The name that stands for local tools where profiles select by server.
pub const LOCAL: &str = "local";

/// Follows the server's name in the name of a tool that collides with another.
const PREFIX_END: &str = "__";

/// Names that no server may have: profiles, keys and the log would take its tools for those that run here.
pub const RESERVED: [&str; 2] = [LOCAL, "builtin"];

/// The toolbox as an MCP server.
#[derive(Debug, Clone)]
pub struct GatewayConfig {
    /// The presentation of tools to clients of the whole toolbox.
    pub surface: Setting<Surface>,
    /// Text of a result beyond this size is kept back from clients; `None` sends results whole.
    pub output_bytes_max: Setting<Option<u64>>,
    /// Maximum number of sessions of an endpoint.
    pub sessions_max: Setting<u32>,
    /// Maximum idle time of a session.
    pub session_idle: Setting<Duration>,
    /// Maximum time that the first list of tools waits for servers that no run has listed.
    pub first_list_timeout: Setting<Duration>,
    /// True if `haft_status` is offered.
    pub status_tool: Setting<bool>,
}

/// A part of the toolbox.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// The place of its configuration.
    pub place: Place,
    /// The servers it shows; all by default.
    pub servers: Option<Setting<Vec<NamePattern>>>,
    /// The tools it shows; all by default.
    pub tools: Option<Setting<Vec<NamePattern>>>,
    /// The tools it does not show.
    pub exclude_tools: Setting<Vec<NamePattern>>,
    /// The presentation of tools to clients.
    pub surface: Setting<Surface>,
}

impl Profile {
    /// Returns true if it shows a tool; `server` is `None` for a local one.
    pub fn shows_tool(&self, server: Option<&str>, name: &str) -> bool {
        let server = server.unwrap_or(LOCAL);
        let is_listed =
            |patterns: &[NamePattern]| patterns.iter().any(|it| it.fits_tool(server, name));
        selects(self.servers.as_ref(), server)
            && self.tools.as_ref().is_none_or(|tools| is_listed(&tools.value))
            && !is_listed(&self.exclude_tools.value)
    }

    /// Returns true if it may show a tool, a prompt or a resource of a server. Names such as `server__tool` depend on
    /// the tools of other servers, so a profile with such a name may need all that exist.
    pub fn may_show_server(&self, server: &str) -> bool {
        let tools = self.tools.as_ref().map(|tools| &tools.value);
        let names = tools.into_iter().flatten().chain(&self.exclude_tools.value);
        if names.map(ToString::to_string).any(|name| name.contains(PREFIX_END)) {
            return true;
        }
        selects(self.servers.as_ref(), server)
            && tools.is_none_or(|tools| tools.iter().any(|it| it.may_fit_tools_of(server)))
    }

    /// Returns true if it shows prompts and resources of a server. A profile that names tools and
    /// no servers shows only those tools.
    pub fn shows_server(&self, server: &str) -> bool {
        match (&self.servers, &self.tools) {
            (Some(_), _) | (None, None) => selects(self.servers.as_ref(), server),
            (None, Some(_)) => false,
        }
    }
}

fn selects(patterns: Option<&Setting<Vec<NamePattern>>>, name: &str) -> bool {
    patterns.is_none_or(|patterns| patterns.value.iter().any(|pattern| pattern.fits(name)))
}

impl Config {
    /// The profile of this name.
    pub fn profile(&self, name: &str) -> Option<&Profile> {
        self.profiles.iter().find(|profile| profile.name == name)
    }
}
