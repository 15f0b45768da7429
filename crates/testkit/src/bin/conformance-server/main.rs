//! The server that the official conformance suite calls: every tool, prompt and resource it names.
//!
//! `conformance-server stdio`, or `conformance-server http PORT` for `http://127.0.0.1:PORT/mcp`, which
//! it prints; port 0 takes a free one. It is made with `rmcp`, the official Rust SDK, and speaks both eras,
//! so it can stand behind a gateway that is tested; alone it shows what the suite takes for right.

mod ask;
mod changes;
mod content;
mod input;
mod prompts;
mod report;
mod resources;
mod server;
mod tasks;
mod tools;

use std::net::Ipv4Addr;
use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::task_manager::TaskManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::changes::Changes;
use crate::server::Server;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["stdio"] => {
            let server = Server::new(Arc::new(Changes::default()), TaskManager::new());
            let service = server.serve(rmcp::transport::stdio()).await;
            let service = service.map_err(std::io::Error::other)?;
            service.waiting().await.map(drop).map_err(std::io::Error::other)
        }
        ["http", port] => serve_http(port.parse().map_err(std::io::Error::other)?).await,
        _ => Err(std::io::Error::other("say `stdio` or `http PORT`")),
    }
}

async fn serve_http(port: u16) -> std::io::Result<()> {
    // One for all: in the modern era every request gets a server of its own, and a change made by one
    // has to reach the streams of others. So do tasks.
    let (changes, tasks) = (Arc::new(Changes::default()), TaskManager::new());
    let service = StreamableHttpService::new(
        move || Ok(Server::new(changes.clone(), tasks.clone())),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let router = axum::Router::new().route_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, router).await
}
