//! Which part of the toolbox an endpoint shows.

/// Which part of the toolbox an endpoint shows: everything, unless it is narrowed.
#[derive(Debug, Clone, Default)]
pub struct View {}

impl View {
    /// Whether a tool is shown; `server` is none for a local one.
    pub(super) fn shows_tool(&self, _server: Option<&str>, _name: &str) -> bool {
        true
    }

    /// Whether prompts and resources of a server are shown.
    pub(super) fn shows_server(&self, _server: &str) -> bool {
        true
    }
}
