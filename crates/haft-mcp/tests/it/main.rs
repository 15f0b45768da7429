//! What the MCP wire does, seen from outside: over real processes and sockets, and in pure form.

#[macro_use]
mod suite;

mod core_limits;
mod core_states;
mod pipes;
mod sessions;
mod websocket;
