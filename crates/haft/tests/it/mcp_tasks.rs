//! Calls that servers run as tasks, and results of kinds that were not negotiated.

use std::sync::{Arc, Mutex};

use haft::{Code, Refusal, ServerHandler, ToolCall};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::mcp_support::{Stage, answer, call, failure, transports};
use super::support::until;

const ERAS: [&str; 2] = ["legacy", "modern"];

/// A program whose user gives the same answer each time.
#[derive(Clone, Default)]
struct User(Arc<Mutex<usize>>);

impl ServerHandler for User {
    fn capabilities(&self, _: &str) -> Value {
        json!({"elicitation": {}})
    }

    fn elicit<'a>(
        &'a self,
        _: &'a str,
        _: &'a RawValue,
    ) -> haft::BoxFuture<'a, Result<Value, Refusal>> {
        *self.0.lock().unwrap() += 1;
        Box::pin(async { Ok(json!({"action": "accept", "content": {"name": "Ada"}})) })
    }
}

/// A result of a type that the protocol does not have, or that was not negotiated, fails its call alone.
#[tokio::test]
async fn a_result_of_an_unknown_type_is_a_protocol_error() {
    let stage = Stage::new();
    let task = json!({
        "resultType": "task", "taskId": "1", "status": "working", "createdAt": "2026-07-28T00:00:00Z",
        "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttlMs": null,
    });
    let scenario = json!({"era": "modern", "tools": [
        "text",
        {"name": "odd", "result": {"resultType": "banana", "content": []}},
        {"name": "handle", "result": task},
    ]});
    let runtime = stage.start([stage.stdio("one", scenario, json!({}))], json!({})).await;
    let odd = call(&runtime, "odd", json!({})).await;
    assert_eq!(
        failure(&odd),
        (
            Code::ProtocolError,
            "MCP error: server `one`: the result has the unknown `resultType` `banana`"
        )
    );
    let handle = call(&runtime, "handle", json!({})).await;
    assert_eq!(
        failure(&handle),
        (
            Code::ProtocolError,
            "MCP error: server `one`: the server answers `tools/call` with a task, which was not negotiated"
        )
    );
    assert!(call(&runtime, "text", json!({})).await.error.is_none());
    assert_eq!(stage.logged().len(), 3);
}

/// Over each transport of both eras, a call that becomes a task is polled until it ends, and is one call in the log.
#[tokio::test]
async fn a_task_is_followed_to_its_end() {
    for era in ERAS {
        let stage = Stage::new();
        let scenario = |tool: &str| {
            json!({"era": era, "tools": [{"name": tool, "behaves": "task",
                "execution": {"taskSupport": "required"}}]})
        };
        let (runtime, _running) = stage.start_everywhere(era, scenario).await;
        for (server, tool) in transports(era) {
            let done = answer(&runtime, tool, json!({"ms": 200})).await;
            assert_eq!(done["task"], "done", "{server} of the {era} era");
            assert!(!stage.messages(server, "tasks/get").is_empty());
            let failed = call(&runtime, tool, json!({"fail": true})).await;
            let (code, message) = failure(&failed);
            assert_eq!(code, Code::ToolExecutionError);
            assert!(message.contains("the task objects"), "{message}");
            assert!(stage.messages(server, "tasks/cancel").is_empty(), "nothing is left to cancel");
        }
        assert_eq!(stage.logged().len(), 2 * transports(era).count());
    }
}

/// A task that asks the user gets one answer, and ends with it.
#[tokio::test]
async fn a_task_may_ask_the_user() {
    for era in ERAS {
        let stage = Stage::new();
        let user = User::default();
        let server = stage.stdio("one", json!({"era": era, "tools": ["task"]}), json!({}));
        let builder = stage.builder([server], json!({})).server_handler(user.clone());
        let runtime = builder.start().await.unwrap();
        let done = answer(&runtime, "task", json!({"ask": true})).await;
        assert_eq!(done["answer"]["content"], json!({"name": "Ada"}), "{era}");
        assert_eq!(*user.0.lock().unwrap(), 1, "{era}");
    }
}

/// A call that times out or is cancelled cancels its task at the server.
#[tokio::test]
async fn a_task_that_nobody_waits_for_is_cancelled() {
    for era in ERAS {
        let stage = Stage::new();
        let tools = json!({"tools": [{"name": "task", "timeout": "500ms"}]});
        let server = stage.stdio("one", json!({"era": era, "tools": ["task"]}), json!({}));
        let runtime = stage.start([server], tools).await;
        let late = call(&runtime, "task", json!({"ms": 600_000})).await;
        assert_eq!(failure(&late).0, Code::Timeout, "{era}");
        until(|| stage.messages("one", "tasks/cancel").len() == 1).await;

        let cancel = CancellationToken::new();
        let call = ToolCall::new("task", &json!({"ms": 600_000})).cancelled_by(cancel.clone());
        let (cancelled, ()) = tokio::join!(runtime.call(call), async {
            until(|| stage.messages("one", "tools/call").len() == 2).await;
            until(|| stage.messages("one", "tasks/get").iter().any(|it| is_second(&stage, it)))
                .await;
            cancel.cancel();
        });
        assert_eq!(failure(&cancelled).0, Code::Cancelled, "{era}");
        until(|| stage.messages("one", "tasks/cancel").len() == 2).await;
    }
}

/// Returns true if a poll is about another task than the first cancelled one.
fn is_second(stage: &Stage, poll: &Value) -> bool {
    let cancelled = stage.messages("one", "tasks/cancel");
    cancelled.first().is_some_and(|first| first["params"]["taskId"] != poll["params"]["taskId"])
}
