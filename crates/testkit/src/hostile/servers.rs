//! The kinds of hostile servers: five processes, and the calls that make them misbehave.

use serde_json::{Value, json};

use super::clients::Attacker;
use crate::fixture::Fixture;

/// The largest answer that fits into a line.
const ANSWER_BYTES: usize = 8 * 1024 * 1024 - 1024;
const LINE_BYTES: u64 = 1 << 30;
const STDERR_BYTES: usize = 64 * 1024 * 1024;
const NOTICES: usize = 2000;

/// A way in which a server misbehaves when a tool of it is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerKind {
    pub(super) name: &'static str,
    tool: &'static str,
    arguments: fn() -> Value,
}

pub(super) static KINDS: [ServerKind; 9] = [
    ServerKind {
        name: "tiny-objects",
        tool: "tiny_items",
        arguments: || json!({ "bytes": ANSWER_BYTES, "item": "{}" }),
    },
    ServerKind {
        name: "tiny-numbers",
        tool: "tiny_items",
        arguments: || json!({ "bytes": ANSWER_BYTES, "item": "0" }),
    },
    ServerKind {
        name: "endless-line",
        tool: "long_line",
        arguments: || json!({ "bytes": LINE_BYTES }),
    },
    ServerKind {
        name: "stderr-flood",
        tool: "stderr_flood",
        arguments: || json!({ "bytes": STDERR_BYTES }),
    },
    ServerKind { name: "list-storm", tool: "storm", arguments: || json!({ "count": NOTICES }) },
    ServerKind { name: "slow-drip", tool: "trickle", arguments: || json!({}) },
    ServerKind { name: "dies", tool: "crash", arguments: || json!({}) },
    ServerKind { name: "never-answers", tool: "hang", arguments: || json!({}) },
    ServerKind { name: "retry-zero", tool: "retry_text", arguments: || json!({}) },
];

/// The entries of the four servers that talk over pipes. The fifth is [`retry_zero`].
pub(super) fn entries() -> Vec<(&'static str, Value)> {
    [
        ("tiny", vec!["tiny_items"]),
        ("flood", vec!["long_line", "stderr_flood"]),
        ("storm", vec!["storm"]),
        ("mortal", vec!["trickle", "crash", "hang"]),
    ]
    .map(|(name, tools)| {
        let args = Fixture::stdio_args(&json!({ "tools": tools }));
        (name, json!({ "command": Fixture::path(), "args": args }))
    })
    .into()
}

/// A server whose streams break before the answer and ask for a retry at once.
pub(super) fn retry_zero() -> Value {
    json!({
        "tools": [{ "name": "retry_text", "behaves": "text", "inputSchema": { "type": "object" } }],
        "http": { "resume_calls": u32::MAX, "retry_ms": 0 },
        "faults": [{ "method": "GET", "do": "cut_sse" }],
    })
}

/// Calls the tool of a kind until the task is aborted.
pub(super) async fn call(kind: &'static ServerKind, mut attacker: Attacker) {
    let path = format!("/api/v1/tools/{}/call", kind.tool);
    let body = json!({ "arguments": (kind.arguments)() }).to_string();
    loop {
        attacker.pause().await;
        attacker.tally.attack();
        let answer = attacker.post(&path, body.as_bytes()).await;
        attacker.tally.end(&answer);
    }
}
