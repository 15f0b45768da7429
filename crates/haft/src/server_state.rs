//! The state of an MCP server.

use serde::{Deserialize, Serialize};

/// The state of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// Not used, because its entry has a problem.
    Misconfigured,
    /// Disabled by `disabled: true`.
    Disabled,
    /// Configured, with no connection attempt yet.
    Configured,
    /// A connection attempt is running.
    Connecting,
    /// Connected.
    Ready,
    /// Connected, but some of its lists are missing.
    Degraded,
    /// Unreachable.
    Unavailable,
    /// Stopped.
    Stopped,
}
