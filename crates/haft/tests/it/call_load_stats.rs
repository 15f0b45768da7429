//! Load statistics of the toolbox.

use haft::{LoadStats, Runtime, ToolLoadStats};
use serde_json::json;

use super::support::{Bench, Held, empty, spawn, until};

fn tool(tool: &str, in_flight: u32, waiting: u32, max_instances: u32) -> ToolLoadStats {
    ToolLoadStats { tool: tool.to_owned(), in_flight, waiting, max_instances }
}

/// Proves X-10: running calls, waiting calls and limits, for the toolbox and each tool.
#[tokio::test]
async fn the_queues_can_be_seen() {
    let (bench, slow, other) = (Bench::new(), Held::new(), Held::new());
    let config = bench.config(
        "defaults: {max_concurrent: 3}\ntools: [{name: slow, timeout: 20s, max_instances: 2}, \
         {name: other, timeout: 20s, max_instances: 5}]",
    );
    let builder = Runtime::builder(config).tool(slow.tool("slow")).tool(other.tool("other"));
    let runtime = builder.start().await.unwrap();
    let idle = LoadStats {
        in_flight: 0,
        waiting: 0,
        max_concurrent: 3,
        tools: vec![tool("slow", 0, 0, 2), tool("other", 0, 0, 5)],
    };
    assert_eq!(runtime.load_stats(), idle);
    let slow_calls = spawn(&runtime, (0..6).map(|_| empty("slow")));
    slow.until_running(2).await;
    let other_calls = spawn(&runtime, (0..3).map(|_| empty("other")));
    other.until_running(1).await;
    let busy = LoadStats {
        in_flight: 3,
        // Four wait for `slow`, and two that have their slot of `other` for the toolbox.
        waiting: 6,
        max_concurrent: 3,
        tools: vec![tool("slow", 2, 4, 2), tool("other", 3, 0, 5)],
    };
    until(|| runtime.load_stats() == busy).await;
    let shown = serde_json::to_value(runtime.load_stats()).unwrap();
    assert_eq!(
        shown["tools"][0],
        json!({"tool": "slow", "in_flight": 2, "waiting": 4, "max_instances": 2})
    );
    slow.release.add_permits(6);
    other.release.add_permits(3);
    slow_calls.join_all().await;
    other_calls.join_all().await;
    assert_eq!(runtime.load_stats(), idle);
}

/// Proves X-10: a call that leaves the queue leaves the statistics too.
#[tokio::test]
async fn a_cancelled_wait_is_not_counted() {
    let (bench, held) = (Bench::new(), Held::new());
    let config = bench.config("tools: [{name: held, timeout: 20s, max_instances: 1}]");
    let runtime = Runtime::builder(config).tool(held.tool("held")).start().await.unwrap();
    let mut calls = spawn(&runtime, (0..3).map(|_| empty("held")));
    until(|| runtime.load_stats().waiting == 2).await;
    calls.abort_all();
    while calls.join_next().await.is_some() {}
    let load_stats = runtime.load_stats();
    assert_eq!((load_stats.in_flight, load_stats.waiting), (0, 0));
    assert_eq!(load_stats.tools, [tool("held", 0, 0, 1)]);
}
