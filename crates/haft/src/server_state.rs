//! How an MCP server is doing, in one word.

use serde::Serialize;

/// How a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// It is left out by `disabled: true`.
    Disabled,
    /// It is only configured; nobody needed it yet.
    Configured,
    /// It is being connected.
    Connecting,
    /// It answers.
    Ready,
    /// It answers, but something is missing.
    Degraded,
    /// It cannot be reached.
    Unavailable,
    /// It was stopped.
    Stopped,
}
