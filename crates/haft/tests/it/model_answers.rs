//! The model's answers reach the caller, in the format of any service.

use haft::Content;
use haft_agent::model::ModelTurn;
use haft_agent::model::{
    ChatMessage, ModelCall, ModelEvent, ModelRequest, ModelResult, StopReason, Usage,
};
use serde_json::json;
use testkit::model::Format;
use testkit::{ModelServer, Step};

use crate::model_support::{events, model, question, read, turn, weather};

const FORMATS: [Format; 2] = [Format::OpenAi, Format::Anthropic];
const ALL: [Format; 4] = [Format::OpenAi, Format::Anthropic, Format::Gemini, Format::Ollama];

#[tokio::test]
async fn text_comes_in_pieces_and_the_whole_at_the_end() {
    for format in ALL {
        let answer = Step::text("Grüezi, wie geht es dir?").thinking("A greeting.").costing(21, 9);
        let server = ModelServer::start(format, [answer]);
        let events = events(&model(&server, ""), question("Hallo")).await;
        let (mut text, mut reasoning, mut pieces) = (String::new(), String::new(), 0);
        let mut done = None;
        for event in events {
            match event.unwrap() {
                ModelEvent::Text(piece) => {
                    pieces += 1;
                    text.push_str(&piece);
                }
                ModelEvent::Reasoning(piece) => reasoning.push_str(&piece),
                ModelEvent::Done(turn) => done = Some(*turn),
                ModelEvent::Restarted { reason } => panic!("{reason}"),
            }
        }
        assert_eq!(
            (text.as_str(), reasoning.as_str()),
            ("Grüezi, wie geht es dir?", "A greeting.")
        );
        assert!(pieces > 1);
        let ModelTurn { text: whole, calls, usage, stop, .. } = done.unwrap();
        assert_eq!((whole, calls, stop), (text, vec![], StopReason::End));
        assert_eq!(usage, Usage { input_tokens: 21, output_tokens: 9 });
    }
}

#[tokio::test]
async fn several_calls_come_with_their_whole_arguments_and_go_back_with_their_ids() {
    for format in ALL {
        let server = ModelServer::start(
            format,
            [
                Step::calls([
                    ("get_weather", json!({"city": "Bern", "unit": "C"})),
                    ("get_weather", json!({"city": "Zürich"})),
                ])
                .saying("Let me see."),
                Step::by(|asked| Step::text(asked.last_result())),
            ],
        );
        let model = model(&server, "");
        let mut request = question("How is the weather?");
        request.tools = vec![weather()];
        let first = turn(&model, request.clone()).await;
        assert_eq!((first.text.as_str(), &first.stop), ("Let me see.", &StopReason::Calls));
        let cities: Vec<_> =
            first.calls.iter().map(|call| read(&call.arguments)["city"].clone()).collect();
        assert_eq!(cities, ["Bern", "Zürich"]);
        let result = |call: &ModelCall, text: &str| ModelResult {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: vec![Content::text(text)],
            is_error: false,
        };
        let results = vec![result(&first.calls[0], "12 °C"), result(&first.calls[1], "9 °C")];
        request.messages.push(ChatMessage::Assistant {
            text: first.text.clone(),
            calls: first.calls.clone(),
            provider_state: first.provider_state.clone(),
        });
        request.messages.push(ChatMessage::Tools { results });
        assert_eq!(turn(&model, request).await.text, "9 °C");
        let told = server.last_request().results();
        let texts: Vec<_> = told.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(texts, ["12 °C", "9 °C"]);
        // The other formats go by the order.
        if FORMATS.contains(&format) {
            let ids: Vec<_> = told.iter().map(|it| it.call_id.as_str()).collect();
            assert_eq!(ids, [first.calls[0].id.as_str(), first.calls[1].id.as_str()]);
        }
    }
}

#[tokio::test]
async fn an_answer_may_be_empty() {
    for format in ALL {
        let server = ModelServer::start(format, [Step::text("")]);
        let turn = turn(&model(&server, ""), question("Say nothing")).await;
        assert_eq!((turn.text.as_str(), turn.calls), ("", vec![]));
    }
}

#[tokio::test]
async fn calls_without_ids_get_some_that_differ() {
    let both = Step::calls([("a", json!({"n": 1})), ("b", json!({"n": 2}))]).without_ids();
    let server = ModelServer::openai([both.clone(), both]);
    let model = model(&server, "");
    let (one, two) = (turn(&model, question("1")).await, turn(&model, question("2")).await);
    let ids: std::collections::HashSet<_> =
        one.calls.iter().chain(&two.calls).map(|call| call.id.clone()).collect();
    assert_eq!(ids.len(), 4);
    assert_eq!(read(&two.calls[1].arguments), json!({"n": 2}));
}

#[tokio::test]
async fn calls_that_all_say_they_are_the_first_are_told_apart() {
    let server = ModelServer::openai([Step::calls([
        ("a", json!({"n": 1})),
        ("b", json!({"n": 2})),
        ("c", json!({"n": 3})),
    ])
    .all_first()]);
    let turn = turn(&model(&server, ""), question("1")).await;
    let calls: Vec<_> =
        turn.calls.iter().map(|call| (call.name.as_str(), read(&call.arguments))).collect();
    assert_eq!(calls, [("a", json!({"n": 1})), ("b", json!({"n": 2})), ("c", json!({"n": 3}))]);
}

#[tokio::test]
async fn arguments_reach_the_caller_as_the_model_wrote_them() {
    for format in FORMATS {
        for written in [
            "{\"city\": ",
            "not json",
            "[1, 2]",
            "{\"a\": 1, \"a\": 123456789012345678901234567890}",
        ] {
            let server = ModelServer::start(format, [Step::call_raw("get_weather", written)]);
            let turn = turn(&model(&server, ""), question("?")).await;
            assert_eq!(turn.calls[0].arguments, written);
            assert_eq!(turn.calls[0].name, "get_weather");
        }
        let server = ModelServer::start(format, [Step::call_raw("now", "")]);
        assert_eq!(turn(&model(&server, ""), question("?")).await.calls[0].arguments, "{}");
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_go_back_as_an_object() {
    for format in FORMATS {
        let server = ModelServer::start(format, [Step::text("I see.")]);
        let call = ModelCall { id: "c1".into(), name: "a".into(), arguments: "{oops".into() };
        let result = ModelResult {
            call_id: "c1".into(),
            name: "a".into(),
            content: vec![Content::text("no JSON")],
            is_error: true,
        };
        let messages = vec![
            ChatMessage::user("go"),
            ChatMessage::Assistant { text: String::new(), calls: vec![call], provider_state: None },
            ChatMessage::Tools { results: vec![result] },
        ];
        turn(&model(&server, ""), ModelRequest { messages, ..ModelRequest::default() }).await;
        let request = server.last_request();
        let told = &request.results()[0];
        assert_eq!((told.text.as_str(), told.is_error), ("no JSON", format == Format::Anthropic));
        let sent = request.body.to_string();
        assert!(sent.contains("invalid_arguments"), "{sent}");
    }
}

#[tokio::test]
async fn a_name_that_the_model_made_up_stays() {
    let server = ModelServer::openai([Step::call("no.such tool", json!({}))]);
    let mut request = question("?");
    request.tools = vec![weather()];
    assert_eq!(turn(&model(&server, ""), request).await.calls[0].name, "no.such tool");
}

#[tokio::test]
async fn the_end_says_why() {
    for (format, reason, stop) in [
        (Format::OpenAi, "length", StopReason::Length),
        (Format::OpenAi, "content_filter", StopReason::Refused),
        (Format::OpenAi, "odd", StopReason::Other("odd".into())),
        (Format::Anthropic, "max_tokens", StopReason::Length),
        (Format::Anthropic, "refusal", StopReason::Refused),
        (Format::Anthropic, "stop_sequence", StopReason::End),
    ] {
        let server = ModelServer::start(format, [Step::text("Half").stopped_by(reason)]);
        assert_eq!(turn(&model(&server, ""), question("?")).await.stop, stop);
    }
}

/// The answer is complete once it has a stop reason; the final marker may be missing.
#[tokio::test]
async fn an_end_without_its_mark_is_an_end() {
    let call = Step::call("get_weather", json!({"city": "Bern"})).costing(7, 3);
    let server = ModelServer::openai([
        Step::text("All of it.").costing(7, 3).without_mark(),
        call.without_mark(),
    ]);
    let model = model(&server, "retries: 0");
    let answer = turn(&model, question("?")).await;
    assert_eq!((answer.text.as_str(), answer.stop), ("All of it.", StopReason::End));
    assert_eq!(answer.usage, Usage { input_tokens: 7, output_tokens: 3 });
    let answer = turn(&model, question("?")).await;
    assert_eq!(
        (answer.calls[0].arguments.as_str(), answer.stop),
        (r#"{"city":"Bern"}"#, StopReason::Calls)
    );
}

#[tokio::test]
async fn a_service_that_does_not_stream_is_asked_for_the_whole() {
    for format in FORMATS {
        let answer = || Step::call("a", json!({"n": 1})).saying("Here.").not_streamed();
        let server = ModelServer::start(format, [answer(), answer()]);
        let turn = turn(&model(&server, ""), question("?")).await;
        assert_eq!((turn.text.as_str(), turn.calls[0].arguments.as_str()), ("Here.", "{\"n\":1}"));
        assert_eq!(server.requests().len(), 2);
        assert_ne!(server.last_request().body["stream"], true);
    }
}

#[tokio::test]
async fn gemini_gets_its_calls_back_with_their_signatures_and_names() {
    let server = ModelServer::gemini([
        Step::calls([("get_weather", json!({"city": "Bern"})), ("get_weather", json!({}))]),
        Step::text("Fine."),
    ]);
    let model = model(&server, "");
    let first = turn(&model, question("?")).await;
    assert_eq!(first.stop, StopReason::Calls);
    assert_ne!(first.calls[0].id, first.calls[1].id);
    let result = |call: &ModelCall| ModelResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: vec![Content::Audio { data: "c25k".into(), mime_type: "audio/ogg".into() }],
        is_error: false,
    };
    let results = first.calls.iter().map(result).collect();
    let messages = vec![
        ChatMessage::user("?"),
        ChatMessage::Assistant {
            text: first.text,
            calls: first.calls,
            provider_state: first.provider_state,
        },
        ChatMessage::Tools { results },
    ];
    turn(&model, ModelRequest { messages, ..ModelRequest::default() }).await;
    let sent = server.last_request().messages().to_vec();
    let calls = sent[1]["parts"].as_array().unwrap();
    assert_eq!(calls[0]["thoughtSignature"], "c2lnbmVk");
    assert_eq!(calls[0]["functionCall"]["args"], json!({"city": "Bern"}));
    let answers = sent[2]["parts"].as_array().unwrap();
    assert_eq!(
        (answers.len(), &answers[1]["functionResponse"]["name"]),
        (2, &json!("get_weather"))
    );
    assert_eq!(
        sent[3]["parts"][1]["inline_data"],
        json!({"mime_type": "audio/ogg", "data": "c25k"})
    );
}

#[tokio::test]
async fn signed_thoughts_go_back_to_the_provider_that_signed_them() {
    let server = ModelServer::anthropic([
        Step::call("get_weather", json!({"city": "Bern"})).thinking("It depends."),
        Step::text("Fine."),
    ]);
    let model = model(&server, "");
    let first = turn(&model, question("?")).await;
    // It can be written down in between.
    let provider_state =
        serde_json::from_str(&serde_json::to_string(&first.provider_state).unwrap()).unwrap();
    let result = ModelResult {
        call_id: first.calls[0].id.clone(),
        name: "get_weather".into(),
        content: vec![],
        is_error: false,
    };
    let messages = vec![
        ChatMessage::user("?"),
        ChatMessage::Assistant { text: first.text, calls: first.calls, provider_state },
        ChatMessage::Tools { results: vec![result] },
    ];
    turn(&model, ModelRequest { messages, ..ModelRequest::default() }).await;
    let sent = server.last_request().messages()[1]["content"].clone();
    assert_eq!(
        sent[0],
        json!({"type": "thinking", "thinking": "It depends.", "signature": "c2lnbmVk"})
    );
    assert_eq!(sent[1]["type"], "tool_use");
}
