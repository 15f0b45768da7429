//! Endless answers of model services: limits for bytes and for time, below the client library.

use std::sync::Arc;
use std::time::Duration;

use haft_agent::model::{ChatModel, ModelFailure};
use serde_json::json;
use testkit::model::Format;
use testkit::{Flood, ModelServer, Step};

use crate::model_support::{failure, indented, model, open, question, turn};

const PASSING: ModelFailure = ModelFailure::Passing { retry_after: None };
/// The bytes a service can send before it notices that the connection is closed: the buffers of the
/// system.
const SENT_BYTES_MAX: u64 = 64 << 20;
const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

/// The model behind a flood, with these lines under `agent`.
fn flooded(flood: &Flood, format: Format, lines: &str) -> Arc<dyn ChatModel> {
    let provider = match format {
        Format::OpenAi => "openai",
        Format::Anthropic => "anthropic",
        Format::Gemini => "gemini",
        Format::Ollama => "ollama",
    };
    let address = flood.address();
    let config = format!("agent:\n  model: {provider}::x\n  base_url: http://{address}\n");
    open(&format!("{config}{}", indented(lines))).unwrap()
}

fn all() -> [Format; 4] {
    [Format::OpenAi, Format::Anthropic, Format::Gemini, Format::Ollama]
}

/// The status holds the error, so only the beginning of the body is read.
#[tokio::test]
async fn an_error_without_end_is_read_in_part() {
    for format in all() {
        let head = "HTTP/1.1 500 No\r\nContent-Type: text/plain\r\n\r\n";
        let flood = Flood::start(head, "overloaded ".repeat(6000));
        let error = failure(&flooded(&flood, format, "retries: 0"), question("?")).await;
        assert_eq!(error.kind, PASSING, "{error}");
        assert!(error.message.contains("fails (500): overloaded overloaded"), "{error}");
        assert!(flood.sent_bytes() < SENT_BYTES_MAX, "it sent {} bytes", flood.sent_bytes());
    }
}

/// An endless line, event and string, in every format.
#[tokio::test]
async fn an_answer_without_end_is_cut_off_at_the_limit() {
    let text = json!({"choices": [{"delta": {"content": "word ".repeat(100)}}]});
    let line = json!({"message": {"content": "word ".repeat(100)}, "done": false});
    for (format, piece) in all().into_iter().map(|format| (format, "x".repeat(1 << 16))).chain([
        (Format::OpenAi, format!("data: {text}\n\n")),
        (Format::OpenAi, "data: x\n".to_owned()),
        (Format::Anthropic, "event: ping\ndata: {}\n\n".repeat(100)),
        (Format::Ollama, format!("{line}\n")),
    ]) {
        let shown: String = piece.chars().take(40).collect();
        let flood = Flood::start(EVENTS, piece);
        let model = flooded(&flood, format, "retries: 3\nanswer_bytes_max: 300000");
        let error = failure(&model, question("?")).await;
        assert_eq!(error.kind, ModelFailure::Unreadable, "{format:?} {shown}: {error}");
        assert_eq!(
            error.message,
            format!("the answer of the service of `{}` has more than 300000 bytes", model.name())
        );
        let remedy = "raise `agent.answer_bytes_max` if the answer is genuine";
        assert_eq!(error.remedy.as_deref(), Some(remedy));
        assert!(flood.sent_bytes() < SENT_BYTES_MAX, "it sent {} bytes", flood.sent_bytes());
    }
}

/// A service without streaming is asked for the whole answer, with the same limit.
#[tokio::test]
async fn a_single_answer_without_end_is_cut_off_at_the_limit() {
    let endless = Step::endless("x".repeat(1 << 16), Duration::ZERO);
    let server = ModelServer::openai([Step::body("{}"), endless, Step::text("still here")]);
    let model = model(&server, "retries: 0\nanswer_bytes_max: 300000");
    let error = failure(&model, question("?")).await;
    assert!(error.message.ends_with("has more than 300000 bytes"), "{error}");
    assert_eq!(server.requests().len(), 2);
    assert_eq!(turn(&model, question("?")).await.text, "still here");
}

/// An answer just below the limit is an answer.
#[tokio::test]
async fn an_answer_below_the_limit_is_taken() {
    for format in all() {
        let long = "word ".repeat(2_000);
        let server = ModelServer::start(format, [Step::text(long.clone())]);
        let model = model(&server, "answer_bytes_max: 2000000");
        assert_eq!(turn(&model, question("?")).await.text, long, "{format:?}");
    }
}

/// A few bytes become many once they are parsed: each of these values takes 32 bytes and more.
#[tokio::test]
async fn a_piece_of_many_values_is_refused() {
    let event = format!("data: [{}0]\n\n", "0,".repeat(1_500_000));
    let server = ModelServer::openai([Step::body(event)]);
    let error = failure(&model(&server, "retries: 0"), question("?")).await;
    assert_eq!(error.kind, ModelFailure::Unreadable);
    assert!(error.message.ends_with("a piece of it has more than 1000000 JSON values"), "{error}");
}

#[tokio::test]
async fn a_flood_before_the_answer_is_cut_off() {
    let flood = Flood::of_interim_responses();
    let error = failure(&flooded(&flood, Format::OpenAi, "retries: 3"), question("?")).await;
    assert_eq!(error.kind, ModelFailure::Unreadable, "{error}");
    let excess = "it sent more than 256 KiB of headers and interim responses";
    assert!(error.message.ends_with(excess), "{error}");
    assert!(flood.sent_bytes() < SENT_BYTES_MAX, "it sent {} bytes", flood.sent_bytes());
    let flood = Flood::start("HTTP/1.1 200 OK\r\n", "x-header: value\r\n".repeat(1000));
    let error = failure(&flooded(&flood, Format::OpenAi, "retries: 0"), question("?")).await;
    assert_eq!(error.kind, PASSING, "{error}");
    assert!(flood.sent_bytes() < SENT_BYTES_MAX, "it sent {} bytes", flood.sent_bytes());
}

/// Text that drips in forever is never silent, so only the limit for the whole answer ends it.
#[tokio::test]
async fn an_answer_that_takes_too_long_is_ended() {
    let text = json!({"choices": [{"delta": {"content": "word "}}]});
    let drip = Step::endless(format!("data: {text}\n\n"), Duration::from_millis(20));
    let server = ModelServer::openai([drip, Step::text("still here")]);
    let model = model(&server, "retries: 3\nturn_timeout: 1s");
    let error = failure(&model, question("?")).await;
    assert_eq!(error.kind, PASSING);
    assert_eq!(
        error.message,
        "the service of `openai::scripted` did not complete its answer within 1s"
    );
    let remedy = "raise `agent.turn_timeout` if the answer is that long";
    assert_eq!(error.remedy.as_deref(), Some(remedy));
    assert_eq!(server.requests().len(), 1, "what took too long is not tried again");
    assert_eq!(turn(&model, question("?")).await.text, "still here");
}

/// The limit covers all tries and the pauses between them.
#[tokio::test]
async fn retries_end_with_the_time_for_the_answer() {
    let flood = Flood::start("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "");
    let model = flooded(&flood, Format::OpenAi, "retries: 1000000\nturn_timeout: 500ms");
    let error = failure(&model, question("?")).await;
    assert!(error.message.ends_with("did not complete its answer within 500ms"), "{error}");
}
