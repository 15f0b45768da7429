//! Limits that really limit, queues that are bounded, calls that can be given up.

use std::time::{Duration, Instant};

use haft::{Code, Runtime, Shutdown, Status, ToolCall};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, Held, empty, spawn, until};

async fn start(bench: &Bench, yaml: &str, tools: &[(&str, &Held)]) -> Runtime {
    let mut builder = Runtime::builder(bench.config(yaml));
    for (name, held) in tools {
        builder = builder.tool(held.tool(name));
    }
    builder.start().await.unwrap()
}

/// Proves S0-7.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_toolbox_runs_at_most_max_concurrent_calls() {
    let (bench, held) = (Bench::new(), Held::new());
    let yaml = "defaults: {max_concurrent: 10}\n\
                tools: [{name: a, max_instances: 30}, {name: b, max_instances: 30}]";
    let runtime = start(&bench, yaml, &[("a", &held), ("b", &held)]).await;
    let calls = (0..30).map(|at| empty(if at % 2 == 0 { "a" } else { "b" }));
    let running = spawn(&runtime, calls);
    held.until_running(10).await;
    held.release.add_permits(30);
    let answers = running.join_all().await;
    assert_eq!(answers.len(), 30);
    assert!(answers.iter().all(|answer| answer.status == Status::Success));
    assert_eq!(held.most(), 10);
}

/// Proves S0-8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_tool_runs_at_most_max_instances_calls() {
    let (bench, held, other) = (Bench::new(), Held::new(), Held::new());
    let yaml = "tools: [{name: a, max_instances: 2}, {name: b, max_instances: 2}]";
    let runtime = start(&bench, yaml, &[("a", &held), ("b", &other)]).await;
    let running = spawn(&runtime, (0..6).map(|_| empty("a")));
    held.until_running(2).await;
    // Calls that wait for one tool take nothing from another.
    let others = spawn(&runtime, [empty("b")]);
    other.until_running(1).await;
    other.release.add_permits(1);
    others.join_all().await;
    held.release.add_permits(6);
    running.join_all().await;
    assert_eq!((held.most(), held.total.load(std::sync::atomic::Ordering::SeqCst)), (2, 6));
}

/// Proves X-9, S2-EC-11, S2-Q-05.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_is_not_parallel_capable_never_overlaps() {
    let (bench, alone, together) = (Bench::new(), Held::new(), Held::new());
    let yaml = "tools: [{name: alone, max_instances: 5, parallel_capable: false}, {name: default}, \
                {name: together, parallel_capable: true}]";
    let runtime =
        start(&bench, yaml, &[("alone", &alone), ("default", &alone), ("together", &together)])
            .await;
    let running = spawn(&runtime, (0..3).map(|_| empty("together")));
    together.until_running(3).await;
    together.release.add_permits(3);
    running.join_all().await;
    for tool in ["alone", "default"] {
        let running = spawn(&runtime, (0..3).map(|_| empty(tool)));
        alone.release.add_permits(3);
        running.join_all().await;
        assert_eq!(alone.most(), 1, "{tool}");
    }
    let info = runtime.tool("alone").unwrap();
    assert_eq!(info.setting("max_instances"), Some(&json!(1)));
}

/// Proves X-10: waiting is counted apart from running and does not eat up the timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_over_the_limit_waits_and_says_so() {
    let (bench, held) = (Bench::new(), Held::new());
    let yaml = "tools: [{name: a, max_instances: 1, timeout: 10s}]";
    let runtime = start(&bench, yaml, &[("a", &held)]).await;
    let first = spawn(&runtime, [empty("a")]);
    held.until_running(1).await;
    let began = Instant::now();
    let mut second = std::pin::pin!(runtime.call(empty("a")));
    // Once polled, the call is in the queue; from then on its wait is measured.
    assert!(tokio::time::timeout(Duration::ZERO, &mut second).await.is_err());
    let queued = Instant::now();
    until(|| queued.elapsed() >= Duration::from_millis(200)).await;
    held.release.add_permits(2);
    first.join_all().await;
    let answer = second.await;
    assert_eq!(answer.status, Status::Success);
    let whole = u64::try_from(began.elapsed().as_millis()).unwrap();
    let (queued_ms, duration_ms) = (answer.queued_ms, answer.duration_ms);
    assert!(queued_ms >= 200, "{answer:?}");
    assert!(queued_ms + duration_ms <= whole, "no time counts twice: {answer:?} of {whole}");
    let logged = bench.logged();
    let entry = logged.last().unwrap();
    assert_eq!((entry.queued_ms, entry.duration_ms), (queued_ms, duration_ms));
}

/// Proves X-10: a call that gives up while it waits has waited, and has not run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_gives_up_in_the_queue_has_only_waited() {
    let (bench, held) = (Bench::new(), Held::new());
    let runtime = start(&bench, "tools: [{name: a, max_instances: 1}]", &[("a", &held)]).await;
    let first = spawn(&runtime, [empty("a")]);
    held.until_running(1).await;
    let cancel = CancellationToken::new();
    let began = Instant::now();
    let mut second = std::pin::pin!(runtime.call(empty("a").cancelled_by(cancel.clone())));
    assert!(tokio::time::timeout(Duration::from_millis(200), &mut second).await.is_err());
    cancel.cancel();
    let answer = second.await;
    let whole = u64::try_from(began.elapsed().as_millis()).unwrap();
    assert_eq!(answer.error.as_ref().unwrap().code, Code::Cancelled);
    assert!(
        answer.queued_ms >= 150 && answer.queued_ms + answer.duration_ms <= whole,
        "{answer:?}"
    );
    held.release.add_permits(1);
    first.join_all().await;
}

/// Proves X-10 (`on_limit: reject`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reject_answers_busy_at_once() {
    let (bench, held) = (Bench::new(), Held::new());
    let yaml = "defaults: {max_concurrent: 2}\n\
                tools: [{name: a, max_instances: 1, on_limit: reject}, \
                {name: b, max_instances: 5, on_limit: reject}]";
    let runtime = start(&bench, yaml, &[("a", &held), ("b", &held)]).await;
    let running = spawn(&runtime, [empty("a")]);
    held.until_running(1).await;
    let error = runtime.call(empty("a")).await.error.unwrap();
    assert_eq!(error.code, Code::Busy);
    assert_eq!(error.message, "`a` is busy: 1 of its calls are running, the limit");
    let more = spawn(&runtime, [empty("b")]);
    held.until_running(2).await;
    let error = runtime.call(empty("b")).await.error.unwrap();
    assert_eq!(error.message, "`b` is busy: 2 calls are running in the toolbox, the limit");
    assert!(error.remedy.unwrap().to_string().contains("max_concurrent"));
    held.release.add_permits(2);
    running.join_all().await;
    more.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_queue_is_bounded_in_length_and_in_time() {
    let (bench, held) = (Bench::new(), Held::new());
    let yaml =
        "defaults: {queue_max: 2, queue_timeout: 50ms}\ntools: [{name: a, max_instances: 1}]";
    let runtime = start(&bench, yaml, &[("a", &held)]).await;
    let running = spawn(&runtime, [empty("a")]);
    held.until_running(1).await;
    let waiting = spawn(&runtime, (0..20).map(|_| empty("a")));
    let messages: Vec<String> =
        waiting.join_all().await.into_iter().map(|answer| answer.error.unwrap().message).collect();
    let full = "`a` is busy: 2 calls are waiting for it already, the limit";
    let late = "`a` is busy: no slot became free within 50ms";
    assert_eq!(messages.iter().filter(|message| *message == full).count(), 18, "{messages:?}");
    assert_eq!(messages.iter().filter(|message| *message == late).count(), 2, "{messages:?}");
    held.release.add_permits(1);
    running.join_all().await;
    assert_eq!(bench.logged().len(), 21);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_can_be_cancelled_while_it_waits_and_while_it_runs() {
    let (bench, held) = (Bench::new(), Held::new());
    let runtime = start(&bench, "tools: [{name: a, max_instances: 1}]", &[("a", &held)]).await;
    let (one, two) = (CancellationToken::new(), CancellationToken::new());
    let running = spawn(&runtime, [empty("a").cancelled_by(one.clone())]);
    held.until_running(1).await;
    let waiting = spawn(&runtime, [empty("a").cancelled_by(two.clone())]);
    two.cancel();
    let answer = waiting.join_all().await.remove(0);
    assert_eq!(answer.error.unwrap().code, Code::Cancelled);
    one.cancel();
    let answer = running.join_all().await.remove(0);
    assert_eq!(answer.error.unwrap().code, Code::Cancelled);
    held.until_running(0).await;
    // The slot is free again.
    held.release.add_permits(1);
    assert_eq!(runtime.call(empty("a")).await.status, Status::Success);
    assert_eq!(bench.logged().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_goes_away_leaves_one_entry_and_no_work() {
    let (bench, held) = (Bench::new(), Held::new());
    let runtime = start(&bench, "tools: [{name: a}]", &[("a", &held)]).await;
    let mut calls = spawn(&runtime, [empty("a").session("s1")]);
    held.until_running(1).await;
    calls.shutdown().await;
    held.until_running(0).await;
    runtime.shutdown(Duration::from_secs(5)).await;
    let logged = bench.logged();
    assert_eq!(logged.len(), 1);
    assert_eq!(logged[0].error.as_ref().unwrap().code, Code::Cancelled);
    assert_eq!(logged[0].session.as_deref(), Some("s1"));
}

/// Proves S2-FR-013: parallel only where allowed, answers in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_runs_in_parallel_only_what_may() {
    let (bench, alone, together) = (Bench::new(), Held::new(), Held::new());
    let yaml =
        "tools: [{name: alone}, {name: also_alone}, {name: together, parallel_capable: true}]";
    let tools = [("alone", &alone), ("also_alone", &alone), ("together", &together)];
    let runtime = start(&bench, yaml, &tools).await;
    let names = ["together", "together", "alone", "also_alone", "missing", "together"];
    let batch = {
        let runtime = runtime.clone();
        let calls: Vec<ToolCall> = names.iter().map(|name| empty(name)).collect();
        tokio::task::JoinSet::from_iter([async move { runtime.call_batch(calls).await }])
    };
    together.until_running(2).await;
    assert_eq!(alone.most(), 0);
    together.release.add_permits(2);
    alone.until_running(1).await;
    alone.release.add_permits(2);
    together.until_running(1).await;
    together.release.add_permits(1);
    let answers = batch.join_all().await.remove(0);
    assert_eq!(answers.iter().map(|answer| answer.tool.as_str()).collect::<Vec<_>>(), names);
    assert_eq!((alone.most(), together.most()), (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_lets_calls_finish_then_cuts_them_off() {
    let (bench, held) = (Bench::new(), Held::new());
    let runtime = start(&bench, "tools: [{name: a, max_instances: 2}]", &[("a", &held)]).await;
    let running = spawn(&runtime, [empty("a"), empty("a")]);
    held.until_running(2).await;
    held.release.add_permits(1);
    assert_eq!(runtime.shutdown(Duration::from_millis(50)).await, Shutdown::Cut);
    let mut answers = running.join_all().await;
    answers.sort_by_key(|answer| answer.error.is_some());
    assert_eq!(answers[0].status, Status::Success);
    assert_eq!(answers[1].error.as_ref().unwrap().code, Code::Stopping);
    let late = runtime.call(empty("a")).await.error.unwrap();
    assert_eq!(late.code, Code::Stopping);
    until(|| bench.logged().len() == 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_configuration_is_applied_in_one_step_and_calls_in_flight_go_on() {
    let (bench, held) = (Bench::new(), Held::new());
    let runtime = start(&bench, "tools: [{name: a, max_instances: 3}]", &[("a", &held)]).await;
    let running = spawn(&runtime, (0..3).map(|_| empty("a")));
    held.until_running(3).await;
    runtime.apply(bench.config("tools: [{name: a, max_instances: 1}]")).await.unwrap();
    assert_eq!(runtime.tool("a").unwrap().setting("max_instances"), Some(&json!(1)));
    let more = spawn(&runtime, (0..2).map(|_| empty("a")));
    // Calls beyond the new limit finish; no new one starts until the limit holds.
    held.release.add_permits(2);
    held.until_running(1).await;
    held.release.add_permits(3);
    running.join_all().await;
    more.join_all().await;
    assert_eq!(held.most(), 3);
    let refused = runtime.apply(bench.config("tools: []")).await.unwrap_err();
    assert!(refused.to_string().starts_with("Tool 'a' (local tool) is not configured"));
    held.release.add_permits(1);
    assert_eq!(runtime.call(empty("a")).await.status, Status::Success);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_at_once_all_end() {
    let (bench, held) = (Bench::new(), Held::new());
    let yaml = "defaults: {queue_max: 100}\ntools: [{name: a, max_instances: 4}]";
    let runtime = start(&bench, yaml, &[("a", &held)]).await;
    held.release.add_permits(10_000);
    let answers = spawn(&runtime, (0..10_000).map(|_| empty("a"))).join_all().await;
    let ok = answers.iter().filter(|answer| answer.status == Status::Success).count();
    let busy = answers
        .iter()
        .filter(|answer| answer.error.as_ref().is_some_and(|error| error.code == Code::Busy))
        .count();
    assert_eq!(ok + busy, 10_000);
    assert!(held.most() <= 4);
    assert_eq!(bench.logged().len(), 10_000);
}
