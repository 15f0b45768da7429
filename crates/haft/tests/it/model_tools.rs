//! Tools as models are offered them, and calls as the toolbox knows them.

use haft_agent::model::{ChatMessage, ModelCall, ModelResult, ModelTool};
use serde_json::json;
use testkit::model::Format;
use testkit::{ModelServer, Step};

use crate::model_support::{model, question, read, turn, weather};

const FORMATS: [Format; 4] = [Format::OpenAi, Format::Anthropic, Format::Gemini, Format::Ollama];

/// Proves S2-Q-07.
#[tokio::test]
async fn descriptions_are_sent_word_for_word() {
    let descriptions = [
        "Plain.".to_owned(),
        "  Lines\n\tand tabs,\r\n\"quotes\", \\ and </tags>  ".to_owned(),
        "Grüße, 날씨, 🦀, e\u{301}, \u{202e}".to_owned(),
        "long ".repeat(4_000),
        String::new(),
    ];
    for format in FORMATS {
        for lines in ["", "strict_schemas: true"] {
            let server = ModelServer::start(format, [Step::text("ok")]);
            let mut request = question("?");
            request.tools = descriptions
                .iter()
                .enumerate()
                .map(|(at, description)| ModelTool {
                    name: format!("tool_{at}"),
                    description: description.clone(),
                    ..weather()
                })
                .collect();
            turn(&model(&server, lines), request).await;
            let offered = server.last_request().tools();
            let offered: Vec<_> = offered.into_iter().map(|tool| tool.description).collect();
            assert_eq!(offered, descriptions);
        }
    }
}

#[tokio::test]
async fn a_schema_is_sent_as_it_is_where_the_provider_takes_it() {
    for format in FORMATS {
        let server = ModelServer::start(format, [Step::text("ok")]);
        let mut request = question("?");
        request.system = Some("Be brief.".to_owned());
        request.tools = vec![weather()];
        turn(&model(&server, ""), request).await;
        let request = server.last_request();
        assert_eq!(request.system().as_deref(), Some("Be brief."));
        let tool = &request.tools()[0];
        assert_eq!((&tool.schema, tool.strict), (&weather().input_schema, false));
    }
}

#[tokio::test]
async fn a_name_no_provider_takes_is_another_on_the_way() {
    for format in FORMATS {
        let server = ModelServer::start(
            format,
            [
                Step::by(|asked| Step::call(asked.tool_names()[0].clone(), json!({}))),
                Step::text("ok"),
            ],
        );
        let model = model(&server, "");
        let tool = |name: &str| ModelTool { name: name.to_owned(), ..weather() };
        let mut request = question("?");
        request.tools = vec![tool("wetter.heute/morgen"), tool("wetter-heute-morgen")];
        let call = turn(&model, request.clone()).await.calls.remove(0);
        assert_eq!(call.name, "wetter.heute/morgen");
        let names = server.last_request().tool_names();
        assert_eq!(names[1], "wetter-heute-morgen");
        assert_ne!(names[0], names[1]);
        // The history contains the name that the model knows.
        let result = ModelResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: vec![],
            is_error: false,
        };
        request.messages.push(assistant(call));
        request.messages.push(ChatMessage::Tools { results: vec![result] });
        turn(&model, request).await;
        let sent = server.last_request().messages().to_vec();
        let sent = serde_json::to_string(&sent).unwrap();
        assert!(sent.contains(&names[0]) && !sent.contains("heute/morgen"), "{sent}");
    }
}

/// A tool that is named like one of the provider's own is ours all the same: it has its schema and its description, and
/// what the model calls comes back under its name.
#[tokio::test]
async fn a_name_that_the_provider_has_a_tool_of_its_own_for_means_ours() {
    let own = ["web_search", "googleSearch", "codeExecution", "urlContext"];
    for format in [Format::OpenAi, Format::Anthropic, Format::Gemini, Format::Ollama] {
        let all = Step::by(|asked| {
            let names = asked.tool_names();
            Step::calls(names.iter().map(|name| (name.as_str(), json!({"city": "Bern"}))))
        });
        let server = ModelServer::start(format, [all]);
        let mut request = question("?");
        let tool = |name: &str| ModelTool { name: name.to_owned(), ..weather() };
        request.tools = own.iter().map(|name| tool(name)).collect();
        let turn = turn(&model(&server, ""), request).await;
        let called: Vec<&str> = turn.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(called, own, "{format:?}");
        let offered = server.last_request().tools();
        assert!(
            offered.len() == 4 && offered.iter().all(|it| it.description == "Tells the weather.")
        );
    }
}

fn assistant(call: ModelCall) -> ChatMessage {
    ChatMessage::Assistant { text: String::new(), calls: vec![call], provider_state: None }
}

#[tokio::test]
async fn strict_schemas_are_strict_on_the_way_out_and_forgotten_on_the_way_back() {
    let server = ModelServer::openai([Step::calls([
        ("get_weather", json!({"city": "Bern", "unit": null})),
        ("open", json!({"anything": null})),
    ])]);
    let open = ModelTool {
        name: "open".to_owned(),
        input_schema: json!({"type": "object", "properties": {}, "additionalProperties": true}),
        ..weather()
    };
    let mut request = question("?");
    request.tools = vec![weather(), open.clone()];
    let turn = turn(&model(&server, "strict_schemas: true"), request).await;
    assert_eq!(read(&turn.calls[0].arguments), json!({"city": "Bern"}));
    assert_eq!(read(&turn.calls[1].arguments), json!({"anything": null}));
    let tools = server.last_request().tools();
    assert_eq!((tools[0].strict, tools[1].strict), (true, false));
    assert_eq!(tools[0].schema["required"], json!(["city", "unit"]));
    assert_eq!(tools[0].schema["additionalProperties"], false);
    assert_eq!(tools[0].schema["properties"]["unit"]["type"], json!(["string", "null"]));
    assert_eq!(tools[1].schema, open.input_schema);
}

#[tokio::test]
async fn settings_of_a_request_are_sent() {
    for format in FORMATS {
        if !matches!(format, Format::OpenAi | Format::Anthropic) {
            continue;
        }
        let server = ModelServer::start(format, [Step::text("ok"), Step::text("ok")]);
        let model = model(&server, "max_output_tokens: 321");
        let mut request = question("?");
        turn(&model, request.clone()).await;
        request.max_output_tokens = Some(123);
        request.temperature = Some(0.5);
        request.stop_sequences = vec!["END".to_owned()];
        turn(&model, request).await;
        let sent = server.requests();
        let stop = if format == Format::OpenAi { "stop" } else { "stop_sequences" };
        assert_eq!(sent[0].body["max_tokens"], 321);
        assert_eq!(
            (&sent[1].body["max_tokens"], &sent[1].body["temperature"]),
            (&json!(123), &json!(0.5))
        );
        assert_eq!(sent[1].body[stop], json!(["END"]));
    }
}
