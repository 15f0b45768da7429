//! Tasks: calls of the tool `task`, which is over after `ms` milliseconds. It asks the client's user if `ask` is set,
//! and fails if `fail` is set. The extension in the modern era, the core feature of 2025-11-25 in the legacy one.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::call::{Call, Outcome};
use crate::modern;
use crate::scenario::Era;

/// The extension of the modern era.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";
const POLL_MS: u64 = 50;
const TTL_MS: u64 = 60_000;
const CREATED_AT: &str = "2026-07-28T00:00:00Z";
/// The key of the only question of a task.
const QUESTION: &str = "name";

/// A call that became a task. Its state follows from the time.
#[derive(Debug, Clone)]
pub struct Task {
    id: String,
    ends: Instant,
    asks: bool,
    fails: bool,
    answer: Option<Value>,
    is_cancelled: bool,
}

impl Task {
    fn of(call: &Call) -> Self {
        Self {
            id: format!("task-{}-{}", std::process::id(), call.server.next()),
            ends: Instant::now() + Duration::from_millis(call.number("ms", 100)),
            asks: call.argument("ask") == true,
            fails: call.argument("fail") == true,
            answer: None,
            is_cancelled: false,
        }
    }

    fn status(&self) -> &'static str {
        if self.is_cancelled {
            "cancelled"
        } else if self.asks && self.answer.is_none() {
            "input_required"
        } else if Instant::now() < self.ends {
            "working"
        } else if self.fails {
            "failed"
        } else {
            "completed"
        }
    }

    fn result(&self) -> Value {
        let said = self.answer.clone().unwrap_or_default();
        let data = json!({ "task": "done", "answer": said });
        json!({ "content": [{ "type": "text", "text": data.to_string() }],
            "structuredContent": data })
    }

    fn shown(&self, era: Era) -> Value {
        let (ttl, interval) = match era {
            Era::Modern => ("ttlMs", "pollIntervalMs"),
            Era::Legacy | Era::Both => ("ttl", "pollInterval"),
        };
        json!({ "taskId": self.id, "status": self.status(), "createdAt": CREATED_AT,
            "lastUpdatedAt": CREATED_AT, ttl: TTL_MS, interval: POLL_MS })
    }
}

/// Declares the capabilities of a server with tasks.
pub fn declare(capabilities: &mut Value) {
    capabilities["extensions"] = json!({ EXTENSION: {} });
    capabilities["tasks"] = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
}

/// Runs the tool.
pub async fn run(call: &Call) -> Outcome {
    let task = Task::of(call);
    match call.era {
        Era::Modern if !modern::declares_extension(call, EXTENSION) => {
            tokio::time::sleep_until(task.ends.into()).await;
            Outcome::Result(task.result())
        }
        Era::Modern => {
            let mut shown = Task { asks: false, ..task.clone() }.shown(call.era);
            shown["resultType"] = json!("task");
            call.server.called_tasks.lock().push(task);
            Outcome::Result(shown)
        }
        Era::Legacy | Era::Both if call.params["task"].is_null() => {
            Outcome::failure(-32601, "the tool runs as a task only")
        }
        Era::Legacy | Era::Both => {
            let shown = json!({ "task": task.shown(call.era) });
            call.server.called_tasks.lock().push(task);
            Outcome::Result(shown)
        }
    }
}

/// Answers `tasks/get`, `tasks/update`, `tasks/cancel` and `tasks/result`.
pub async fn answer(call: &Call) -> Outcome {
    let modern = call.era == Era::Modern;
    if modern && !modern::declares_extension(call, EXTENSION) {
        return Outcome::failure(-32021, "the client does not declare the extension");
    }
    let Some(task) = find(call, |task| match call.method.as_str() {
        "tasks/update" => task.answer = call.params["inputResponses"].get(QUESTION).cloned(),
        "tasks/cancel" => task.is_cancelled = true,
        _ => {}
    }) else {
        return Outcome::failure(-32602, "Invalid params: no such task");
    };
    match (call.method.as_str(), modern) {
        ("tasks/update" | "tasks/cancel", true) => Outcome::Result(json!({})),
        ("tasks/result", false) => legacy_result(call, task).await,
        (_, true) => Outcome::Result(detailed(&task)),
        (_, false) => Outcome::Result(task.shown(call.era)),
    }
}

fn find(call: &Call, change: impl FnOnce(&mut Task)) -> Option<Task> {
    let mut tasks = call.server.called_tasks.lock();
    let task = tasks.iter_mut().find(|task| json!(task.id) == call.params["taskId"])?;
    change(task);
    Some(task.clone())
}

fn detailed(task: &Task) -> Value {
    let mut shown = task.shown(Era::Modern);
    match task.status() {
        "input_required" => {
            shown["inputRequests"] =
                json!({ QUESTION: { "method": "elicitation/create", "params": question() } });
        }
        "completed" => shown["result"] = task.result(),
        "failed" => shown["error"] = failure(),
        _ => {}
    }
    shown
}

/// The server of the legacy era asks while it is asked for the result.
async fn legacy_result(call: &Call, mut task: Task) -> Outcome {
    let related = json!({ RELATED: { "taskId": task.id } });
    if task.status() == "input_required" {
        let mut params = question();
        params["_meta"] = related.clone();
        let answer = call.peer.ask(&call.out, "elicitation/create", params).await;
        task.answer = Some(answer["result"].clone());
        find(call, |kept| kept.answer.clone_from(&task.answer));
    }
    tokio::time::sleep_until(task.ends.into()).await;
    if task.fails {
        return Outcome::Failure(failure());
    }
    let mut result = task.result();
    result["_meta"] = related;
    Outcome::Result(result)
}

fn question() -> Value {
    json!({
        "mode": "form",
        "message": "What is your name?",
        "requestedSchema": {
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
        },
    })
}

fn failure() -> Value {
    json!({ "code": -32050, "message": "the task objects" })
}
