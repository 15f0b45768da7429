//! The tools that Haft brings itself, so that a toolbox is of use before anybody wrote a tool.

pub mod code;
pub mod human;
#[cfg(feature = "mcp")]
pub mod search;
