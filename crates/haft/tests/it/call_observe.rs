//! Summaries of finished calls, for an embedding program.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft::record::RecordSource;
use haft::{CallSummary, Code, Runtime, Status, ToolCall, TraceContext};
use serde_json::json;

use super::mcp_support::Stage;
use super::support::{Bench, Held, empty, spawn, until};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The summary of one call.
#[derive(Debug, Clone, PartialEq)]
struct Heard {
    tool: String,
    is_known: bool,
    source: RecordSource,
    server: Option<String>,
    caller: Option<String>,
    status: Status,
    code: Option<Code>,
}

#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<Heard>>>);

impl Ear {
    fn hear(&self) -> impl Fn(&CallSummary<'_>) + Send + Sync + use<> {
        let heard = Arc::clone(&self.0);
        move |call| {
            heard.lock().unwrap().push(Heard {
                tool: call.tool.to_owned(),
                is_known: call.is_known,
                source: call.source,
                server: call.server.map(ToOwned::to_owned),
                caller: call.caller.map(ToOwned::to_owned),
                status: call.status,
                code: call.code,
            });
        }
    }

    fn all(&self) -> Vec<Heard> {
        self.0.lock().unwrap().clone()
    }
}

/// One call, one summary: successes, failures of every kind, and unknown names.
#[tokio::test]
async fn every_call_is_observed_once() {
    let stage = Stage::new();
    let ear = Ear::default();
    let builder = stage.builder([stage.plain("one")], json!({})).observe(ear.hear());
    let runtime = builder.start().await.unwrap();
    for tool in ["text", "fail", "nothing"] {
        let envelope = runtime.call(empty(tool).caller("me")).await;
        assert_eq!(ear.all().last().unwrap().tool, envelope.tool, "before the answer is there");
    }
    let heard = |tool: &str, code: Option<Code>| Heard {
        tool: tool.to_owned(),
        is_known: true,
        source: RecordSource::Mcp,
        server: Some("one".to_owned()),
        caller: Some("me".to_owned()),
        status: if code.is_some() { Status::Error } else { Status::Success },
        code,
    };
    let nothing = Heard {
        is_known: false,
        source: RecordSource::Unknown,
        server: None,
        ..heard("nothing", Some(Code::UnknownTool))
    };
    let expected = [heard("text", None), heard("fail", Some(Code::ToolExecutionError)), nothing];
    assert_eq!(ear.all(), expected);
}

/// The rest of a summary agrees with answer and entry: id, times, session, trace.
#[tokio::test]
async fn a_summary_agrees_with_answer_and_entry() {
    let (bench, held) = (Bench::new(), Held::new());
    let config = bench.config("tools: [{name: held, timeout: 20s, max_instances: 1}]");
    let heard: Arc<Mutex<Vec<_>>> = Arc::default();
    let hear = Arc::clone(&heard);
    let builder = Runtime::builder(config).tool(held.tool("held")).observe(move |call| {
        let trace = call.trace.map(|trace| trace.traceparent().to_owned());
        let session = call.session.map(ToOwned::to_owned);
        let id = call.execution_id.to_owned();
        hear.lock().unwrap().push((id, call.started, call.queued, call.duration, session, trace));
    });
    let runtime = builder.start().await.unwrap();
    held.release.add_permits(1);
    let trace = TraceContext::parse(PARENT, None).unwrap();
    let envelope = runtime.call(empty("held").session("s1").trace_context(trace)).await;
    let (id, started, queued, duration, session, trace) = heard.lock().unwrap().remove(0);
    let entry = bench.logged().remove(0);
    assert_eq!((&id, &id), (&envelope.execution_id, &entry.execution_id));
    assert_eq!(started.as_millisecond(), entry.timestamp.as_millisecond());
    assert_eq!(duration.as_millis(), u128::from(envelope.duration_ms));
    assert_eq!(queued.as_millis(), u128::from(envelope.queued_ms));
    assert_eq!((session.as_deref(), trace.as_deref()), (Some("s1"), Some(PARENT)));
}

/// A future that is dropped is a call that is over, too: while it runs, while it waits.
#[tokio::test]
async fn calls_that_were_dropped_are_heard_of() {
    let (bench, held) = (Bench::new(), Held::new());
    let ear = Ear::default();
    let config = bench.config("tools: [{name: held, timeout: 20s, max_instances: 1}]");
    let builder = Runtime::builder(config).tool(held.tool("held")).observe(ear.hear());
    let runtime = builder.start().await.unwrap();
    let mut calls = spawn(&runtime, [empty("held"), empty("held")]);
    until(|| runtime.load_stats().waiting == 1).await;
    calls.abort_all();
    while calls.join_next().await.is_some() {}
    let codes: Vec<_> = ear.all().into_iter().map(|it| (it.tool, it.code)).collect();
    let gone = || ("held".to_owned(), Some(Code::Cancelled));
    assert_eq!(codes, [gone(), gone()]);
    runtime.shutdown(Duration::from_secs(1)).await;
    assert_eq!(bench.logged().len(), 2);
}

/// A dry run refuses every call, and the observer receives that; a panic in it breaks nothing.
#[tokio::test]
async fn an_observer_that_panics_is_no_fault_of_the_call() {
    let (bench, held) = (Bench::new(), Held::new());
    held.release.add_permits(1);
    let config = || bench.config("tools: [{name: held, timeout: 20s, max_instances: 1}]");
    let builder = Runtime::builder(config()).tool(held.tool("held"));
    let runtime = builder.observe(|_| panic!("as asked")).start().await.unwrap();
    let envelope = runtime.call(ToolCall::new("held", &json!({}))).await;
    assert!(envelope.error.is_none(), "{envelope:?}");
    assert_eq!(bench.logged().len(), 1);
    let ear = Ear::default();
    let looking = Runtime::builder(config()).tool(held.tool("held")).dry_run();
    let looking = looking.observe(ear.hear()).start().await.unwrap();
    looking.call(empty("held")).await;
    assert_eq!(ear.all()[0].code, Some(Code::ServiceUnavailable));
}
