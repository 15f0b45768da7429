//! The calls in flight: their list, and their cancellation from outside.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use haft::{CallState, Code, RunningCall, Runtime, ToolCall};
use serde_json::json;
use testkit::fixture::Transport;
use tokio::sync::oneshot;

use super::mcp_support::{Stage, failure};
use super::support::{Bench, Held, empty, spawn, until};

const LIMITED: &str = "tools: [{name: held, timeout: 20s, max_instances: 1}]";

/// A toolbox with one tool that runs one call at a time, each until it is released.
async fn toolbox(bench: &Bench, held: &Held) -> Runtime {
    Runtime::builder(bench.config(LIMITED)).tool(held.tool("held")).start().await.unwrap()
}

fn with_state(runtime: &Runtime, state: CallState) -> Vec<RunningCall> {
    runtime.running().into_iter().filter(|call| call.state == state).collect()
}

/// Proves X-10: who runs, who waits and since when can be seen, in the order of the queue.
#[tokio::test]
async fn calls_in_flight_are_listed_with_who_waits() {
    let (bench, held) = (Bench::new(), Held::new());
    let runtime = toolbox(&bench, &held).await;
    assert_eq!(runtime.running(), []);
    let first = ToolCall::new("held", &json!({})).caller("me").session("s1");
    let mut calls = spawn(&runtime, [first]);
    held.until_running(1).await;
    for caller in ["second", "third"] {
        let runtime = runtime.clone();
        let call = empty("held").caller(caller);
        let count = runtime.running().len();
        calls.spawn({
            let runtime = runtime.clone();
            async move { runtime.call(call).await }
        });
        until(|| runtime.running().len() == count + 1).await;
    }
    let seen = runtime.running();
    let short: Vec<_> = seen.iter().map(|it| (it.caller.as_deref(), it.state)).collect();
    let expected = [
        (Some("me"), CallState::Running),
        (Some("second"), CallState::Waiting),
        (Some("third"), CallState::Waiting),
    ];
    assert_eq!(short, expected);
    assert_eq!((seen[0].tool.as_str(), seen[0].session.as_deref()), ("held", Some("s1")));
    assert!(seen.windows(2).all(|pair| pair[0].started <= pair[1].started), "{seen:?}");
    let shown = serde_json::to_value(&seen[0]).unwrap();
    assert_eq!(shown["state"], json!("running"));
    held.release.add_permits(3);
    let ids: Vec<String> =
        calls.join_all().await.into_iter().map(|envelope| envelope.execution_id).collect();
    assert!(seen.iter().all(|call| ids.contains(&call.execution_id)));
    assert_eq!(runtime.running(), [], "whoever has the answer is off the list");
}

/// A call that runs and one that waits end as `Cancelled`, each with its one entry; others continue.
#[tokio::test]
async fn a_call_is_cancelled_by_its_id() {
    let (bench, held) = (Bench::new(), Held::new());
    let runtime = toolbox(&bench, &held).await;
    let mut calls = spawn(&runtime, (0..3).map(|_| empty("held")));
    until(|| with_state(&runtime, CallState::Waiting).len() == 2).await;
    held.until_running(1).await;
    let running = with_state(&runtime, CallState::Running).remove(0);
    let waiting = with_state(&runtime, CallState::Waiting).remove(1);
    for call in [&waiting, &running] {
        assert!(runtime.cancel(&call.execution_id));
        let envelope = calls.join_next().await.unwrap().unwrap();
        assert_eq!(envelope.execution_id, call.execution_id);
        assert_eq!(failure(&envelope).0, Code::Cancelled);
        assert!(!runtime.cancel(&call.execution_id), "it is over");
    }
    held.release.add_permits(1);
    let left = calls.join_next().await.unwrap().unwrap();
    assert!(left.error.is_none(), "{left:?}");
    let logged: Vec<_> = bench
        .logged()
        .into_iter()
        .map(|entry| (entry.execution_id, entry.error.map(|error| error.code)))
        .collect();
    let expected = [
        (waiting.execution_id, Some(Code::Cancelled)),
        (running.execution_id, Some(Code::Cancelled)),
        (left.execution_id, None),
    ];
    assert_eq!(logged, expected);
    for nobody in ["", "no id", "0198c2f4-0000-7000-8000-000000000000"] {
        assert!(!runtime.cancel(nobody), "{nobody}");
    }
}

/// The id comes first, is the one of answer and entry, and is enough to end the call.
#[tokio::test]
async fn the_id_is_known_before_the_end() {
    let (bench, held) = (Bench::new(), Held::new());
    let runtime = toolbox(&bench, &held).await;
    let (tell, told) = oneshot::channel();
    let tell = Mutex::new(Some(tell));
    let listening = runtime.clone();
    let call = empty("held").on_start(move |id| {
        assert_eq!(listening.running()[0].execution_id, id, "it is listed by then");
        tell.lock().unwrap().take().unwrap().send(id.to_owned()).unwrap();
    });
    let mut calls = spawn(&runtime, [call]);
    let id = told.await.unwrap();
    assert!(runtime.cancel(&id));
    let envelope = calls.join_next().await.unwrap().unwrap();
    assert_eq!((envelope.execution_id.as_str(), failure(&envelope).0), (&*id, Code::Cancelled));
    assert_eq!(bench.logged()[0].execution_id, id);
}

/// Every call has an id, also one that fails; a listener that panics breaks nothing.
#[tokio::test]
async fn a_listener_that_panics_is_no_fault_of_the_call() {
    let (bench, held) = (Bench::new(), Held::new());
    let runtime = toolbox(&bench, &held).await;
    held.release.add_permits(1);
    let envelope = runtime.call(empty("held").on_start(|_| panic!("as asked"))).await;
    assert!(envelope.error.is_none(), "{envelope:?}");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&heard);
    let call = empty("nope").on_start(move |id| hear.lock().unwrap().push(id.to_owned()));
    let unknown = runtime.call(call).await;
    assert_eq!(*heard.lock().unwrap(), [unknown.execution_id]);
}

/// However a call ends, the list does not keep it.
#[tokio::test]
async fn a_call_that_is_gone_is_not_listed() {
    let (bench, held) = (Bench::new(), Held::new());
    let runtime = toolbox(&bench, &held).await;
    let mut calls = spawn(&runtime, [empty("held")]);
    held.until_running(1).await;
    calls.abort_all();
    calls.join_next().await.unwrap().unwrap_err();
    assert_eq!(runtime.running(), [], "dropped");
    runtime.call(empty("nope")).await;
    assert_eq!(runtime.running(), [], "refused");
    let calls = spawn(&runtime, [empty("held")]);
    held.until_running(1).await;
    runtime.shutdown(Duration::ZERO).await;
    assert_eq!(failure(&calls.join_all().await[0]).0, Code::Stopping);
    assert_eq!(runtime.running(), [], "cut off");
}

/// The server receives the cancellation, over stdio and over HTTP.
#[tokio::test]
async fn a_server_receives_the_cancellation() {
    let stage = Stage::new();
    let near = stage.stdio("near", json!({"tools": ["hang"]}), json!({}));
    let far = json!({"tools": [{"name": "hang_far", "behaves": "hang"}]});
    let (_far, far) = stage.remote("far", Transport::Http, far, json!({}));
    let runtime = stage.start([near, far], json!({})).await;
    for (server, tool) in [("near", "hang"), ("far", "hang_far")] {
        let mut calls = spawn(&runtime, [empty(tool)]);
        until(|| stage.messages(server, "tools/call").len() == 1).await;
        let id = runtime.running()[0].execution_id.clone();
        assert!(runtime.cancel(&id));
        let envelope = calls.join_next().await.unwrap().unwrap();
        assert_eq!(failure(&envelope).0, Code::Cancelled);
        until(|| stage.messages(server, "notifications/cancelled").len() == 1).await;
        let cancelled = &stage.messages(server, "notifications/cancelled")[0];
        assert_eq!(
            cancelled["params"]["requestId"],
            stage.messages(server, "tools/call")[0]["id"],
            "{server}"
        );
    }
}
