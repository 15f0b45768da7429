//! A toolbox with one Rust function: started, called, refused on bad input, shut down.
//!
//! Run it with `cargo run -p haft --example quickstart`.

use std::time::Duration;

use haft::{ConfigBuilder, Runtime, ToolCall, ToolFailure};
use serde_json::json;

/// Adds two numbers.
#[haft::tool]
async fn add(
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
) -> Result<i64, ToolFailure> {
    a.checked_add(b).ok_or_else(|| ToolFailure::execution("the sum is too large"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = ConfigBuilder::new().folder("target/example-quickstart").build()?;
    let add = add().with_timeout(Duration::from_secs(5)).with_max_instances(20);
    let runtime = Runtime::builder(config).tool(add).start().await?;

    let sum: i64 = runtime.call(ToolCall::new("add", &json!({"a": 2, "b": 3}))).await.parse()?;
    println!("{sum}");

    let refused = runtime.call(ToolCall::new("add", &json!({"a": "two"}))).await;
    if let Err(error) = refused.into_result() {
        println!("{}: {error}", error.code.as_str());
    }

    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
