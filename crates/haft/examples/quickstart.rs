//! A toolbox with one Rust function: started, called, refused on bad input, shut down.
//!
//! Run it with `cargo run -p haft --example quickstart`.

use std::time::Duration;

use haft::{Config, FunctionTool, Runtime, ToolCall, ToolOutput};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A function is a local tool, and local tools are always configured: that is where its
    // limits stand.
    let config = Config::from_yaml(
        "
        log: {dir: target/quickstart-logs}
        tools:
          - {name: add, max_instances: 20, timeout: 5s}
        ",
    )?;
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    });
    let add = FunctionTool::new("add", "Add two numbers.", schema, |args, _context| async move {
        let sum = args["a"].as_i64().unwrap_or(0) + args["b"].as_i64().unwrap_or(0);
        Ok(ToolOutput::from_text(sum.to_string()))
    });
    let runtime = Runtime::builder(config).tool(add).start().await?;

    let answer = runtime.call(ToolCall::new("add", &json!({"a": 2, "b": 3}))).await;
    println!("{:?}: {:?}", answer.status, answer.content);

    let refused = runtime.call(ToolCall::new("add", &json!({"a": "two"}))).await;
    if let Some(error) = refused.error {
        println!("{:?}: {}", error.code, error.message);
    }

    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
