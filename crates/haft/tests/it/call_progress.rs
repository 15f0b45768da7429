//! Progress of a running call: in order, for that call only, and nothing after its end.

use std::sync::{Arc, Mutex};

use haft::{CallContext, FunctionTool, Progress, Runtime, ToolCall, ToolOutput};
use serde_json::{Value, json};
use testkit::fixture::Transport;

use super::mcp_support::{Stage, answer, transports};
use super::support::{Bench, empty, spawn, until};

/// The reports of one call.
#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<Progress>>>);

impl Reports {
    fn hear(&self, call: ToolCall) -> ToolCall {
        let heard = self.clone();
        call.on_progress(move |progress| heard.0.lock().unwrap().push(progress))
    }

    fn all(&self) -> Vec<Progress> {
        self.0.lock().unwrap().clone()
    }
}

fn steps(count: u32) -> Vec<Progress> {
    let total = f64::from(count);
    let step = |n: u32| Progress::new(f64::from(n), total).message(format!("step {n}"));
    (1..=count).map(step).collect()
}

/// Proves S3-FR-028: every report of the server, in order, over every transport and in both eras.
#[tokio::test]
async fn a_servers_reports_arrive_in_order() {
    for era in ["legacy", "modern"] {
        let stage = Stage::new();
        let scenario = |tool: &str| {
            json!({"era": era, "tools": [{"name": tool, "behaves": "progress",
                "inputSchema": {"type": "object"}}]})
        };
        let (runtime, _running) = stage.start_everywhere(era, scenario).await;
        for (_, tool) in transports(era) {
            let reports = Reports::default();
            let call = reports.hear(ToolCall::new(tool, &json!({"steps": 20})));
            let envelope = runtime.call(call).await;
            assert!(envelope.error.is_none(), "{era} {tool}: {:?}", envelope.error);
            assert_eq!(reports.all(), steps(20), "{era} {tool}");
        }
    }
}

/// Two concurrent calls of one tool: each receives its own reports only.
#[tokio::test]
async fn each_call_receives_its_own_progress() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let counts = [3, 7, 12];
    let reports: Vec<Reports> = counts.iter().map(|_| Reports::default()).collect();
    let calls = counts.iter().zip(&reports).map(|(count, reports)| {
        reports.hear(ToolCall::new("progress", &json!({"steps": count, "every_ms": 1})))
    });
    spawn(&runtime, calls).join_all().await;
    for (count, reports) in counts.iter().zip(&reports) {
        assert_eq!(reports.all(), steps(*count));
    }
}

/// Reports of a server are redacted like all its output.
#[tokio::test]
async fn reports_hold_no_secret() {
    let stage = Stage::new();
    // The fixture reports `step 1` and so on, which is a secret here.
    let settings = json!({"headers": {"X-Key": "step 1"}});
    let (_running, server) = stage.remote("one", Transport::Http, json!({}), settings);
    let runtime = stage.start([server], json!({})).await;
    let reports = Reports::default();
    runtime.call(reports.hear(ToolCall::new("progress", &json!({"steps": 2})))).await;
    let messages: Vec<_> = reports.all().into_iter().map(|it| it.message.unwrap()).collect();
    assert_eq!(messages, ["***", "step 2"]);
}

/// Reports after the end of a call are dropped, however it ended.
#[tokio::test]
async fn nothing_is_reported_after_the_end() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let reports = Reports::default();
    let mut calls = spawn(&runtime, [reports.hear(ToolCall::new("drip", &json!({"every_ms": 1})))]);
    until(|| reports.all().len() >= 3).await;
    assert!(runtime.cancel(&runtime.running()[0].execution_id));
    calls.join_next().await.unwrap().unwrap();
    let count = reports.all().len();
    answer(&runtime, "progress", json!({"steps": 5})).await;
    assert_eq!(reports.all().len(), count);
}

/// A function reports through its context; later reports, after the answer, are dropped.
#[tokio::test]
async fn a_function_reports_through_its_context() {
    let bench = Bench::new();
    let kept: Arc<Mutex<Option<CallContext>>> = Arc::default();
    let keep = Arc::clone(&kept);
    let tool = FunctionTool::new("work", "Works.", json!({"type": "object"}), {
        move |_: Value, context: CallContext| {
            let keep = Arc::clone(&keep);
            async move {
                context.progress(Progress::new(1.0, None));
                context.progress(Progress::new(2.0, 2.0).message("done"));
                *keep.lock().unwrap() = Some(context);
                Ok(ToolOutput::from_text("done"))
            }
        }
    });
    let config = bench.config("tools: [{name: work, timeout: 20s}]");
    let runtime = Runtime::builder(config).tool(tool).start().await.unwrap();
    let reports = Reports::default();
    runtime.call(reports.hear(empty("work"))).await;
    kept.lock().unwrap().as_ref().unwrap().progress(Progress::new(3.0, None));
    let expected = [Progress::new(1.0, None), Progress::new(2.0, 2.0).message("done")];
    assert_eq!(reports.all(), expected);
    let shown = serde_json::to_value(&reports.all()[0]).unwrap();
    assert_eq!(shown, json!({"progress": 1.0}));
    // A listener is optional, and a failing one does not fail the call.
    assert!(runtime.call(empty("work")).await.error.is_none());
    let panicking = empty("work").on_progress(|_| panic!("as asked"));
    assert!(runtime.call(panicking).await.error.is_none());
}
