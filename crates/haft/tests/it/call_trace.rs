//! W3C trace context: from the caller to the tool, to the server and into the log.

use std::sync::{Arc, Mutex};

use haft::{CallContext, FunctionTool, Runtime, ToolCall, ToolOutput, TraceContext};
use serde_json::{Value, json};
use testkit::fixture::{Transport, events};

use super::mcp_support::{Stage, answer, transports};
use super::support::{Bench, empty};

const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const STATE: &str = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE";

fn traced(tool: &str) -> ToolCall {
    ToolCall::new(tool, &json!({})).trace_context(TraceContext::parse(PARENT, Some(STATE)).unwrap())
}

/// The two fields of a message's `_meta`.
fn meta(message: &Value) -> [&Value; 2] {
    ["traceparent", "tracestate"].map(|key| &message["params"]["_meta"][key])
}

/// The POSTs of a server that carried a trace, as `[traceparent, tracestate]`.
fn traced_posts(stage: &Stage, server: &str) -> Vec<[Value; 2]> {
    let http = events(&stage.facts(server), "http").into_iter();
    http.filter(|fact| fact["headers"].get("traceparent").is_some())
        .map(|fact| {
            assert_eq!(fact["method"], json!("POST"));
            ["traceparent", "tracestate"].map(|name| fact["headers"][name].clone())
        })
        .collect()
}

/// In `_meta` over every transport and in both eras, over HTTP as headers too, with
/// the calls that have a trace and with no others.
#[tokio::test]
async fn a_trace_reaches_the_server() {
    for era in ["legacy", "modern"] {
        let stage = Stage::new();
        let scenario = |tool: &str| json!({"era": era, "tools": [{"name": tool}]});
        let (runtime, _running) = stage.start_everywhere(era, scenario).await;
        for (server, tool) in transports(era) {
            let envelope = runtime.call(traced(tool)).await;
            assert!(envelope.error.is_none(), "{era} {tool}: {:?}", envelope.error);
            answer(&runtime, tool, json!({})).await;
            let calls = stage.messages(server, "tools/call");
            assert_eq!(meta(&calls[0]), [&json!(PARENT), &json!(STATE)], "{era} {tool}");
            assert_eq!(meta(&calls[1]), [&Value::Null, &Value::Null], "{era} {tool}");
            let has_headers = matches!(server, "http" | "sse");
            let expected = has_headers.then(|| [json!(PARENT), json!(STATE)]);
            assert_eq!(traced_posts(&stage, server), Vec::from_iter(expected), "{era} {tool}");
        }
    }
}

/// A trace without a state sends none.
#[tokio::test]
async fn a_trace_without_state_sends_none() {
    let stage = Stage::new();
    let (_running, server) = stage.remote("one", Transport::Http, json!({}), json!({}));
    let runtime = stage.start([server], json!({})).await;
    let trace = TraceContext::parse(PARENT, Some("not a state")).unwrap();
    runtime.call(empty("text").trace_context(trace)).await;
    let calls = stage.messages("one", "tools/call");
    assert_eq!(meta(&calls[0]), [&json!(PARENT), &Value::Null]);
    assert!(calls[0]["params"]["_meta"].get("tracestate").is_none());
    assert_eq!(traced_posts(&stage, "one"), [[json!(PARENT), Value::Null]]);
}

/// The tool itself sees the trace, and the log keeps its id; without one there is no such field.
#[tokio::test]
async fn a_trace_reaches_the_tool_and_the_log() {
    let bench = Bench::new();
    let seen: Arc<Mutex<Vec<Option<TraceContext>>>> = Arc::default();
    let see = Arc::clone(&seen);
    let tool = FunctionTool::new("look", "Looks.", json!({"type": "object"}), {
        move |_: Value, context: CallContext| {
            see.lock().unwrap().push(context.trace);
            async { Ok(ToolOutput::from_text("seen")) }
        }
    });
    let config = bench.config("tools: [{name: look, timeout: 20s}]");
    let runtime = Runtime::builder(config).tool(tool).start().await.unwrap();
    runtime.call(traced("look")).await;
    runtime.call(empty("look")).await;
    assert_eq!(*seen.lock().unwrap(), [TraceContext::parse(PARENT, Some(STATE)), None]);
    let logged = bench.logged();
    assert_eq!(logged[0].trace_id.as_deref(), Some(TRACE_ID));
    let lines: Vec<Value> = logged.iter().map(|it| serde_json::to_value(it).unwrap()).collect();
    assert_eq!(lines[0]["trace_id"], json!(TRACE_ID));
    assert!(lines[1].get("trace_id").is_none());
    let text: String = std::fs::read_dir(bench.logs())
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    assert_eq!(text.matches("trace_id").count(), 1, "{text}");
}
