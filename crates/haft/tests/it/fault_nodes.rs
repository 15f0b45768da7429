//! Messages within the limit on bytes that are made of very many tiny values.

use std::time::Duration;

use haft::{Code, ToolCall};
use serde_json::{Value, json};

use super::fault_support::{Fault, Scene, faults, resident_bytes};
use super::mcp_support::Stage;

const MIB: u64 = 1024 * 1024;
const OVER_BUDGET: &[&str] = &["server `sick`", "more than 100000 values and keys"];

fn many(kind: &str) -> Value {
    json!({"kind": kind, "bytes": 8_000_000})
}

fn scenario() -> Value {
    json!({"tools": ["text", "many"]})
}

/// A check that memory stayed flat since now.
fn flat_memory() -> impl Fn(&Scene) {
    let before = resident_bytes();
    move |_| {
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown < 96 * MIB, "{} MiB more", grown / MIB);
    }
}

faults! {
    /// Blocks of an unknown kind once became a placeholder each: 20 s and 800 MB for one answer.
    very_many_blocks over [stdio, http_json, http_sse, sse, websocket]
        Fault::fails(scenario(), "many", Code::ProtocolError, OVER_BUDGET)
            .with(many("blocks"))
            .also(flat_memory());

    very_many_numbers over [stdio, http_json, http_sse, sse, websocket]
        Fault::fails(scenario(), "many", Code::ProtocolError, OVER_BUDGET)
            .with(many("numbers"))
            .also(flat_memory());

    very_many_keys over [stdio, http_json]
        Fault::fails(scenario(), "many", Code::ProtocolError, OVER_BUDGET)
            .with(many("keys"))
            .also(flat_memory());

    /// A list of numbers is not a batch of messages: it is noise, and the call ends by its time.
    a_list_of_very_many_numbers over [stdio, sse, websocket]
        Fault::times_out(scenario(), "many")
            .with(many("list"))
            .cancelled()
            .also(flat_memory());

    a_list_of_very_many_numbers_in_an_exchange over [http_json, http_sse]
        Fault::fails(scenario(), "many", Code::ProtocolError, OVER_BUDGET)
            .with(many("list"))
            .also(flat_memory());
}

/// The setting decides, a call within it answers, and of very many blocks the first thousand are shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_setting_changes_the_limit() {
    let stage = Stage::new();
    let start = async |settings: Value| {
        let server = stage.stdio("one", scenario(), json!({}));
        stage.start([server], settings).await
    };
    let blocks = json!({"kind": "blocks", "bytes": 30_000});

    let runtime = start(json!({"limits": {"message_nodes_max": 5_000}})).await;
    let refused = runtime.call(ToolCall::new("many", &blocks)).await;
    let error = refused.error.unwrap();
    assert_eq!(error.code, Code::ProtocolError, "{}", error.message);
    assert!(error.message.contains("more than 5000 values and keys"), "{}", error.message);
    // The caller's own arguments count too.
    let arguments = json!({"kind": "blocks", "more": vec![0; 5_000]});
    let refused = runtime.call(ToolCall::new("many", &arguments)).await;
    assert_eq!(refused.error.unwrap().code, Code::ValidationError);
    runtime.shutdown(Duration::from_secs(5)).await;

    let runtime = start(json!({})).await;
    let answered = runtime.call(ToolCall::new("many", &blocks)).await;
    assert_eq!(answered.error.map(|error| error.message), None);
    assert_eq!(answered.content.len(), 1_001);
    let last = answered.content.last().unwrap().as_text().into_owned();
    assert_eq!(last, "[9000 more blocks left out: an answer has at most 1000]");
    runtime.shutdown(Duration::from_secs(5)).await;
    let logged = stage.logged();
    assert_eq!(logged.len(), 3, "one entry for each call");
    let raw = logged.iter().filter_map(|entry| entry.raw.as_ref().map(|raw| raw.get().len()));
    assert!(raw.max().is_some_and(|bytes| bytes > 29_000), "the log has the whole answer");
}
