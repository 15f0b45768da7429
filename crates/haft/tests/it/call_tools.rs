//! Custom tools, through the public trait.

use haft::BoxFuture;
use haft::{Admitted, Runtime, Status, Tool, ToolCall, ToolDefinition, ToolFailure, ToolOutput};
use serde_json::json;

use crate::support::Bench;

/// Not a function: a type with its own state.
struct Adder {
    start: i64,
}

impl Tool for Adder {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "add".into(),
            title: Some("Add".into()),
            description: "Add to the start.".into(),
            input_schema: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
            output_schema: Some(json!({"type": "integer"})),
            annotations: None,
            icons: None,
        }
    }

    fn invoke<'a>(
        &'a self,
        call: &'a Admitted<'_>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolFailure>> {
        Box::pin(async move {
            let n = call.arguments().value()["n"].as_i64().unwrap_or_default();
            ToolOutput::from_json(&(self.start + n))
                .map_err(|error| ToolFailure::execution(error.to_string()))
        })
    }
}

/// Proves S1-29: one public trait for every kind of tool. That the core builds without the MCP
/// feature is a step of `cargo xtask test`.
#[tokio::test]
async fn a_type_that_implements_the_trait_is_a_tool_like_any_other() {
    let bench = Bench::new();
    let config = bench.config("tools: [{name: add, timeout: 5s}]");
    let runtime = Runtime::builder(config).tool(Adder { start: 40 }).start().await.unwrap();
    let answer = runtime.call(ToolCall::new("add", &json!({"n": 2}))).await;
    assert_eq!(answer.status, Status::Success);
    assert_eq!(answer.data.unwrap().get(), "42");
    let refused = runtime.call(ToolCall::new("add", &json!({"n": "2"}))).await;
    assert_eq!(refused.status, Status::Error);
    let tools = serde_json::to_value(runtime.tools()).unwrap();
    assert_eq!((&tools[0]["title"], &tools[0]["kind"]), (&json!("Add"), &json!("function")));
}
