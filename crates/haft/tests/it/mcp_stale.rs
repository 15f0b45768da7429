//! Lists of tools that are too old: those of servers that start late, and those with a `ttlMs`.

use std::time::{Duration, SystemTime};

use haft::Runtime;
use serde_json::{Value, json};
use testkit::fixture::Fixture;

use super::mcp_support::{Server, Stage, answer, call, names};
use super::support::{until, until_async};

/// A server that starts late and has these tools. Its command line stays the same, whatever the tools are.
fn lazy(stage: &Stage, tools: &Value) -> Server {
    let scenario = json!({"facts": stage.facts("late"), "tools": tools});
    let script = stage.workspace.write("late.scenario", scenario.to_string());
    let server =
        json!({"command": Fixture::path(), "args": ["stdio", "--script", script], "start": "lazy"});
    ("late", server)
}

/// A run that asks for the complete list of tools.
async fn listed(stage: &Stage, tools: &Value) -> Vec<String> {
    let runtime = stage.start([lazy(stage, tools)], json!({})).await;
    runtime.discover().await;
    let names = names(&runtime);
    runtime.shutdown(Duration::ZERO).await;
    names
}

/// Sets the time at which the kept lists were read.
fn kept_since(stage: &Stage, age: Duration) {
    let folder = stage.path("state").join("servers");
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = std::fs::File::options().write(true).open(entry.unwrap().path()).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }
}

/// Proves S3-FR-013, S3-US4-1: a kept list is read again after a day, and the new one is kept.
#[tokio::test]
async fn a_kept_list_is_read_again_after_a_day() {
    let stage = Stage::new();
    let (old, new) = (json!(["echo"]), json!(["echo", "stats"]));
    assert_eq!(listed(&stage, &old).await, ["echo"]);
    kept_since(&stage, Duration::from_hours(23));
    assert_eq!(listed(&stage, &new).await, ["echo"], "kept");
    assert_eq!(stage.starts("late"), 1);
    kept_since(&stage, Duration::from_hours(25));
    assert_eq!(listed(&stage, &new).await, ["echo", "stats"], "read again");
    assert_eq!(stage.starts("late"), 2);
    assert_eq!(listed(&stage, &new).await, ["echo", "stats"], "kept again");
    assert_eq!(stage.starts("late"), 2);
}

/// Proves S3-FR-013: a server that cannot be reached keeps its old list.
#[tokio::test]
async fn an_old_list_of_a_server_that_is_gone_stays_in_use() {
    let stage = Stage::new();
    assert_eq!(listed(&stage, &json!(["echo"])).await, ["echo"]);
    kept_since(&stage, Duration::from_hours(25));
    let gone = json!({"start": {"exit": 3}, "tools": ["stats"]});
    let (name, server) = lazy(&stage, &json!([]));
    stage.workspace.write("late.scenario", gone.to_string());
    let runtime = stage.start([(name, server)], json!({})).await;
    runtime.discover().await;
    assert_eq!(names(&runtime), ["echo"]);
}

/// Proves S3-FR-013, S3-US4-1: a call refreshes the list, whatever its age, and so does an
/// inspection of the servers.
#[tokio::test]
async fn every_connection_reads_the_list_again() {
    let stage = Stage::new();
    assert_eq!(listed(&stage, &json!(["echo"])).await, ["echo"]);
    let runtime = stage.start([lazy(&stage, &json!(["echo", "stats"]))], json!({})).await;
    assert_eq!(answer(&runtime, "echo", json!({"n": 1})).await, json!({"n": 1}));
    until(|| names(&runtime) == ["echo", "stats"]).await;
    runtime.shutdown(Duration::ZERO).await;
    let config = stage.config([lazy(&stage, &json!(["echo", "text"]))], json!({}));
    let looking = Runtime::builder(config).inspect().keep_lists().start().await.unwrap();
    looking.shutdown(Duration::ZERO).await;
    assert_eq!(stage.starts("late"), 3);
    assert_eq!(
        listed(&stage, &json!([])).await,
        ["echo", "text"],
        "what the look has seen is kept"
    );
    assert_eq!(stage.starts("late"), 3);
}

/// Proves S3-FR-013 for the modern era: a list past its `ttlMs` is read again, a younger one is not.
#[tokio::test]
async fn a_list_past_its_ttl_is_read_again() {
    for (ttl_ms, is_read_again) in [(1, true), (3_600_000, false)] {
        let stage = Stage::new();
        let scenario = json!({"era": "modern", "tools": ["add_tool"], "ttl_ms": ttl_ms});
        let server = stage.stdio("one", scenario, json!({"protocol": "modern"}));
        let runtime = stage.start([server], json!({})).await;
        let added = json!({"name": "added", "quiet": true});
        let envelope = call(&runtime, "add_tool", added).await;
        assert!(envelope.error.is_none(), "{envelope:?}");
        if is_read_again {
            until_async(async || {
                runtime.discover().await;
                names(&runtime) == ["add_tool", "added"]
            })
            .await;
        } else {
            runtime.discover().await;
            assert_eq!(names(&runtime), ["add_tool"]);
            assert_eq!(stage.messages("one", "tools/list").len(), 1);
        }
        runtime.shutdown(Duration::ZERO).await;
    }
}
