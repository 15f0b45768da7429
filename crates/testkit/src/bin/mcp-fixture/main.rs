//! An MCP server that behaves as a test wants: healthy, or wrong in every way a client must bear.
//!
//! `mcp-fixture stdio|http|sse|ws [--script FILE | --scenario JSON] [--port N] [ANYTHING...]`.
//! Without a scenario it is a healthy legacy server; see [`scenario::Scenario`]. The network ones
//! print `listening on URL` when they are ready.

mod call;
mod channel;
mod dispatch;
mod events;
mod facts;
mod gate;
mod http;
mod lists;
mod methods;
mod modern;
mod scenario;
mod server;
mod sse;
mod start;
mod stdio;
mod tasks;
mod tools;
mod ws;

use std::sync::Arc;

use crate::facts::Facts;
use crate::server::Server;
use crate::start::Command;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let command = Command::read()?;
    let facts = Facts::open(&command.scenario)?;
    start::prepare(&command.scenario, &facts).await;
    let server = Arc::new(Server::new(command.scenario, facts));
    start::watch_signals(&server)?;
    match command.transport.as_str() {
        "stdio" => stdio::serve(&server).await,
        "http" => http::serve(&server, command.port).await,
        "sse" => sse::serve(&server, command.port).await,
        "ws" => ws::serve(&server, command.port).await,
        other => Err(std::io::Error::other(format!("`{other}` is not a transport"))),
    }
}
