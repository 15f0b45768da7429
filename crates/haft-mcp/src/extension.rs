//! Names of extensions of the protocol that Haft knows.

/// User interfaces that tools bring along (MCP Apps).
pub const UI_EXTENSION: &str = "io.modelcontextprotocol/ui";
/// Calls that end after their request (tasks of 2026-07-28).
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
