//! What the MCP wire does, seen from outside: over real processes and sockets, and in pure form.

#[macro_use]
mod suite;

mod pipes;
mod websocket;
