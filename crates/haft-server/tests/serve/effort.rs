//! The work on the arguments of a call, counted in the process of the service.

use haft::{FunctionTool, ToolOutput};
use haft_bounds::effort::{self, Effort};
use serde_json::{Value, json};
use testkit::Workspace;

use crate::inside::Inside;

/// The most that a path may do with the arguments.
const PARSES_MAX: usize = 2;
const COPIES_MAX: usize = 2;

fn service() -> impl Future<Output = Inside> {
    let workspace = Workspace::with(&[("haft.yaml", "tools: [{name: count}]\n")]);
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let count = FunctionTool::new("count", "Counts bytes.", schema, |args, _| async move {
        Ok(ToolOutput::from_text(args["text"].as_str().unwrap_or_default().len().to_string()))
    });
    Inside::start(workspace, |builder| builder.tool(count))
}

/// Posts a body and returns the answer, and how often the arguments were parsed and copied meanwhile.
async fn posted(
    service: &Inside,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
    arguments: &Value,
) -> (Value, Effort) {
    let bytes = arguments.to_string().len();
    let before = effort::so_far();
    let answer = service.post(path, headers, body).await;
    let after = effort::so_far();
    assert_eq!(answer.status, 200, "{}", answer.text);
    let times = Effort {
        parsed: (after.parsed - before.parsed) / bytes,
        copied: (after.copied - before.copied) / bytes,
    };
    (answer.json(), times)
}

/// A call reads its arguments to find their end and again to check them. The text that the tool receives is that
/// of the request.
#[tokio::test]
async fn arguments_are_parsed_and_copied_twice() {
    let service = service().await;
    let arguments = json!({"text": "x".repeat(50_000)});
    let max = Effort { parsed: PARSES_MAX, copied: COPIES_MAX };

    let body = json!({"arguments": arguments}).to_string();
    let path = "/api/v1/tools/count/call";
    let (answer, times) = posted(&service, path, &[], body, &arguments).await;
    assert_eq!(answer["content"][0]["text"], "50000", "{answer}");
    assert_eq!(times, max, "REST");

    let params = json!({"name": "count", "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let message = |params: &Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
    };
    let headers = [
        ("accept", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "count"),
    ];
    let (answer, times) = posted(&service, "/mcp", &headers, message(&params), &arguments).await;
    assert_eq!(answer["result"]["content"][0]["text"], "50000", "{answer}");
    assert_eq!(times, max, "gateway, modern era");
}
