//! Tools that send notifications.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::text;
use crate::call::{Call, Outcome};
use crate::channel::Outbox;
use crate::lists::{ToolEntry, object};
use crate::modern;
use crate::scenario::Era;
use crate::server::notification;

/// The levels of log messages, lowest first.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// Largest number of notifications of a flood that are in flight.
const BURST: u64 = 256;

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// The place of a level among the eight.
pub fn level_index(level: &str) -> Option<u64> {
    (0..).zip(LEVELS).find(|(_, known)| *known == level).map(|(index, _)| index)
}

/// Sends a log message at every level from `lowest` on.
pub fn log_levels(out: &Outbox, lowest: u64) {
    for (_, level) in (0..).zip(LEVELS).filter(|(index, _): &(u64, _)| *index >= lowest) {
        let params =
            json!({ "level": level, "logger": "fixture", "data": format!("a {level} message") });
        out.message(notification("notifications/message", params));
    }
}

/// Logs at all levels the client wants; in the modern era only where the request asks for any.
pub fn log_all_levels(call: &Call) -> Outcome {
    let lowest = match call.era {
        Era::Modern => modern::log_level(call).and_then(level_index),
        Era::Legacy | Era::Both => Some(call.peer.log_level.load(Ordering::SeqCst)),
    };
    if let Some(lowest) = lowest {
        log_levels(&call.out, lowest);
    }
    Outcome::text("logged")
}

/// Reports progress in steps, then answers.
pub async fn progress(call: &Call) -> Outcome {
    let steps = call.number("steps", 3);
    for step in 1..=steps {
        report(call, step, Some(steps));
        tokio::time::sleep(Duration::from_millis(call.number("every_ms", 0))).await;
    }
    Outcome::text(format!("{steps} steps"))
}

/// Reports progress for ever, or sends other notifications if the caller wants no progress.
pub async fn drip(call: &Call) -> Outcome {
    for step in 1.. {
        let is_open = if call.params["_meta"]["progressToken"].is_null() {
            call.notify("notifications/fixture/noise", json!({ "n": step }))
        } else {
            report(call, step, None)
        };
        if !is_open {
            break;
        }
        tokio::time::sleep(Duration::from_millis(call.number("every_ms", 100))).await;
    }
    Outcome::Said
}

fn report(call: &Call, progress: u64, total: Option<u64>) -> bool {
    let token = &call.params["_meta"]["progressToken"];
    if token.is_null() {
        return true;
    }
    let mut params = json!({ "progressToken": token, "progress": progress,
        "message": format!("step {progress}") });
    if let Some(total) = total {
        params["total"] = json!(total);
    }
    call.notify("notifications/progress", params)
}

/// Sends many unknown notifications.
pub async fn flood(call: &Call) -> Outcome {
    let count = call.number("count", 1000);
    for n in 0..count {
        call.notify("notifications/fixture/noise", json!({ "n": n }));
        if n % BURST == 0 {
            if !call.out.flushed().await {
                return Outcome::Said;
            }
            tokio::time::sleep(Duration::from_millis(call.number("every_ms", 0))).await;
        }
    }
    if call.argument("hang") == &json!(true) {
        std::future::pending::<()>().await;
    }
    Outcome::text(format!("{count} notifications"))
}

/// Adds a tool and, unless `quiet`, announces it.
pub fn add_tool(call: &Call) -> Outcome {
    let name = text(call, "name", "added");
    call.server.tools.lock().push(ToolEntry::named(name));
    if call.argument("quiet") != true {
        call.server.announce(TOOLS_CHANGED, &json!({}));
    }
    Outcome::text(format!("added {name}"))
}

/// Removes a tool and notifies the clients.
pub fn remove_tool(call: &Call) -> Outcome {
    let name = text(call, "name", "added");
    call.server.tools.lock().retain(|tool| tool.shown.get("name") != Some(&json!(name)));
    call.server.announce(TOOLS_CHANGED, &json!({}));
    Outcome::text(format!("removed {name}"))
}

/// Adds a prompt and notifies the clients.
pub fn add_prompt(call: &Call) -> Outcome {
    let name = text(call, "name", "added");
    call.server.prompts.lock().push(object(json!({ "name": name })));
    call.server.announce("notifications/prompts/list_changed", &json!({}));
    Outcome::text(format!("added {name}"))
}

/// Notifies many times that the tools changed.
pub fn storm(call: &Call) -> Outcome {
    let count = call.number("count", 200);
    for _ in 0..count {
        call.server.announce(TOOLS_CHANGED, &json!({}));
    }
    Outcome::text(format!("{count} notices"))
}

/// Notifies that a resource changed.
pub fn update_resource(call: &Call) -> Outcome {
    let uri: Value = json!(text(call, "uri", "test://static-text"));
    call.server.announce("notifications/resources/updated", &json!({ "uri": uri }));
    Outcome::text("updated")
}
