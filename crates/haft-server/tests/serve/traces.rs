//! One span for each call, exported to a collector (beside S0-76: details that metrics lack).
#![allow(clippy::float_cmp, reason = "these are counts, which are exact")]

use std::time::Duration;

use haft::record::RecordSource;
use haft::{
    CallSummary, FunctionTool, RuntimeBuilder, Status, ToolFailure, ToolOutput, TraceContext,
};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::{Fixture, messages};

use crate::collector::{self, Answer, Collector};
use crate::inside::Inside;
use crate::served::{Served, toolbox};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn caller() -> TraceContext {
    TraceContext::parse(PARENT, Some("rojo=1")).unwrap()
}

fn tools(builder: RuntimeBuilder) -> RuntimeBuilder {
    let schema = || json!({"type": "object"});
    let quick = FunctionTool::new("quick", "Answers.", schema(), |_: Value, _| async {
        Ok(ToolOutput::from_text("ok"))
    });
    let fail = FunctionTool::new("fail", "Fails.", schema(), |_: Value, _| async {
        Err(ToolFailure::execution("on purpose"))
    });
    builder.tool(quick).tool(fail)
}

/// A toolbox of `quick`, `fail` and the tool `remote` of the server `far`, whose facts are in `facts`.
async fn start(telemetry: &Value) -> Inside {
    let workspace = Workspace::new();
    let facts = workspace.path().join("facts");
    let scenario = json!({"tools": [{"name": "remote", "behaves": "text"}], "facts": facts});
    let config = json!({
        "telemetry": telemetry,
        "tools": [{"name": "quick"}, {"name": "fail"}],
        "servers": {"far": {"command": Fixture::path(), "args": Fixture::stdio_args(&scenario)}},
    });
    workspace.write("haft.yaml", config.to_string());
    Inside::start(workspace, tools).await
}

async fn exporting(collector: &Collector) -> Inside {
    let headers = json!({"authorization": "Bearer secret"});
    let endpoint = format!("http://{}", collector.address);
    let service_name = "toolbox";
    start(&json!({
        "otlp_endpoint": endpoint, "otlp_headers": headers, "service_name": service_name,
    }))
    .await
}

/// The trace that the server was sent with each call.
fn upstream(inside: &Inside) -> Vec<Value> {
    let calls = messages(&inside.workspace.path().join("facts"), "tools/call");
    calls.iter().map(|call| call["params"]["_meta"]["traceparent"].clone()).collect()
}

/// The span lies between the caller's and the server's, with the attributes of the conventions.
#[tokio::test]
async fn a_call_is_a_span_between_its_caller_and_its_server() {
    let mut collector = Collector::start().await;
    let inside = exporting(&collector).await;
    let envelope = inside.call_within(Some(caller()), "remote").await;
    assert_eq!(envelope.status, Status::Success, "{:?}", envelope.error);
    inside.telemetry.end().await;
    let request = collector.next().await;
    assert_eq!(request.headers["authorization"], "Bearer secret");
    assert_eq!(request.resource["service.name"], "toolbox");
    let [span] = &request.spans[..] else { panic!("one span: {request:?}") };
    assert_eq!(
        (&*span.trace_id, span.parent_span_id.as_deref()),
        (TRACE, Some("b7ad6b7169203331"))
    );
    assert_eq!((span.trace_state.as_deref(), span.flags), (Some("rojo=1"), 0x301));
    assert_eq!((&*span.name, span.kind), ("execute_tool remote", 3));
    assert_eq!(span.status, collector::Status::default());
    assert_eq!(
        json!(span.attributes()),
        json!({
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "remote",
            "gen_ai.tool.type": "extension",
            "haft.caller": "key:me",
            "haft.execution_id": envelope.execution_id,
            "haft.outcome": "success",
            "haft.queued_ms": envelope.queued_ms,
            "haft.server": "far",
            "haft.source": "mcp",
            "mcp.method.name": "tools/call",
            "session.id": "s-1",
        })
    );
    assert_eq!(upstream(&inside), [json!(format!("00-{TRACE}-{}-01", span.span_id))]);
}

/// Each call without a trace begins one, independent of earlier spans; a failed one has the reason.
#[tokio::test]
async fn a_call_without_a_trace_begins_one() {
    let mut collector = Collector::start().await;
    let inside = exporting(&collector).await;
    inside.call_within(None, "fail").await;
    inside.call("quick", json!({})).await;
    inside.call("no_such_tool", json!({})).await;
    inside.telemetry.end().await;
    let spans = collector.spans(3).await;
    assert!(spans.iter().all(|span| span.parent_span_id.is_none() && span.flags == 0x101));
    assert!(spans[0].trace_id != spans[1].trace_id && spans[1].trace_id != spans[2].trace_id);
    let names: Vec<(&str, u8)> = spans.iter().map(|span| (&*span.name, span.kind)).collect();
    // An invented name is not suitable for grouping.
    assert_eq!(names, [("execute_tool fail", 1), ("execute_tool quick", 1), ("execute_tool", 1)]);
    let failed = |code: &str| collector::Status { code: Some(2), message: Some(code.to_owned()) };
    let statuses: Vec<_> = spans.iter().map(|span| span.status.clone()).collect();
    let fine = collector::Status::default();
    assert_eq!(statuses, [failed("ToolExecutionError"), fine, failed("UnknownTool")]);
    assert_eq!(spans[0].attributes()["error.type"], "ToolExecutionError");
    assert_eq!(spans[2].attributes()["gen_ai.tool.name"], "no_such_tool");
}

/// The caller chooses the name of a tool that does not exist, and may put a secret there.
#[tokio::test]
async fn a_span_holds_no_known_secret() {
    let mut collector = Collector::start().await;
    let inside = exporting(&collector).await;
    let own_key = format!("haft_admin_{}", "x".repeat(43));
    inside.call("tell_the_secret_now", json!({})).await;
    inside.call(&own_key, json!({})).await;
    inside.telemetry.end().await;
    let spans = collector.spans(2).await;
    let names: Vec<_> =
        spans.iter().map(|span| span.attributes()["gen_ai.tool.name"].clone()).collect();
    assert_eq!(names, ["tell_the_***_now", "***"]);
}

/// A trace that is not recorded gets no span, and the server still receives the trace.
#[tokio::test]
async fn a_trace_that_is_not_recorded_passes_through() {
    let mut collector = Collector::start().await;
    let inside = exporting(&collector).await;
    let unrecorded = PARENT.replace("-01", "-00");
    inside.call_within(TraceContext::parse(&unrecorded, None), "remote").await;
    inside.call_within(None, "quick").await;
    inside.telemetry.end().await;
    assert_eq!(collector.spans(1).await[0].name, "execute_tool quick");
    assert!(!collector.has_more());
    assert_eq!(upstream(&inside), [json!(unrecorded)]);
}

/// Without a collector the caller's own trace is passed on, and no call gets a new one.
#[tokio::test]
async fn without_a_collector_the_callers_trace_is_passed_on() {
    let inside = start(&json!({})).await;
    inside.call_within(Some(caller()), "remote").await;
    inside.call_within(None, "remote").await;
    assert_eq!(upstream(&inside), [json!(PARENT), Value::Null]);
    assert!(!inside.metrics().await.kinds.contains_key("haft_spans_dropped_total"));
}

/// An overloaded collector gets the same spans again, and none is lost.
#[tokio::test]
async fn spans_are_sent_again_where_that_may_help() {
    let mut collector = Collector::start().await;
    collector.answers([Answer::Status(503), Answer::Status(429)]);
    let inside = exporting(&collector).await;
    inside.call_within(None, "quick").await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(collector.next().await.spans[0].span_id.clone());
    }
    assert!(ids[0] == ids[1] && ids[1] == ids[2], "{ids:?}");
    inside.telemetry.end().await;
    assert_eq!(spans_counted(&inside).await, (1.0, 0.0));
}

/// Spans that a collector rejects are lost, counted, and not sent again; also if it rejects only a part.
#[tokio::test]
async fn what_a_collector_does_not_want_is_counted() {
    let mut collector = Collector::start().await;
    collector.answers([Answer::Status(400), Answer::Rejects(1)]);
    let inside = exporting(&collector).await;
    inside.call_within(None, "quick").await;
    collector.next().await;
    inside.call_within(None, "quick").await;
    inside.call_within(None, "quick").await;
    inside.telemetry.end().await;
    collector.spans(2).await;
    assert!(!collector.has_more());
    assert_eq!(spans_counted(&inside).await, (1.0, 2.0));
}

/// A collector that hangs costs spans and no call: the queue has a limit, and what does not fit is counted.
#[tokio::test]
async fn a_collector_that_hangs_holds_nothing_up() {
    let mut collector = Collector::start().await;
    collector.answers(vec![Answer::Nothing; 100]);
    let inside = exporting(&collector).await;
    inside.call_within(None, "quick").await;
    collector.next().await;
    let one_more = 10_000;
    for _ in 0..one_more {
        inside.telemetry.observe(&summary());
    }
    assert_eq!(inside.call_within(None, "quick").await.status, Status::Success);
    let (exported, dropped) = spans_counted(&inside).await;
    assert_eq!(exported, 0.0);
    assert!(dropped > 0.0 && dropped < f64::from(one_more), "{dropped}");
}

/// Over HTTP: the request's trace, a batch with a span for each call, and what is left is sent at the end.
/// The collector has to answer while the test waits for the process's end.
#[tokio::test(flavor = "multi_thread")]
async fn calls_over_http_are_traced() {
    let mut collector = Collector::start().await;
    let workspace = toolbox();
    let telemetry = format!("telemetry: {{otlp_endpoint: 'http://{}'}}\n", collector.address);
    let yaml = workspace.read("haft.yaml").unwrap() + &telemetry;
    workspace.write("haft.yaml", yaml);
    let served = Served::with_admin(workspace);
    let traced = [("traceparent", PARENT)];
    let body = r#"{"arguments": {"name": "you"}}"#;
    let call = served.send(Method::POST, "/api/v1/tools/greet/call", &traced, body).await;
    assert_eq!(call.status, 200, "{}", call.text);
    let body = r#"{"calls": [{"tool": "echo"}, {"tool": "fail"}]}"#;
    let batch = served.send(Method::POST, "/api/v1/calls", &traced, body).await;
    assert_eq!(batch.status, 200, "{}", batch.text);
    let finished = served.end();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let spans = collector.spans(3).await;
    let names: Vec<&str> = spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["execute_tool greet", "execute_tool echo", "execute_tool fail"]);
    let mut ids: Vec<&str> = spans.iter().map(|span| &*span.span_id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{spans:?}");
    for span in &spans {
        let above = span.parent_span_id.as_deref();
        assert_eq!((&*span.trace_id, above), (TRACE, Some("b7ad6b7169203331")));
        assert_eq!(span.attributes()["haft.caller"], "key:me");
    }
}

/// A collector that is not there fails no call, and is worth one WARNING, not one for each span.
#[tokio::test]
async fn a_missing_collector_is_reported_once() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let workspace = toolbox();
    let telemetry = format!("telemetry: {{otlp_endpoint: 'http://user:hidden@{gone}'}}\n");
    let yaml = workspace.read("haft.yaml").unwrap() + &telemetry;
    workspace.write("haft.yaml", yaml);
    let served = Served::with_admin(workspace);
    let call = async || served.post("/api/v1/tools/echo/call", "{}").await.status;
    assert_eq!(call().await, 200);
    let warned =
        |stderr: &str| stderr.matches("WARNING: the collector does not take spans").count();
    crate::until(|| warned(&served.stderr()) > 0).await;
    assert_eq!(call().await, 200);
    let finished = served.end();
    assert_eq!((finished.code, warned(&finished.stderr)), (0, 1), "{}", finished.stderr);
    assert!(!finished.stderr.contains("hidden"), "{}", finished.stderr);
}

async fn spans_counted(inside: &Inside) -> (f64, f64) {
    let page = inside.metrics().await;
    (page.value("haft_spans_exported_total"), page.value("haft_spans_dropped_total"))
}

fn summary() -> CallSummary<'static> {
    CallSummary {
        execution_id: "0198c2f4-0000-7000-8000-000000000000",
        tool: "quick",
        is_known: true,
        source: RecordSource::Function,
        server: None,
        caller: None,
        session: None,
        started: jiff::Timestamp::now(),
        queued: Duration::ZERO,
        duration: Duration::from_millis(1),
        status: Status::Success,
        code: None,
        trace: None,
    }
}
