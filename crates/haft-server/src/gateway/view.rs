//! Which part of the toolbox an endpoint shows, and how.

use std::sync::Arc;

use haft::AccessLists;
use haft::config::choices::Surface;
use haft::config::gateway::Profile;
use haft::record::RecordSource;
use haft::{READ_OUTPUT, Runtime};

/// The built-in tools.
const BUILTINS: [&str; 3] = ["code_execution", "web_search", "request_human_input"];

/// Which part of the toolbox an endpoint shows: everything, or what a profile selects. Asks the configuration
/// in use each time, so that a change of it holds at once; a profile that is gone shows nothing.
#[derive(Clone)]
pub struct View {
    runtime: Runtime,
    profile: Option<String>,
    /// The tools and servers that the key of the endpoint's only caller permits.
    lists: Arc<AccessLists>,
    surface: Option<Surface>,
}

impl View {
    /// The whole toolbox, or a profile of it.
    pub fn new(runtime: &Runtime, profile: Option<&str>) -> Self {
        let profile = profile.map(ToOwned::to_owned);
        Self { runtime: runtime.clone(), profile, lists: Arc::default(), surface: None }
    }

    /// Hides what a key does not permit.
    pub(super) fn limited_to(self, lists: &Arc<AccessLists>) -> Self {
        Self { lists: Arc::clone(lists), ..self }
    }

    /// Sets the surface, overriding the configuration.
    #[must_use]
    pub fn with_surface(self, surface: Surface) -> Self {
        Self { surface: Some(surface), ..self }
    }

    /// Returns true if nothing is hidden but built-in tools that are not configured.
    pub(super) fn is_whole(&self) -> bool {
        self.profile.is_none() && self.lists.is_whole()
    }

    /// The profile, if it is one.
    pub(super) fn profile(&self) -> Option<&str> {
        self.profile.as_deref()
    }

    /// Returns true if a tool is shown; `server` is none for a local one.
    pub(super) fn shows_tool(&self, server: Option<&str>, name: &str) -> bool {
        self.shows(|profile| profile.shows_tool(server, name) || self.reads_on(server, name))
            && (self.lists.shows_tool(server, name) || self.reads_on(server, name))
            && !(server.is_none() && self.hides_builtin(name))
    }

    /// Returns true for the built-in tool that reads on in cut results: it belongs to every profile, and gives
    /// a caller only the results of its own calls.
    fn reads_on(&self, server: Option<&str>, name: &str) -> bool {
        server.is_none()
            && name == READ_OUTPUT
            && self.runtime.tool(name).is_some_and(|tool| tool.kind == RecordSource::Builtin)
    }

    /// Returns true if prompts and resources of a server are shown.
    pub(super) fn shows_server(&self, server: &str) -> bool {
        self.shows(|profile| profile.shows_server(server)) && self.lists.shows_server(server)
    }

    /// Clients have tools of this kind themselves, so a built-in tool is shown only where a file or the profile names
    /// it.
    pub(super) fn hides_builtin(&self, name: &str) -> bool {
        if !BUILTINS.contains(&name) || !self.runtime.is_builtin(name) {
            return false;
        }
        let config = self.runtime.config();
        let profile = self.profile.as_ref().and_then(|profile| config.profile(profile));
        let tools = profile.and_then(|profile| profile.tools.as_ref());
        let is_named = tools.is_some_and(|it| it.value.iter().any(|it| it.to_string() == name));
        let has_entry = config.tools.iter().any(|entry| entry.mcp.is_none() && entry.name == name);
        !is_named && !has_entry && !config.builtin.configured.contains(&name)
    }

    /// Presentation of the tools.
    pub(super) fn surface(&self) -> Surface {
        let config = self.runtime.config();
        let configured = match &self.profile {
            None => config.gateway.surface.value,
            Some(name) => config.profile(name).map_or(Surface::All, |it| it.surface.value),
        };
        self.surface.unwrap_or(configured)
    }

    fn shows(&self, by_profile: impl FnOnce(&Profile) -> bool) -> bool {
        match &self.profile {
            None => true,
            Some(name) => self.runtime.config().profile(name).is_some_and(by_profile),
        }
    }
}
