//! Haft as an MCP server, seen by its clients.
#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has failed")]

mod broken;
mod endpoint;
mod eras;
mod keys;
mod profile_reload;
mod profiles;
mod search;
mod servers;
mod sessions;
mod support;
mod tools;
