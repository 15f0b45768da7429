//! The tools that Haft brings itself, so that a toolbox is of use before anybody wrote a tool.

pub mod code;
#[cfg(feature = "mcp")]
pub mod search;
