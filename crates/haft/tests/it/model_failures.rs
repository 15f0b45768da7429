//! Failures of a model's service: what is tried again, and what people read.

use std::time::Duration;

use haft::Content;
use haft_agent::model::{ChatMessage, ModelError, ModelEvent, ModelFailure, ModelRequest};
use serde_json::json;
use testkit::model::Format;
use testkit::{ModelServer, Step};

use crate::model_support::{KEY, events, failure, model, question, turn};

const FORMATS: [Format; 2] = [Format::OpenAi, Format::Anthropic];
const ALL: [Format; 4] = [Format::OpenAi, Format::Anthropic, Format::Gemini, Format::Ollama];
const PASSING: ModelFailure = ModelFailure::Passing { retry_after: None };

#[tokio::test]
async fn a_passing_failure_is_tried_again() {
    for format in ALL {
        let server = ModelServer::start(
            format,
            [
                Step::status(429).with_header("retry-after", "0"),
                Step::status(500),
                Step::status(529),
                Step::text("At last."),
            ],
        );
        let events = events(&model(&server, "retries: 3"), question("?")).await;
        let reasons: Vec<&str> = events.iter().filter_map(|event| reason(event.as_ref())).collect();
        let of = |status| format!("({status}): scripted {status}; it is asked again at once");
        assert_eq!(reasons.len(), 3, "{reasons:?}");
        for (reason, status) in reasons.iter().zip([429, 500, 529]) {
            assert!(reason.ends_with(&of(status)), "{reason}");
        }
        let Some(Ok(ModelEvent::Done(turn))) = events.last() else { panic!("{events:?}") };
        assert_eq!((turn.text.as_str(), server.requests().len()), ("At last.", 4));
    }
}

#[tokio::test]
async fn retries_have_an_end_and_may_be_none() {
    for (retries, asked) in [(0, 1), (2, 3)] {
        let server = ModelServer::openai((0..5).map(|_| Step::status(503)));
        let error = failure(&model(&server, &format!("retries: {retries}")), question("?")).await;
        assert_eq!((error.kind, server.requests().len()), (PASSING, asked));
        assert_eq!(error.message, "the service of `openai::scripted` fails (503): scripted 503");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_begins_anew() {
    for format in ALL {
        for broken in [
            Step::text("Half an ans").then_lost(),
            Step::text("Half an ans").then_over(),
            Step::call("a", json!({"n": 1})).saying("Half").then_lost(),
        ] {
            let server = ModelServer::start(format, [broken, Step::text("The whole answer.")]);
            let events = events(&model(&server, "retries: 1"), question("?")).await;
            let events: Vec<ModelEvent> = events.into_iter().map(Result::unwrap).collect();
            let at = events.iter().position(|it| matches!(it, ModelEvent::Restarted { .. }));
            let at = at.expect("it says that it begins anew");
            assert!(events[..at].iter().any(|it| matches!(it, ModelEvent::Text(_))));
            let again: String = events[at..].iter().filter_map(text).collect();
            assert_eq!(again, "The whole answer.");
        }
    }
}

fn reason<'e>(event: Result<&'e ModelEvent, &ModelError>) -> Option<&'e str> {
    match event {
        Ok(ModelEvent::Restarted { reason }) => Some(reason),
        _ => None,
    }
}

fn text(event: &ModelEvent) -> Option<&str> {
    match event {
        ModelEvent::Text(text) => Some(text),
        _ => None,
    }
}

#[tokio::test]
async fn a_broken_answer_without_retries_is_an_error() {
    for format in ALL {
        let server = ModelServer::start(format, [Step::text("Half").then_over()]);
        let error = failure(&model(&server, "retries: 0"), question("?")).await;
        assert_eq!(error.kind, PASSING);
        assert!(error.message.contains("its answer broke off"), "{error}");
    }
}

#[tokio::test]
async fn silence_is_a_failure_after_the_set_time() {
    for step in [Step::silence(), Step::text("Half").then_silent()] {
        let server = ModelServer::openai([step, Step::text("Here.")]);
        let model = model(&server, "retries: 1\nrequest_timeout: 200ms");
        assert_eq!(turn(&model, question("?")).await.text, "Here.");
        server.then([Step::silence(), Step::silence()]);
        let error = failure(&model, question("?")).await;
        assert_eq!(error.kind, PASSING);
        assert_eq!(error.message, "the service of `openai::scripted` was silent for 200ms");
        assert_eq!(
            error.remedy.as_deref(),
            Some("raise `agent.request_timeout` if it is only slow")
        );
    }
}

#[tokio::test]
async fn a_service_that_asks_for_more_than_patience_is_not_asked_again() {
    let server = ModelServer::openai([Step::status(429).with_header("retry-after", "3600")]);
    let error = failure(&model(&server, "retries: 3"), question("?")).await;
    let hour = Some(Duration::from_hours(1));
    assert_eq!(error.kind, ModelFailure::Passing { retry_after: hour });
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn what_does_not_pass_is_not_tried_again() {
    let quota = r#"{"error": {"message": "You exceeded it", "code": "insufficient_quota"}}"#;
    let context = r#"{"error": {"message": "maximum context length is 8192 tokens"}}"#;
    let prompt = r#"{"type": "error", "error": {"type": "invalid_request_error",
                     "message": "prompt is too long: 210000 tokens > 200000 maximum"}}"#;
    let reply = r#"{"error": {"message": "input length and `max_tokens` exceed context limit: 143291 + 64000 > 200000"}}"#;
    let long_text = r#"{"error": {"message": "Invalid 'messages[1].content': string too long."}}"#;
    let name =
        r#"{"error": {"message": "Invalid 'messages[1].tool_calls[0].id': string too long."}}"#;
    for format in ALL {
        for (step, kind) in [
            (Step::status(400).with_body(reply), ModelFailure::TooLong),
            (Step::status(400).with_body(long_text), ModelFailure::TooLong),
            (Step::status(400).with_body(name), ModelFailure::Rejected),
            (Step::status(401), ModelFailure::Setup),
            (Step::status(403), ModelFailure::Setup),
            (Step::status(404), ModelFailure::Setup),
            (Step::status(429).with_body(quota), ModelFailure::Setup),
            (Step::status(307).with_header("location", "http://elsewhere/"), ModelFailure::Setup),
            (Step::status(400), ModelFailure::Rejected),
            (Step::status(422), ModelFailure::Rejected),
            (Step::status(413), ModelFailure::TooLong),
            (Step::status(400).with_body(context), ModelFailure::TooLong),
            (Step::status(400).with_body(prompt), ModelFailure::TooLong),
        ] {
            let shown = format!("{step:?}");
            let server = ModelServer::start(format, [step]);
            let error = failure(&model(&server, "retries: 3"), question("?")).await;
            assert_eq!(error.kind, kind, "{shown}");
            assert_eq!(server.requests().len(), 1, "{shown}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_said_and_not_tried_again() {
    for (format, body) in [
        (Format::OpenAi, "data: {\"choices\": oops}\n\n"),
        (Format::Anthropic, "event: message_start\ndata: oops\n\n"),
    ] {
        let server = ModelServer::start(format, [Step::body(body)]);
        let error = failure(&model(&server, "retries: 3"), question("?")).await;
        assert_eq!((error.kind, server.requests().len()), (ModelFailure::Unreadable, 1));
    }
    // Neither events nor an answer, also without streaming.
    let page = "<html><title>Welcome to nginx</title></html>";
    let server = ModelServer::openai([Step::body(page), Step::body(page)]);
    let error = failure(&model(&server, "retries: 3"), question("?")).await;
    assert_eq!(error.kind, ModelFailure::Unreadable);
    assert!(error.message.contains("Welcome to nginx"), "{error}");
}

#[tokio::test]
async fn an_error_in_the_middle_of_an_answer_counts_as_its_kind() {
    let overloaded = "event: error\ndata: {\"type\": \"error\", \"error\": \
                      {\"type\": \"overloaded_error\", \"message\": \"Overloaded\"}}\n\n";
    let server = ModelServer::anthropic([Step::body(overloaded), Step::text("Now.")]);
    assert_eq!(turn(&model(&server, "retries: 1"), question("?")).await.text, "Now.");
    let invalid =
        "data: {\"error\": {\"type\": \"invalid_request_error\", \"message\": \"No.\"}}\n\n";
    let server = ModelServer::openai([Step::body(invalid)]);
    let error = failure(&model(&server, "retries: 1"), question("?")).await;
    assert_eq!(error.kind, ModelFailure::Rejected);
    assert!(error.message.ends_with("(400): No."), "{error}");
    let long = "data: {\"error\": {\"message\": \"prompt exceeds the context window\"}}\n\n";
    let server = ModelServer::openai([Step::body(long)]);
    let error = failure(&model(&server, "retries: 1"), question("?")).await;
    assert_eq!(error.kind, ModelFailure::TooLong);
}

#[tokio::test]
async fn a_refused_key_says_where_it_is_and_not_what_it_is() {
    for format in FORMATS {
        let body = format!(r#"{{"error": {{"message": "Incorrect API key: {KEY}\nsee \u0007"}}}}"#);
        let server = ModelServer::start(format, [Step::status(401).with_body(body)]);
        let error = failure(&model(&server, ""), question("?")).await;
        let (name, variable) = match format {
            Format::OpenAi => ("openai::scripted", "OPENAI_API_KEY"),
            Format::Anthropic => ("anthropic::scripted", "ANTHROPIC_API_KEY"),
            Format::Gemini | Format::Ollama => unreachable!("not among them"),
        };
        assert_eq!(
            error.message,
            format!(
                "the service of `{name}` refused the key (401): Incorrect API key: *** see \\u{{7}}"
            )
        );
        assert_eq!(error.remedy, Some(format!("look at `{variable}`")));
    }
}

#[tokio::test]
async fn a_page_in_html_and_a_long_text_are_shown_shortly() {
    let page = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";
    let long = "x".repeat(100_000);
    let server = ModelServer::openai([
        Step::status(502).with_body(page),
        Step::status(500).with_body(long),
        Step::status(500).with_body(""),
    ]);
    let model = model(&server, "retries: 0");
    let error = failure(&model, question("?")).await;
    assert!(error.message.ends_with("(502): a page in HTML, 502 Bad Gateway"), "{error}");
    assert!(failure(&model, question("?")).await.message.len() < 600);
    let error = failure(&model, question("?")).await;
    assert!(error.message.ends_with("(500): it gives no reason"), "{error}");
}

#[tokio::test]
async fn a_script_that_is_over_says_so() {
    let server = ModelServer::openai([]);
    let error = failure(&model(&server, "retries: 0"), question("?")).await;
    assert!(error.message.contains("the script of the test is over"), "{error}");
}

/// A refused image is distinguished from other errors that mention images.
#[tokio::test]
async fn a_refused_image_is_recognized() {
    let unsupported =
        r#"{"error": {"message": "image input is not supported - you may need an mmproj"}}"#;
    let damaged = r#"{"error": {"message": "Could not process image"}}"#;
    let unknown = r#"{"error": {"message": "model 'llama3.2-vision' not found"}}"#;
    let image = Content::Image { data: "aW1n".into(), mime_type: "image/png".into() };
    let seen = ModelRequest {
        messages: vec![ChatMessage::User { content: vec![Content::text("?"), image] }],
        ..ModelRequest::default()
    };
    for format in ALL {
        for (status, body, with, without) in [
            (500, unsupported, ModelFailure::Images, PASSING),
            (400, damaged, ModelFailure::Images, ModelFailure::Rejected),
            (404, unknown, ModelFailure::Setup, ModelFailure::Setup),
        ] {
            let step = || Step::status(status).with_body(body);
            let server = ModelServer::start(format, [step(), step()]);
            let model = model(&server, "retries: 0");
            assert_eq!(failure(&model, seen.clone()).await.kind, with, "{format:?} {status}");
            assert_eq!(failure(&model, question("?")).await.kind, without, "{format:?} {status}");
        }
    }
}
