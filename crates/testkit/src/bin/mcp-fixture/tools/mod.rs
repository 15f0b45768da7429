//! The built-in tools. Each is one line here; the families live in their own files.

pub mod catalogue;
mod content;
mod faults;
mod input;
pub mod notices;

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use crate::call::{Call, Outcome};
use crate::channel::Frame;
use crate::lists::ToolEntry;
use crate::tasks;

/// Lifetime of the process that `grandchild` starts if it is not killed earlier.
const GRANDCHILD_SECS: &str = "300";

/// Calls a tool of the list.
pub async fn call(call: &Call) -> Outcome {
    let name = &call.params["name"];
    let is_called = |tool: &&ToolEntry| tool.shown.get("name") == Some(name);
    let Some(tool) = call.server.tools.lock().iter().find(is_called).cloned() else {
        return Outcome::failure(-32602, format!("Unknown tool: {name}"));
    };
    let number = call.server.calls.fetch_add(1, Ordering::SeqCst) + 1;
    let _counted = call.server.call_starts();
    if call.server.scenario.crash_after_calls.is_some_and(|calls| number > calls) {
        call.server.facts.exit(1);
    }
    if call.server.scenario.ws.close_at_call == Some(number) {
        call.out.send(Frame::Close);
        return std::future::pending().await;
    }
    match tool.result {
        Some(result) => Outcome::Result(result),
        None => run(&tool.behaves, call).await,
    }
}

async fn run(name: &str, call: &Call) -> Outcome {
    match name {
        "echo" => content::echo(call),
        "text" => Outcome::text("plain text"),
        "every_content" => content::every(),
        "unknown_content" => content::unknown(),
        "empty" => Outcome::Result(json!({ "content": [] })),
        "fail" => content::fail(),
        "rpc_error" => Outcome::Failure(json!({ "code": -32050, "message": "the tool objects",
            "data": { "reason": "as asked" } })),
        "big" => Outcome::text("x".repeat(size(call, "bytes", 1024 * 1024))),
        "big_numbers" => content::big_numbers(),
        "deep" => content::deep(size(call, "depth", 200)),
        "bad_structured" => content::bad_structured(false),
        "bad_structured_error" => content::bad_structured(true),
        "stats" => content::both(&call.server.stats()),

        "sleep" => {
            let ms = call.number("ms", 1000);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Outcome::text(format!("slept {ms} ms"))
        }
        "hang" => std::future::pending().await,
        "crash" => call.server.facts.exit(1),
        "wrong_id" => faults::wrong_id(call),
        "text_id" => faults::text_id(call),
        "plain_text" => faults::plain_text(call),
        "wide" => faults::wide(call),
        "duplicate" => faults::duplicate(call),
        "stray" => faults::stray(call),
        "late" => faults::late(call).await,
        "overtake" => faults::overtake(call).await,
        "bad_utf8" => faults::bad_utf8(call),
        "half_line" => faults::half_line(call),
        "long_line" => faults::long_line(call).await,
        "flood" => faults::flood(call).await,
        "stderr_flood" => faults::stderr_flood(call),
        "tiny_items" => faults::tiny_items(call),
        "many" => faults::many(call),
        "grandchild" => grandchild(),

        "progress" => notices::progress(call).await,
        "drip" => notices::drip(call).await,
        "trickle" => faults::trickle(call).await,
        "notification_flood" => notices::flood(call).await,
        "log_all_levels" => notices::log_all_levels(call),
        "add_tool" => notices::add_tool(call),
        "remove_tool" => notices::remove_tool(call),
        "add_prompt" => notices::add_prompt(call),
        "storm" => notices::storm(call),
        "update_resource" => notices::update_resource(call),

        "task" => tasks::run(call).await,
        "sample" => input::sample(call).await,
        "elicit" => input::elicit(call).await,
        "roots" => input::roots(call).await,
        "ping_client" => input::ping(call).await,
        other => Outcome::failure(-32603, format!("no built-in tool is called {other}")),
    }
}

/// A size among the arguments.
fn size(call: &Call, name: &str, default: usize) -> usize {
    call.argument(name).as_u64().and_then(|size| usize::try_from(size).ok()).unwrap_or(default)
}

fn grandchild() -> Outcome {
    use std::process::{Command, Stdio};
    let mut command = Command::new("setsid");
    command.args(["sleep", GRANDCHILD_SECS]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(child) => content::both(&json!({ "pid": child.id() })),
        Err(error) => Outcome::failure(-32603, format!("setsid: {error}")),
    }
}

/// A string argument.
fn text<'a>(call: &'a Call, name: &str, default: &'a str) -> &'a str {
    call.argument(name).as_str().unwrap_or(default)
}

/// The answer of a client, as a tool's result.
fn answered(answer: &Value) -> Outcome {
    content::both(answer)
}
