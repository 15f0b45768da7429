//! Services that send what no model would.

use std::time::Duration;

use futures_util::StreamExt as _;
use haft_agent::model::ModelFailure;
use serde_json::{Value, json};
use testkit::model::Format;
use testkit::{ModelServer, Step};

use crate::model_support::{failure, model, question, read, turn};

/// One piece in OpenAI's format that calls a tool with this number.
fn numbered(index: u64, arguments: &str) -> String {
    let call = json!({"index": index, "id": format!("c{index}"),
                      "function": {"name": "a", "arguments": arguments}});
    format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [call]}}]}))
}

/// Genai makes room for all numbers up to the highest: this one would be 600 GB, and the end of the process.
#[tokio::test]
async fn a_call_with_a_number_that_cannot_be_is_refused() {
    for index in [1000, u64::from(u32::MAX)] {
        let body = format!("{}{}", numbered(0, "{}"), numbered(index, "{}"));
        let server = ModelServer::openai([Step::body(body), Step::text("still here")]);
        let model = model(&server, "retries: 3");
        let error = failure(&model, question("?")).await;
        assert_eq!((error.kind, server.requests().len()), (ModelFailure::Unreadable, 1));
        assert_eq!(
            error.message,
            format!(
                "the answer of the service of `openai::scripted` cannot be read: \
                 it numbers a call {index}, and there are at most 1000"
            )
        );
        assert_eq!(turn(&model, question("?")).await.text, "still here");
    }
}

/// Genai fills a gap with copies of the call after it.
#[tokio::test]
async fn long_arguments_after_a_gap_are_refused() {
    let arguments = json!({"text": "x".repeat(1 << 20)}).to_string();
    let server = ModelServer::openai([Step::body(numbered(900, &arguments))]);
    let error = failure(&model(&server, "retries: 0"), question("?")).await;
    assert_eq!(error.kind, ModelFailure::Unreadable);
    assert!(error.message.ends_with("it leaves out too many numbers of calls"), "{error}");
}

/// Some count from one, and that is fine.
#[tokio::test]
async fn calls_that_are_counted_from_one_are_heard() {
    let end = "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"tool_calls\"}]}\n\n\
               data: [DONE]\n\n";
    let body = format!("{}{}{end}", numbered(1, "{\"n\": 1}"), numbered(2, "{\"n\": 2}"));
    let server = ModelServer::openai([Step::body(body)]);
    let calls = turn(&model(&server, ""), question("?")).await.calls;
    let arguments: Vec<_> = calls.iter().map(|call| read(&call.arguments)).collect();
    assert_eq!(arguments, [json!({"n": 1}), json!({"n": 2})]);
}

/// Numbers and depths of the other formats, which genai does not take for sizes.
#[tokio::test]
async fn the_other_formats_survive_numbers_and_depth() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let huge = u64::from(u32::MAX);
    let most = i32::MAX;
    for (format, body) in [
        (
            Format::Anthropic,
            format!(
                "event: content_block_start\ndata: {{\"index\": {huge}, \"content_block\": \
                 {{\"type\": \"tool_use\", \"id\": \"a\", \"name\": \"b\", \"input\": {{}}}}}}\n\n\
                 event: content_block_delta\ndata: {deep}\n\n"
            ),
        ),
        (
            Format::Gemini,
            format!(
                "data: {{\"candidates\": [{{\"index\": {huge}, \"content\": {{\"parts\": []}}}}]}}\n\n\
                 data: {{\"candidates\": {deep}}}\n\n"
            ),
        ),
        (
            Format::Ollama,
            format!(
                "{{\"message\": {{\"content\": \"a\"}}, \"done\": true, \"prompt_eval_count\": {most}, \
                 \"eval_count\": {most}, \"x\": {deep}}}\n"
            ),
        ),
        (Format::OpenAi, format!("data: {{\"choices\": {deep}}}\n\n")),
    ] {
        let server = ModelServer::start(format, [Step::body(body)]);
        let error = failure(&model(&server, "retries: 0"), question("?")).await;
        assert_eq!(error.kind, ModelFailure::Unreadable, "{format:?}: {error}");
    }
}

/// Services leave out the number of a call or its id, or have one id for all: no call may be lost.
#[tokio::test]
async fn calls_are_heard_whatever_is_left_out() {
    let piece = |call: &Value| {
        format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [call]}}]}))
    };
    let end = "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"tool_calls\"}]}\n\n\
               data: [DONE]\n\n";
    for (first, second) in [
        (json!({"id": "a"}), json!({"id": "b"})),
        (json!({"index": -1, "id": "a"}), json!({"index": -1, "id": "b"})),
        (json!({"index": 0, "id": "a"}), json!({"index": 1, "id": "a"})),
        (json!({"index": 0, "id": ""}), json!({"index": 1, "id": ""})),
        (json!({}), json!({})),
    ] {
        let call = |mut frame: Value, number: u32| {
            frame["function"] = json!({"name": "a", "arguments": format!("{{\"n\": {number}}}")});
            frame
        };
        let body = format!("{}{}{end}", piece(&call(first, 1)), piece(&call(second, 2)));
        let server = ModelServer::openai([Step::body(body.clone())]);
        let calls = turn(&model(&server, ""), question("?")).await.calls;
        let arguments: Vec<_> = calls.iter().map(|call| read(&call.arguments)).collect();
        assert_eq!(arguments, [json!({"n": 1}), json!({"n": 2})], "{body}");
        assert!(!calls[0].id.is_empty() && calls[0].id != calls[1].id, "{calls:?}");
    }
    let object = json!({"index": 0, "id": "a", "function": {"name": "a", "arguments": {"n": 1}}});
    let server = ModelServer::openai([Step::body(piece(&object) + end)]);
    let calls = turn(&model(&server, ""), question("?")).await.calls;
    assert_eq!(read(&calls[0].arguments), json!({"n": 1}));
}

/// The same id for two calls in Anthropic's format.
#[tokio::test]
async fn two_calls_of_one_id_are_two() {
    let event =
        |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    let call = |index: u32| {
        let tool = json!({"type": "tool_use", "id": "same", "name": "a", "input": {}});
        let delta =
            json!({"type": "input_json_delta", "partial_json": format!("{{\"n\": {index}}}")});
        event(json!({"type": "content_block_start", "index": index, "content_block": tool}))
            + &event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
            + &event(json!({"type": "content_block_stop", "index": index}))
    };
    let message = json!({"id": "m", "role": "assistant", "content": [], "usage": {}});
    let delta = json!({"stop_reason": "tool_use"});
    let body = event(json!({"type": "message_start", "message": message}))
        + &call(0)
        + &call(1)
        + &event(json!({"type": "message_delta", "delta": delta, "usage": {}}))
        + &event(json!({"type": "message_stop"}));
    let server = ModelServer::anthropic([Step::body(body)]);
    let calls = turn(&model(&server, ""), question("?")).await.calls;
    let arguments: Vec<_> = calls.iter().map(|call| read(&call.arguments)).collect();
    assert_eq!(arguments, [json!({"n": 0}), json!({"n": 1})]);
    assert_ne!(calls[0].id, calls[1].id);
}

/// A final event without content, and one that announces calls and has none.
#[tokio::test]
async fn an_end_of_nothing_is_no_answer() {
    let server = ModelServer::openai([Step::body("data: [DONE]\n\n"), Step::text("Here.")]);
    assert_eq!(turn(&model(&server, "retries: 1"), question("?")).await.text, "Here.");
    let end = "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"tool_calls\"}]}\n\n\
               data: [DONE]\n\n";
    let server = ModelServer::openai([Step::body(end)]);
    let error = failure(&model(&server, "retries: 0"), question("?")).await;
    assert!(error.message.ends_with("it wants to call tools, and names none"), "{error}");
}

/// Heartbeats are not an answer, whatever their number.
#[tokio::test]
async fn heartbeats_alone_come_to_an_end() {
    let server = ModelServer::openai([Step::endless(": ping\n\n", Duration::from_millis(5))]);
    let model = model(&server, "retries: 0\nrequest_timeout: 50ms");
    let error = failure(&model, question("?")).await;
    assert_eq!(
        error.message,
        "the service of `openai::scripted` said for 500ms that it is there, and nothing else"
    );
}

/// Genai adds such numbers without care, which is a panic in a build for tests.
#[tokio::test]
async fn tokens_beyond_counting_are_no_end_of_the_process() {
    let most = i32::MAX;
    let body = format!(
        "{{\"message\": {{\"content\": \"a\"}}, \"done\": true, \"done_reason\": \"stop\", \
         \"prompt_eval_count\": {most}, \"eval_count\": {most}}}\n"
    );
    let server = ModelServer::ollama([Step::body(body), Step::text("still here")]);
    let model = model(&server, "retries: 0");
    let _either = model.ask(question("?")).collect::<Vec<_>>().await;
    assert_eq!(turn(&model, question("?")).await.text, "still here");
}

/// Bytes come all the time, and nothing whole.
#[tokio::test]
async fn a_line_without_an_end_is_ended() {
    for format in [Format::OpenAi, Format::Anthropic, Format::Gemini, Format::Ollama] {
        let server =
            ModelServer::start(format, [Step::endless("data: x", Duration::from_millis(20))]);
        let model = model(&server, "retries: 0\nrequest_timeout: 200ms");
        let failed = tokio::time::timeout(Duration::from_secs(10), failure(&model, question("?")));
        let error = failed.await.expect("it ends by itself");
        assert_eq!(
            error.message,
            format!("the service of `{}` was silent for 200ms", server.model())
        );
    }
}

/// The caller can cancel, whatever the rate of events and the number of threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flood_without_an_end_can_be_left() {
    let server = ModelServer::openai([Step::endless("x".repeat(1 << 20), Duration::ZERO)]);
    let model = model(&server, "retries: 0\nrequest_timeout: 60s");
    let asking = tokio::time::timeout(Duration::from_millis(500), failure(&model, question("?")));
    asking.await.unwrap_err();
}

/// Bytes come as fast as they can be read, and nothing whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flood_without_an_end_is_ended() {
    let server = ModelServer::openai([
        Step::endless("x".repeat(1 << 20), Duration::ZERO),
        Step::text("still here"),
    ]);
    let model = model(&server, "retries: 0\nrequest_timeout: 200ms");
    let error = failure(&model, question("?")).await;
    assert_eq!(error.message, format!("the service of `{}` was silent for 200ms", server.model()));
    assert_eq!(turn(&model, question("?")).await.text, "still here");
}

/// Too many calls are refused, whatever the format and the numbering.
#[tokio::test]
async fn too_many_calls_are_refused() {
    for format in [Format::OpenAi, Format::Anthropic, Format::Gemini, Format::Ollama] {
        let calls = (0..1001).map(|n| ("a", json!({ "n": n })));
        let server = ModelServer::start(format, [Step::calls(calls)]);
        let error = failure(&model(&server, "retries: 0"), question("?")).await;
        let text = error.to_string();
        assert!(text.contains("1000") || text.contains("1001"), "{format:?}: {text}");
    }
    let unnumbered = json!({"function": {"name": "a", "arguments": "{}"}});
    for (count, words) in [(2_000, "more than 1000 tools"), (100_000, "more than 100000 values")] {
        let calls = vec![unnumbered.clone(); count];
        let frame = json!({"choices": [{"delta": {"tool_calls": calls}}]});
        let server = ModelServer::openai([Step::body(format!("data: {frame}\n\n"))]);
        let error = failure(&model(&server, "retries: 0"), question("?")).await;
        assert!(error.message.contains(words), "{error}");
    }
}

/// An error of Ollama in place of an answer is reported.
#[tokio::test]
async fn an_error_of_ollama_is_reported() {
    let server = ModelServer::ollama([Step::body("{\"error\": \"model runner has crashed\"}\n")]);
    let error = failure(&model(&server, "retries: 0"), question("?")).await;
    assert!(error.message.contains("model runner has crashed"), "{error}");
}
