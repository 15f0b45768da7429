//! The MCP wire, seen from outside: over real processes and sockets, and in pure form.

// What prepares a test panics as the test itself would.
#![allow(clippy::unwrap_used)]

#[macro_use]
mod suite;

mod core_limits;
mod core_states;
mod corpus;
mod http;
mod http_client;
mod pipes;
mod remote;
mod replicas;
mod sessions;
mod sse;
mod support;
mod suspended;
mod tasks;
mod websocket;
