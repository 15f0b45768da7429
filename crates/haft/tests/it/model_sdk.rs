//! The scripted services and what Haft sends, held against the official clients of OpenAI and Anthropic.

use haft::Content;
use haft_agent::model::{ChatMessage, ModelRequest, ModelResult};
use serde_json::{Value, json};
use testkit::model::Format;
use testkit::{ModelServer, Step, peers};

use crate::model_support::{model, question, turn, weather};

const SERVICES: [(Format, &str); 2] =
    [(Format::OpenAi, "openai"), (Format::Anthropic, "anthropic")];

/// The result of the official clients.
fn sdk(words: &[&str], input: &Value) -> Value {
    let command = words.iter().fold(peers::model_sdk(), |command, word| command.arg(word));
    let finished = command.run(&input.to_string());
    assert_eq!(finished.code, 0, "{words:?}: {}", finished.stderr);
    serde_json::from_str(&finished.stdout).unwrap()
}

/// The official clients understand the scripted services, in streams and as a whole: the tests rely
/// on real formats.
#[test]
fn official_clients_understand_the_scripted_services() {
    for (format, service) in SERVICES {
        for how in ["streamed", "whole"] {
            let call = Step::call("get_weather", json!({"city": "Bern"}))
                .and_call("get_weather", json!({"city": "Oslo"}));
            let server = ModelServer::start(
                format,
                [call.saying("I will look.").costing(7, 3), Step::status(429)],
            );
            let heard = sdk(&["ask", service, &server.url(), how], &Value::Null);
            let stop = if format == Format::OpenAi { "tool_calls" } else { "tool_use" };
            let calls = [
                ("get_weather", json!({"city": "Bern"})),
                ("get_weather", json!({"city": "Oslo"})),
            ];
            let expected =
                json!({"text": "I will look.", "calls": calls, "stop": stop, "usage": [7, 3]});
            assert_eq!(heard, expected, "{service} {how}");
            let refused = sdk(&["ask", service, &server.url(), how], &Value::Null);
            assert_eq!(refused, json!({"error": "RateLimitError"}), "{service} {how}");
        }
    }
}

/// Every key that Haft sends is known to the official clients, with a value of its type: system
/// text, tools, calls, results with images, failures, reasoning that is sent back.
#[tokio::test]
async fn requests_are_such_as_the_official_clients_send() {
    for (format, service) in SERVICES {
        let first = Step::call("get_weather", json!({"city": "Bern"})).saying("I will look.");
        // OpenAI itself sends no reasoning; services that do expect it back under a key that OpenAI
        // does not know.
        let first = if format == Format::OpenAi { first } else { first.thinking("Hm.") };
        let answers = [first, Step::call_raw("web_search", "no JSON"), Step::text("Sunny.")];
        let server = ModelServer::start(format, answers);
        let model = model(&server, "max_output_tokens: 100");
        let picture = Content::Image { data: "aW1n".into(), mime_type: "image/png".into() };
        let mut request = ModelRequest {
            system: Some("You look out of windows.".to_owned()),
            tools: vec![
                weather(),
                haft_agent::model::ModelTool { name: "web_search".to_owned(), ..weather() },
            ],
            ..question("What is the weather?")
        };
        request
            .messages
            .push(ChatMessage::User { content: vec![Content::text("Look:"), picture.clone()] });
        loop {
            let answer = turn(&model, request.clone()).await;
            if answer.calls.is_empty() {
                break;
            }
            let results = answer.calls.iter().map(|call| ModelResult {
                call_id: call.id.clone(),
                name: call.name.clone(),
                content: vec![Content::text("23 degrees"), picture.clone()],
                is_error: call.name == "web_search",
            });
            let results = results.collect();
            let haft_agent::model::ModelTurn { text, calls, provider_state, .. } = answer;
            request.messages.push(ChatMessage::Assistant { text, calls, provider_state });
            request.messages.push(ChatMessage::Tools { results });
        }
        let sent: Vec<Value> = server.requests().into_iter().map(|asked| asked.body).collect();
        assert_eq!(sent.len(), 3);
        let problems = sdk(&["check", service], &json!(sent));
        assert_eq!(problems, json!([[], [], []]), "{service}: {sent:#?}");
        // A check that finds nothing wrong with anything would prove nothing.
        let mut wrong = sent[0].clone();
        wrong["messages"][0]["contents"] = json!("?");
        wrong["tools"] = json!([{"name": 3}]);
        let problems = sdk(&["check", service], &json!([wrong]));
        assert!(problems[0].as_array().unwrap().len() >= 2, "{problems}");
    }
}
