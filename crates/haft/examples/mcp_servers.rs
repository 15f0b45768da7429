//! MCP servers from Rust: two servers, their tools, one call.
//!
//! Run it with `cargo run -p haft --example mcp_servers`. It needs `uvx`.

use std::time::Duration;

use haft::{ConfigBuilder, Runtime, ServerBuilder, ToolCall};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let time =
        ServerBuilder::command("uvx").args(["mcp-server-time"]).set("connect_timeout", "60s");
    let remote = ServerBuilder::url("http://localhost:8180/mcp").set("start", "lazy");
    let config = ConfigBuilder::new()
        .folder("target/example-mcp-servers")
        .server("time", time)
        .server("remote", remote)
        .tool("get_current_time", [("timeout", "10s")])
        .build()?;
    let runtime = Runtime::start(config).await?;

    for server in runtime.servers() {
        println!("{}: {:?}", server.name, server.state);
    }
    for tool in runtime.tools() {
        println!("{}", tool.name);
    }
    let call = ToolCall::new("get_current_time", &json!({"timezone": "Asia/Seoul"}));
    match runtime.call(call).await.into_result() {
        Ok(envelope) => println!("{}", envelope.model_text()),
        Err(error) => match &error.remedy {
            Some(remedy) => println!("{error}; {remedy}"),
            None => println!("{error}"),
        },
    }
    runtime.shutdown(Duration::from_secs(2)).await;
    Ok(())
}
