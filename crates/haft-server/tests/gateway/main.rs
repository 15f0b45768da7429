//! Haft as an MCP server, seen by its clients.
#![allow(clippy::unwrap_used, reason = "a test that fails to set itself up has failed")]

mod broken;
mod clients;
mod eras;
mod servers;
mod support;
mod tools;
