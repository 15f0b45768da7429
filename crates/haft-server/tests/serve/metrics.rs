//! The figures at `/metrics`: S0-76 (`tool_usage`) and X-10 (how busy it is).
#![allow(clippy::float_cmp, reason = "these are counts, which are exact")]

use std::sync::Arc;
use std::time::Instant;

use haft::{FunctionTool, RuntimeBuilder, Status, ToolFailure, ToolOutput};
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::Fixture;
use tokio::sync::Semaphore;

use crate::inside::Inside;
use crate::page::Page;
use crate::served::{Served, toolbox};

const TOOLS: &str = "tools: [{name: quick, max_instances: 8}, {name: fail}, {name: slow}]\n";

fn schema() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false})
}

/// `quick` answers, `fail` fails, `slow` waits for a permit of `gate`.
fn tools(gate: &Arc<Semaphore>) -> impl FnOnce(RuntimeBuilder) -> RuntimeBuilder {
    let gate = Arc::clone(gate);
    move |builder| {
        let quick = FunctionTool::new("quick", "Answers.", schema(), |_: Value, _| async {
            Ok(ToolOutput::from_text("ok"))
        });
        let fail = FunctionTool::new("fail", "Fails.", schema(), |_: Value, _| async {
            Err(ToolFailure::execution("on purpose"))
        });
        let slow = FunctionTool::new("slow", "Waits.", schema(), move |_: Value, _| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok(ToolOutput::from_text("at last"))
            }
        });
        builder.tool(quick).tool(fail).tool(slow)
    }
}

async fn start(yaml: &str) -> (Inside, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let workspace = Workspace::with(&[("haft.yaml", &format!("{TOOLS}{yaml}"))]);
    (Inside::start(workspace, tools(&gate)).await, gate)
}

/// Proves S0-76: `tool_usage_count` rises by one for each call and `tool_usage_sum` by its duration, and no other
/// tool's counters change. An invented name counts as an outcome only.
#[tokio::test]
async fn each_call_counts_once_for_its_tool_and_its_outcome() {
    let (inside, _) = start("").await;
    let before = inside.metrics().await;
    assert_eq!(before.kinds["tool_usage"], "summary");
    assert_eq!(before.value("tool_usage_count{tool_name=\"quick\"}"), 0.0);
    let began = Instant::now();
    for n in 0..3 {
        assert_eq!(inside.call("quick", json!({"n": n})).await.status, Status::Success);
    }
    inside.call("quick", json!({"n": "not a number"})).await;
    inside.call("fail", json!({})).await;
    inside.call("invented_\"by\n{somebody}", json!({})).await;
    let all_took = began.elapsed().as_secs_f64();
    let after = inside.metrics().await;
    let rises = after.risen_since(&before);
    let rise = |series: &str| rises.get(series).copied().unwrap_or_default();
    let counts: Vec<(&str, f64)> = rises
        .iter()
        .filter(|(series, _)| series.contains("_count") || series.starts_with("haft_calls_total"))
        .map(|(series, rise)| (*series, *rise))
        .collect();
    assert_eq!(
        counts,
        [
            ("haft_call_duration_seconds_count", 6.0),
            ("haft_calls_total{outcome=\"ToolExecutionError\"}", 1.0),
            ("haft_calls_total{outcome=\"UnknownTool\"}", 1.0),
            ("haft_calls_total{outcome=\"ValidationError\"}", 1.0),
            ("haft_calls_total{outcome=\"success\"}", 3.0),
            ("haft_queue_wait_seconds_count", 6.0),
            ("haft_tool_call_duration_seconds_count{tool_name=\"fail\"}", 1.0),
            ("haft_tool_call_duration_seconds_count{tool_name=\"quick\"}", 4.0),
            ("haft_tool_queue_wait_seconds_count{tool_name=\"fail\"}", 1.0),
            ("haft_tool_queue_wait_seconds_count{tool_name=\"quick\"}", 4.0),
            ("tool_usage_count{tool_name=\"fail\"}", 1.0),
            ("tool_usage_count{tool_name=\"quick\"}", 4.0),
        ]
    );
    let sums =
        ["quick", "fail"].map(|tool| rise(&format!("tool_usage_sum{{tool_name=\"{tool}\"}}")));
    let whole = rise("haft_call_duration_seconds_sum");
    assert!(sums.iter().all(|sum| *sum > 0.0) && sums.iter().sum::<f64>() <= whole, "{rises:?}");
    assert!(whole <= all_took, "{whole} of {all_took}");
    assert!(!after.samples.keys().any(|series| series.contains("invented")), "{after:?}");
    assert_eq!(rise("haft_call_duration_seconds_bucket{le=\"+Inf\"}"), 6.0);
}

/// Proves X-10: what runs and what waits is visible, for the whole and for each tool, with the limits; and how long
/// calls waited, once they are over.
#[tokio::test]
async fn what_runs_and_what_waits_is_visible() {
    let (inside, gate) = start("defaults: {max_concurrent: 5}\n").await;
    let both =
        async { tokio::join!(inside.call("slow", json!({})), inside.call("slow", json!({}))) };
    let looking = async {
        loop {
            let page = inside.metrics().await;
            if page.value("haft_calls_waiting") == 1.0 {
                break page;
            }
        }
    };
    let (busy, _) = tokio::join!(
        async {
            let page = tokio::time::timeout(testkit::DEADLINE, looking).await.expect("one waits");
            gate.add_permits(2);
            page
        },
        both
    );
    let figures = |tool: &str| {
        ["in_flight", "waiting", "max_instances"]
            .map(|figure| busy.value(&format!("haft_tool_{figure}{{tool_name=\"{tool}\"}}")))
    };
    assert_eq!(figures("slow"), [1.0, 1.0, 1.0]);
    assert_eq!(figures("quick"), [0.0, 0.0, 8.0]);
    let whole = ["in_flight", "waiting", "max_concurrent"]
        .map(|figure| busy.value(&format!("haft_calls_{figure}")));
    assert_eq!(whole, [1.0, 1.0, 5.0]);
    let after = inside.metrics().await;
    assert_eq!(
        (after.value("haft_calls_in_flight"), after.value("haft_calls_waiting")),
        (0.0, 0.0)
    );
    assert!(after.value("haft_queue_wait_seconds_sum") > 0.0);
}

/// The state of servers, of the log and of the files.
#[tokio::test]
async fn what_is_wrong_is_visible() {
    let fixture = Fixture::path();
    let args: Vec<String> = Fixture::stdio_args(&json!({"tools": [{"name": "one"}]}));
    let servers = json!({
        "good": {"command": fixture, "args": args, "mode": "dynamic"},
        "bad": {"command": "/nowhere/at/all", "required": false},
        "off": {"command": "/nowhere/at/all", "disabled": true},
    });
    let (inside, _) = start(&format!("servers: {servers}\n")).await;
    let page = inside.metrics().await;
    let up = |server: &str, state: &str| {
        let labels = format!("{{server=\"{server}\",state=\"{state}\"}}");
        assert_eq!(page.value(&format!("haft_server_state{labels}")), 1.0);
        page.value(&format!("haft_server_up{{server=\"{server}\"}}"))
    };
    let states = [up("good", "ready"), up("bad", "unavailable"), up("off", "disabled")];
    assert_eq!(states, [1.0, 0.0, 0.0]);
    let log = ["up", "lag_seconds", "entries_kept", "entries_lost_total"]
        .map(|figure| page.value(&format!("haft_log_{figure}")));
    assert_eq!(log, [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(page.value("haft_reload_problem"), 0.0);
    assert!(page.value("process_start_time_seconds") > 0.0);
    let version = env!("CARGO_PKG_VERSION");
    assert!(page.value(&format!("haft_build_info{{version=\"{version}\"}}")) > 0.0);

    inside.workspace.write("haft.yaml", "tools: {");
    inside.live.reload().await.unwrap_err();
    assert!(inside.metrics().await.value("haft_reload_problem") > 0.0);
    // A tool that is gone loses its place at once, and keeps what was counted for a while.
    inside.call("one", json!({})).await;
    inside.workspace.write("haft.yaml", TOOLS);
    inside.live.reload().await.unwrap();
    let after = inside.metrics().await;
    assert_eq!(after.value("haft_reload_problem"), 0.0);
    let slots = "haft_tool_max_instances{tool_name=\"one\"}";
    assert!(page.samples.contains_key(slots) && !after.samples.contains_key(slots), "{after:?}");
    assert!(after.value("tool_usage_count{tool_name=\"one\"}") > 0.0);
}

/// S0-76 from outside: calls over HTTP count, each once.
#[tokio::test]
async fn calls_over_http_count() {
    let served = Served::with_admin(toolbox());
    let before = Page::parse(&served.get("/metrics").await.text);
    for tool in ["echo", "echo", "fail"] {
        let answer = served.post(&format!("/api/v1/tools/{tool}/call"), "{}").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let after = Page::parse(&served.get("/metrics").await.text);
    let rises = after.risen_since(&before);
    let of_tools = |suffix: &str| -> Vec<(&str, f64)> {
        let is_wanted = |series: &str| series.starts_with(&format!("tool_usage_{suffix}"));
        rises.iter().filter(|it| is_wanted(it.0)).map(|(series, rise)| (*series, *rise)).collect()
    };
    let counts = [
        ("tool_usage_count{tool_name=\"echo\"}", 2.0),
        ("tool_usage_count{tool_name=\"fail\"}", 1.0),
    ];
    assert_eq!(of_tools("count"), counts);
    assert_eq!(of_tools("sum").len(), 2, "{rises:?}");
}

/// The page is what Prometheus asks for, and like everything else it needs a key where there are keys.
#[tokio::test]
async fn the_page_needs_a_key_and_declares_its_format() {
    let served = Served::with_admin(toolbox());
    let page = served.get("/metrics").await;
    assert_eq!(page.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    assert!(page.text.contains("tool_usage_count{tool_name=\"greet\"} 0\n"), "{}", page.text);
    let without = crate::client().build().unwrap().get(format!("{}/metrics", served.url));
    assert_eq!(crate::served::answer(without).await.status, 401);
}
