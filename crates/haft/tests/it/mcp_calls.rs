//! Calls of MCP tools: what goes over the wire, what comes back, what the log keeps.

use std::time::Duration;

use haft::record::{Outcome, RecordSource};
use haft::{Code, Content, Status, ToolCall};
use serde_json::{Value, json};

use super::mcp_support::{Stage, answer, call, data, failure, names, texts};

/// Proves S1-4, S1-7, S3-FR-002, S1-24: one process, one handshake, then the calls, each with the
/// server's own name and the arguments as they were.
#[tokio::test]
async fn twenty_calls_use_one_connection() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    for n in 0..20 {
        let arguments = json!({"n": n, "nested": {"a": [1, null, "x"]}});
        assert_eq!(answer(&runtime, "echo", arguments.clone()).await, arguments);
    }
    runtime.shutdown(Duration::from_secs(1)).await;
    assert_eq!(stage.starts("one"), 1);
    let methods = stage.methods("one");
    assert_eq!(methods[..2], ["initialize", "notifications/initialized"]);
    assert_eq!(methods.iter().filter(|it| *it == "initialize").count(), 1);
    let calls = stage.messages("one", "tools/call");
    assert_eq!(calls.len(), 20);
    let expected = json!({"name": "echo", "arguments": {"n": 0, "nested": {"a": [1, null, "x"]}}});
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&calls[0]["params"][key], value);
    }
    let last = testkit::fixture::facts(&stage.facts("one")).pop().unwrap();
    assert_eq!((&last["event"], &last["code"]), (&json!("exit"), &json!(0)), "it was let go");
}

/// Proves S1-6: name, description and schema as the server has them, and the stand-ins.
#[tokio::test]
async fn a_tool_is_described_in_the_servers_own_words() {
    let stage = Stage::new();
    let schema = json!({
        "type": "object", "properties": {"b": {"type": "integer"}, "a": {"enum": [1, "x"]}},
        "required": ["b"], "x-own": {"kept": true},
    });
    let tools = json!([
        {"name": "full", "title": "Full", "description": "Line one.\nPrefer it if Z", "inputSchema": schema},
        {"name": "bare"},
        {"name": "no_words", "inputSchema": {"type": "object"}},
    ]);
    let runtime =
        stage.start([stage.stdio("one", json!({ "tools": tools }), json!({}))], json!({})).await;
    let full = runtime.tool("full").unwrap();
    assert_eq!(full.title.as_deref(), Some("Full"));
    assert_eq!(full.description, "Line one.\nPrefer it if Z");
    assert_eq!(full.input_schema.to_string(), schema.to_string(), "even in the same order");
    let bare = runtime.tool("bare").unwrap();
    assert_eq!(bare.description, "");
    assert_eq!(bare.input_schema, json!({"type": "object", "properties": {}}));
    let missing = call(&runtime, "full", json!({"a": 1})).await;
    assert_eq!(failure(&missing).0, Code::ValidationError);
    assert!(stage.messages("one", "tools/call").is_empty(), "it never reached the server");
    assert_eq!(answer(&runtime, "bare", json!({"any": 1})).await, json!({"any": 1}));
}

/// Proves S3-US3-1, S3-US3-2, S3-US3-3, S3-US3-4, S3-US3-5, S3-FR-003, S3-FR-017, S3-FR-018,
/// S3-FR-019, S3-FR-020, S3-KE-4: every kind of block in
/// its order.
#[tokio::test]
async fn every_kind_of_content_arrives_in_order() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let envelope = call(&runtime, "every_content", json!({})).await;
    let kinds: Vec<String> = envelope
        .content
        .iter()
        .map(|block| match block {
            Content::Text { text } => format!("text {text}"),
            Content::Image { data, mime_type } => format!("image {mime_type} {}", &data[..8]),
            Content::Audio { data, mime_type } => format!("audio {mime_type} {}", &data[..8]),
            Content::Resource { uri, mime_type, text, data, .. } => {
                format!("resource {uri} {mime_type:?} {text:?} {data:?}")
            }
        })
        .collect();
    let expected = [
        "text a text",
        "image image/png iVBORw0K",
        "audio audio/wav UklGRiQA",
        "resource test://static-text Some(\"text/plain\") None None",
        "resource test://static-text Some(\"text/plain\") Some(\"This is a text resource.\") None",
        "resource test://static-binary Some(\"application/octet-stream\") None Some(\"AAEC/w==\")",
    ];
    assert_eq!(kinds, expected);
}

/// Proves S3-US3-5, S3-FR-020: a link keeps the server's description of the resource.
#[tokio::test]
async fn a_resource_link_keeps_its_description() {
    let stage = Stage::new();
    let link = json!({"type": "resource_link", "uri": "file:///report.csv", "name": "report", "title": "Sales",
        "description": "Sales of May.", "mimeType": "text/csv", "size": 2048});
    let tool =
        json!({"name": "find", "inputSchema": {"type": "object"}, "result": {"content": [link]}});
    let odd = json!({"name": "odd", "inputSchema": {"type": "object"}, "result": {"content":
        [{"type": "resource_link", "uri": "file:///x", "name": 5, "size": "large"}]}});
    let server = stage.stdio("one", json!({"tools": [tool, odd]}), json!({}));
    let runtime = stage.start([server], json!({})).await;
    let envelope = call(&runtime, "find", json!({})).await;
    let content = serde_json::to_value(&envelope.content).unwrap();
    let expected = json!({"type": "resource", "uri": "file:///report.csv", "mime_type": "text/csv",
        "name": "report", "title": "Sales", "description": "Sales of May.", "size": 2048});
    assert_eq!(content, json!([expected]));
    let text = "[resource file:///report.csv, text/csv, 2048 bytes: Sales - Sales of May.]";
    assert_eq!(envelope.model_text(), text);
    let read: Vec<Content> = serde_json::from_value(content).unwrap();
    assert_eq!(read, envelope.content, "what the API and the log write can be read again");
    let envelope = call(&runtime, "odd", json!({})).await;
    assert_eq!(envelope.model_text(), "[resource file:///x]");
}

/// Proves S3-US1-3, S3-FR-003: structure comes as it was written: key order and great numbers.
#[tokio::test]
async fn structured_answers_survive_unchanged() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let envelope = call(&runtime, "big_numbers", json!({})).await;
    assert_eq!(
        envelope.data.unwrap().get(),
        r#"{"b":12345678901234567890123,"a":0.1000000000000000055511151231257827}"#
    );
    let exact = r#"{"z": 98765432109876543210987, "a": 1.10}"#;
    let echoed = runtime.call(ToolCall::from_text("echo", exact)).await;
    assert_eq!(echoed.status, Status::Success);
    let called = stage.messages("one", "tools/call").pop().unwrap();
    let keys: Vec<&String> = called["params"]["arguments"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["z", "a"]);
}

/// Proves S3-EC-1: no content is a success without content.
#[tokio::test]
async fn an_empty_answer_is_a_success() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let envelope = call(&runtime, "empty", json!({})).await;
    assert_eq!((envelope.status, envelope.content.len()), (Status::Success, 0));
    assert!(envelope.data.is_none());
}

/// Proves S3-EC-3: a placeholder with kind and size in its place; the log keeps the JSON.
#[tokio::test]
async fn content_nobody_knows_is_named_and_kept_in_the_log() {
    let stage = Stage::new();
    let (heard, _guard) = testkit::LogCapture::start();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let envelope = call(&runtime, "unknown_content", json!({})).await;
    assert_eq!(envelope.status, Status::Success);
    let texts = texts(&envelope);
    assert_eq!((texts[0], texts[2]), ("before", "after"));
    assert!(texts[1].contains("`hologram`") && texts[1].contains("45 bytes"), "{}", texts[1]);
    assert_eq!(heard.from("WARNING").len(), 1, "{:?}", heard.from("WARNING"));
    let logged = serde_json::to_string(&stage.logged()[0]).unwrap();
    assert!(logged.contains(r#"{"voxels":[1,2,3]}"#), "{logged}");
}

/// Proves S1-22, S3-US5-3: the tool's own messages, joined, flagged as an error; content is kept.
#[tokio::test]
async fn a_tool_that_says_it_failed_keeps_its_words() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let envelope = call(&runtime, "fail", json!({})).await;
    assert_eq!(
        failure(&envelope),
        (Code::ToolExecutionError, "the first reason\nthe second reason")
    );
    assert_eq!(texts(&envelope), ["the first reason", "the second reason"]);
    let outcome = stage.logged()[0].outcome;
    assert_eq!(
        (outcome.transport, outcome.rpc, outcome.tool),
        (Outcome::Ok, Outcome::Ok, Outcome::Failed)
    );
}

/// Proves S1-18, S3-US5-3, S3-FR-022: `MCP error: ` with message, code and data; the next call works.
#[tokio::test]
async fn an_error_response_shows_code_message_and_data() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let envelope = call(&runtime, "rpc_error", json!({})).await;
    let (code, message) = failure(&envelope);
    assert_eq!(code, Code::ToolExecutionError);
    assert!(message.starts_with("MCP error: server `one` refused `rpc_error`: "), "{message}");
    for part in ["the tool objects", "-32050", r#""reason":"as asked""#] {
        assert!(message.contains(part), "{message}");
    }
    let details = &envelope.error.unwrap().details;
    assert_eq!(details["data"], json!({"reason": "as asked"}));
    assert_eq!(answer(&runtime, "echo", json!({})).await, json!({}));
}

/// Proves S2-FR-005: an answer that breaks its schema is refused and kept; a failed one is not
/// checked.
#[tokio::test]
async fn the_output_schema_binds_answers_and_not_failures() {
    let stage = Stage::new();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    let broken = call(&runtime, "bad_structured", json!({})).await;
    assert_eq!(failure(&broken).0, Code::OutputValidationError);
    assert_eq!((data(&broken), broken.content.len()), (Value::Null, 0), "it is not handed on");
    let failed = call(&runtime, "bad_structured_error", json!({})).await;
    assert_eq!(failure(&failed), (Code::ToolExecutionError, "count: many"));
    let logged = stage.logged();
    assert_eq!(logged[0].output.as_ref().unwrap().get(), r#"{"count":"many"}"#);
    assert_eq!(logged[0].outcome.schema, Outcome::Failed);
}

/// Proves S2-FR-011, S2-SC-006: one entry a call with its server, and how far each layer came.
#[tokio::test]
async fn each_call_leaves_one_entry_with_its_server() {
    let stage = Stage::new();
    let server = stage.stdio("one", json!({}), json!({"reconnect": {"attempts": 0}}));
    let runtime = stage.start([server], json!({})).await;
    for tool in ["text", "fail", "rpc_error", "half_line", "nothing", "hang", "crash", "text"] {
        let calling = call(&runtime, tool, json!({"by": tool}));
        // Everything but `hang` ends by itself, long before this.
        let patience = Duration::from_millis(if tool == "hang" { 50 } else { 20_000 });
        let answered = tokio::time::timeout(patience, calling).await;
        assert_eq!(answered.is_err(), tool == "hang");
    }
    let layers = |entry: &haft::record::LoggedCall| {
        let outcome = entry.outcome;
        let layers = [outcome.transport, outcome.rpc, outcome.tool];
        let code = entry.error.as_ref().map(|error| format!("{:?}", error.code));
        (entry.tool.clone(), entry.server.clone(), code.unwrap_or_default(), layers)
    };
    let (failed, nothing, good) = (Outcome::Failed, Outcome::NotReached, Outcome::Ok);
    let one = || Some("one".to_owned());
    let expected = [
        ("text", one(), "", [good, good, good]),
        ("fail", one(), "ToolExecutionError", [good, good, failed]),
        ("rpc_error", one(), "ToolExecutionError", [good, good, failed]),
        ("half_line", one(), "ProtocolError", [good, failed, nothing]),
        ("nothing", None, "UnknownTool", [nothing, nothing, nothing]),
        ("hang", one(), "Cancelled", [nothing, nothing, nothing]),
        ("crash", one(), "OutcomeUnknown", [failed, nothing, nothing]),
        ("text", one(), "ServiceUnavailable", [failed, nothing, nothing]),
    ];
    let expected = expected
        .map(|(tool, server, code, layers)| (tool.to_owned(), server, code.to_owned(), layers));
    let logged = stage.logged();
    assert_eq!(logged.iter().map(layers).collect::<Vec<_>>(), expected);
    assert_eq!(logged[0].source, RecordSource::Mcp);
    assert_eq!(logged[0].input.get(), r#"{"by":"text"}"#);
}

/// Proves S3-US4-1, S3-US4-T, S3-FR-013: everything is discovered and callable by default; with
/// `load_tools: false` no list is requested.
#[tokio::test]
async fn tools_are_loaded_unless_told_otherwise() {
    let stage = Stage::new();
    let scenario = || json!({"tools": ["echo", "text", "annotated", "no_schema"]});
    let closed = stage.stdio("closed", scenario(), json!({"load_tools": false}));
    let runtime = stage.start([stage.stdio("one", scenario(), json!({})), closed], json!({})).await;
    assert_eq!(names(&runtime), ["echo", "text", "annotated", "no_schema"]);
    for tool in names(&runtime) {
        assert_eq!(call(&runtime, &tool, json!({})).await.status, Status::Success, "{tool}");
    }
    assert!(stage.messages("closed", "tools/list").is_empty());
    assert_eq!(stage.messages("closed", "initialize").len(), 1);
}

/// Proves S3-EC-4: a long text is cut for the model with a marker; the log keeps it whole.
#[tokio::test]
async fn a_long_answer_is_cut_and_the_log_keeps_it() {
    let stage = Stage::new();
    let runtime =
        stage.start([stage.plain("one")], json!({"defaults": {"output_bytes_max": 1000}})).await;
    let envelope = call(&runtime, "big", json!({"bytes": 5000})).await;
    let text = texts(&envelope)[0];
    assert!(text.starts_with(&"x".repeat(1000)) && text.len() < 1200, "{}", text.len());
    assert!(text.contains("[4000 of 5000 bytes cut here; "), "{}", &text[1000..]);
    let logged = &stage.logged()[0];
    assert_eq!(logged.execution_id, envelope.execution_id);
    assert!(logged.output.as_ref().unwrap().get().contains(&"x".repeat(5000)));
}
