//! `/mcp` inside your own axum app: your routes, your authentication, Haft's tools.
//!
//! Run it with `cargo run -p haft-server --example axum_mcp -- 127.0.0.1:8080`, then connect an MCP client to
//! `http://127.0.0.1:8080/mcp` with the header `Authorization: Bearer ada-secret`. Ctrl-C ends it.
//!
//! Haft's checks of keys, `Host` and `Origin` belong to `haft serve`. Here your app decides who may call, so every
//! request must present a credential that a web page of another origin cannot send.

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use haft::{ConfigBuilder, FunctionTool, Runtime, ToolOutput};
use haft_server::gateway::{Hub, Mount};
use haft_server::serve::Caller;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let greet =
        FunctionTool::new("greet", "Greets by name.", schema, |args, _context| async move {
            Ok(ToolOutput::from_text(format!("Hello, {}!", args["name"].as_str().unwrap_or("you"))))
        })
        .with_timeout(Duration::from_secs(5));

    // The hub connects MCP servers behind the toolbox with the clients in front of it.
    let hub = Hub::default();
    let config = ConfigBuilder::new().folder("target/example-axum-mcp").build()?;
    let runtime = Runtime::builder(config).tool(greet).server_handler(hub.clone()).start().await?;
    let mcp = Mount::new(runtime.clone(), hub);
    let app = Router::new()
        .merge(mcp.routes().route_layer(from_fn(authenticate)))
        .route("/", get(async || "my app"));

    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    // axum waits for open responses, and the streams of MCP sessions stay open until their sessions end.
    let ended = async move {
        drop(tokio::signal::ctrl_c().await);
        mcp.stop().await;
    };
    axum::serve(listener, app).with_graceful_shutdown(ended).await?;
    runtime.shutdown(Duration::from_secs(5)).await;
    Ok(())
}

/// Your own authentication. The name decides whose sessions and calls a client sees, and stands in the log.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let header = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
    if header != Some(b"Bearer ada-secret") {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    request.extensions_mut().insert(Caller::of_app("ada"));
    next.run(request).await
}
