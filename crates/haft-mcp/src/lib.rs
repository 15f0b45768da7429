//! The MCP wire. Knows no configuration file, no registry and no policy.
//!
//! Typed structs exist only for what Haft looks at; everything else a server sends is kept as it
//! came, so that nothing is lost between a server and whoever asked for it.

pub mod oauth;
mod tls;
mod tool;

pub use tool::{ListToolsResult, ToolDescription};
