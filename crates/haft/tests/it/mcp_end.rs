//! Shutdown: no process is left, however the toolbox ends.

use std::time::Duration;

use haft::{Code, Shutdown, ToolCall};
use serde_json::{Value, json};
use testkit::fixture::events;
use testkit::is_running;

use super::mcp_support::{Stage, answer, call, failure};
use super::support::{spawn, until};

async fn grandchild(runtime: &haft::Runtime) -> u32 {
    let pid = answer(runtime, "grandchild", json!({})).await["pid"].as_u64().unwrap();
    u32::try_from(pid).unwrap()
}

/// Proves S1-5, S3-FR-025: an orderly end closes the input, and the server ends by itself.
#[tokio::test]
async fn a_shutdown_lets_servers_end_by_themselves() {
    let stage = Stage::new();
    let runtime = stage
        .start(
            [stage.plain("one"), stage.stdio("two", json!({"tools": ["annotated"]}), json!({}))],
            json!({}),
        )
        .await;
    assert_eq!(runtime.shutdown(Duration::from_secs(1)).await, Shutdown::Clean);
    for server in ["one", "two"] {
        assert!(!is_running(stage.pids(server)[0]));
        let codes: Vec<Value> =
            events(&stage.facts(server), "exit").iter().map(|it| it["code"].clone()).collect();
        assert_eq!(codes, [json!(0)], "{server}");
        assert!(events(&stage.facts(server), "sigterm").is_empty(), "{server} was not pushed");
    }
    assert_eq!(failure(&call(&runtime, "echo", json!({})).await).0, Code::Stopping);
}

/// Proves S1-5, S3-FR-025: what a server started and set apart ends with it.
#[tokio::test]
async fn a_shutdown_ends_what_servers_started() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let pid = grandchild(&runtime).await;
    assert!(is_running(pid));
    runtime.shutdown(Duration::from_secs(1)).await;
    assert!(!is_running(pid));
}

/// Proves S1-14, S3-FR-025: dropping the runtime without a word ends the children too.
#[tokio::test]
async fn dropping_the_runtime_ends_every_child() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let pids = [stage.pids("one")[0], grandchild(&runtime).await];
    let clone = runtime.clone();
    drop(runtime);
    assert_eq!(answer(&clone, "echo", json!({})).await, json!({}), "a clone keeps it alive");
    drop(clone);
    for pid in pids {
        until(|| !is_running(pid)).await;
    }
}

/// Proves S3-FR-025: a panic in the program that holds the runtime leaves nothing behind.
#[test]
fn a_panic_leaves_no_process() {
    let stage = Stage::new();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        tokio.block_on(async {
            let _runtime = stage.start([stage.plain("one")], json!({})).await;
            panic!("as the test wants");
        });
    }));
    assert!(panicked.is_err());
    drop(tokio);
    let pid = stage.pids("one")[0];
    testkit::eventually("the server is gone", || (!is_running(pid)).then_some(()));
}

/// Proves S1-5: calls in flight are cancelled after the grace period, and the server is notified.
#[tokio::test]
async fn a_shutdown_cuts_calls_after_its_grace() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let mut hanging = spawn(&runtime, [ToolCall::new("hang", &json!({}))]);
    until(|| !stage.messages("one", "tools/call").is_empty()).await;
    assert_eq!(runtime.shutdown(Duration::from_millis(50)).await, Shutdown::Cut);
    let envelope = hanging.join_next().await.unwrap().unwrap();
    assert_eq!(failure(&envelope).0, Code::Stopping);
    assert!(!is_running(stage.pids("one")[0]));
}

/// Proves S1-5: a server that ignores the end of its input and SIGTERM is ended all the same.
#[tokio::test]
async fn a_stubborn_server_is_killed() {
    let stage = Stage::new();
    let scenario = json!({"ignore_eof": true, "ignore_sigterm": true, "tools": ["echo"]});
    let runtime = stage.start([stage.stdio("one", scenario, json!({}))], json!({})).await;
    runtime.shutdown(Duration::ZERO).await;
    assert!(!is_running(stage.pids("one")[0]));
    assert_eq!(events(&stage.facts("one"), "sigterm").len(), 1, "it was asked first");
}

/// Proves S1-28 and S2-FR-010 on the side of servers: a new configuration connects what is new,
/// keeps what is the same, and ends what is gone.
#[tokio::test]
async fn a_new_configuration_keeps_connections_it_does_not_touch() {
    let stage = Stage::new();
    let kept = || stage.stdio("kept", json!({"tools": ["stats"]}), json!({}));
    let gone = stage.stdio("gone", json!({"tools": ["text"]}), json!({}));
    let new = stage.stdio("new", json!({"tools": ["echo"]}), json!({}));
    let runtime = stage.start([kept(), gone], json!({})).await;
    runtime.apply(stage.config([kept(), new], json!({}))).await.unwrap();
    assert_eq!(super::mcp_support::names(&runtime), ["stats", "echo"]);
    assert_eq!(answer(&runtime, "echo", json!({})).await, json!({}));
    assert_eq!(stage.starts("kept"), 1);
    let pid = stage.pids("gone")[0];
    until(|| !is_running(pid)).await;
    let missing = json!({"command": "nope-not-here", "required": true});
    assert!(runtime.apply(stage.config([("bad", missing)], json!({}))).await.is_err());
    assert_eq!(
        answer(&runtime, "stats", json!({})).await["initialize"],
        json!(1),
        "the old one stays"
    );
}
