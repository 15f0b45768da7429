//! Whole turns of the agent, in both formats: the requests to the model, and the effects of its
//! answers.

use haft_agent::model::{ChatMessage, Usage};
use haft_agent::{AgentEvent, Conversation, TurnEnd};
use serde_json::json;
use testkit::model::Format;
use testkit::{ModelServer, Step};
use tokio_util::sync::CancellationToken;

use crate::agent_support::{FORMATS, agent, ask, say};
use crate::mcp_support::Stage;
use crate::support::until;

/// Proves S1-1, S1-13: every tool of a connected server is in what the model is sent, beside the built-in ones,
/// and a call the model makes reaches the server.
#[tokio::test]
async fn tools_of_servers_are_offered_and_called() {
    for format in FORMATS {
        let stage = Stage::new();
        let model = ModelServer::start(
            format,
            [
                Step::call("echo", json!({"message": "hello"}))
                    .saying("I will ask.")
                    .costing(100, 7),
                Step::by(|asked| {
                    Step::text(format!("It said: {}", asked.last_result())).costing(120, 9)
                }),
            ],
        );
        let scenario = |tools: &[&str]| json!({ "tools": tools });
        let servers = [
            stage.stdio("one", scenario(&["echo", "empty", "stats"]), json!({})),
            stage.stdio("two", scenario(&["text"]), json!({})),
        ];
        let agent = agent(&stage, &model, servers, json!({"builtin": {}})).await;
        let told = ask(&agent, "Say hello.").await;
        assert!(
            told.text().starts_with("It said: ") && told.text().contains("hello"),
            "{}",
            told.text()
        );
        let turn = told.turn.as_ref().unwrap();
        assert_eq!((turn.end, turn.steps), (TurnEnd::Answered, 2));
        assert_eq!(turn.usage, Usage { input_tokens: 220, output_tokens: 16 });
        let offered = model.requests()[0].tool_names();
        let all: Vec<String> = agent.runtime().tools().into_iter().map(|tool| tool.name).collect();
        // Under its own name, Anthropic would search by itself.
        let search = if format == Format::Anthropic { "web_search_tool" } else { "web_search" };
        let fitted = all.iter().map(|tool| if tool == "web_search" { search } else { tool });
        let mut fitted = fitted.map(ToOwned::to_owned);
        assert!(all.len() > 5 && fitted.all(|tool| offered.contains(&tool)), "{offered:?}");
        for builtin in ["code_execution", search, "request_human_input"] {
            assert!(offered.iter().any(|tool| tool == builtin), "{offered:?}");
        }
        assert_eq!(stage.messages("one", "tools/call").len(), 1);
        assert_eq!(model.left(), 0);
    }
}

/// Proves S2-Q-07, S2-EC-02: guidance in a description reaches the model word for word, whatever is in it.
#[tokio::test]
async fn descriptions_reach_the_model_word_for_word() {
    let text = format!(
        "Use this for X, but prefer `other` if Z is there.\n\n  – «Überall» \"quoted\" \\ {{}} <b>日本語</b>\t{}",
        "long ".repeat(4000)
    );
    for format in FORMATS {
        let stage = Stage::new();
        let model = ModelServer::start(format, [Step::text("yes")]);
        let scenario = json!({"tools": [
            {"name": "this", "description": text, "inputSchema": {"type": "object"}},
            {"name": "other", "description": "Prefer me if Z.", "inputSchema": {"type": "object"}},
        ]});
        let agent =
            agent(&stage, &model, [stage.stdio("one", scenario, json!({}))], json!({})).await;
        ask(&agent, "go").await;
        let tools = model.last_request().tools();
        assert_eq!(tools[0].description, text);
        assert_eq!(tools[1].description, "Prefer me if Z.");
    }
}

/// Proves S1-18, S1-19: the model receives a failed call of a server under the id of its call,
/// marked as a failure, and the turn continues.
#[tokio::test]
async fn failures_of_servers_are_told_to_the_model() {
    for format in FORMATS {
        let stage = Stage::new();
        let model = ModelServer::start(
            format,
            [Step::call("crash", json!({})), Step::by(|asked| Step::text(asked.last_result()))],
        );
        let server = stage.stdio("one", json!({"tools": ["crash"]}), json!({}));
        let agent = agent(&stage, &model, [server], json!({})).await;
        let mut conversation = Conversation::new();
        let told = say(&agent, &mut conversation, "go").await;
        assert!(told.text().starts_with("MCP error: "), "{}", told.text());
        let ChatMessage::Assistant { calls, .. } = &conversation.messages()[1] else {
            panic!("{:?}", conversation.messages())
        };
        let result = model.last_request().results().pop().unwrap();
        assert_eq!(result.call_id, calls[0].id);
        assert!(matches!(&conversation.messages()[2],
            ChatMessage::Tools { results } if results[0].is_error && results[0].call_id == calls[0].id));
    }
}

/// Proves S3-SC-006: one of three servers dies in the middle of a turn, and the turn is finished with the tools of
/// the other two.
#[tokio::test]
async fn a_server_that_dies_does_not_end_the_turn() {
    for format in FORMATS {
        let stage = Stage::new();
        let model = ModelServer::start(
            format,
            [
                Step::calls([("crash", json!({})), ("text", json!({})), ("stats", json!({}))]),
                Step::call("text", json!({})),
                Step::by(|asked| {
                    let failed = asked
                        .results()
                        .iter()
                        .filter(|it| it.text.starts_with("MCP error"))
                        .count();
                    Step::text(format!("{failed} failed, then {}", asked.last_result()))
                }),
            ],
        );
        let only = |name, tool| stage.stdio(name, json!({"tools": [tool]}), json!({}));
        let servers = [only("one", "crash"), only("two", "text"), only("three", "stats")];
        let agent = agent(&stage, &model, servers, json!({})).await;
        let told = ask(&agent, "go").await;
        assert_eq!(told.text(), "1 failed, then plain text");
    }
}

/// Invented tools and invalid arguments: the model receives an error it can act on.
#[tokio::test]
async fn what_a_model_gets_wrong_is_told_to_it() {
    for format in FORMATS {
        let stage = Stage::new();
        let mut steps = vec![
            Step::call("ecko", json!({"message": "x"})),
            Step::call("echo", json!({"mesage": 5})),
            Step::text("I give up."),
        ];
        if format == testkit::model::Format::OpenAi {
            steps.insert(2, Step::call_raw("echo", "{\"message\": "));
        }
        let model = ModelServer::start(format, steps);
        let scenario = json!({"tools": [{
            "name": "echo", "description": "d",
            "inputSchema": {"type": "object", "properties": {"message": {"type": "string"}},
                            "required": ["message"], "additionalProperties": false},
        }]});
        let agent =
            agent(&stage, &model, [stage.stdio("one", scenario, json!({}))], json!({})).await;
        let told = ask(&agent, "go").await;
        assert_eq!(told.text(), "I give up.");
        let calls = told.calls();
        assert!(calls.iter().all(|(_, is_error, _)| *is_error), "{calls:?}");
        assert!(calls[0].2.contains("no tool is named `ecko`; the tools are echo"), "{calls:?}");
        assert!(calls[1].2.contains("the arguments of `echo` are invalid"), "{calls:?}");
        if calls.len() > 2 {
            assert!(calls[2].2.contains("cannot be read"), "{calls:?}");
        }
        assert!(stage.messages("one", "tools/call").is_empty());
    }
}

/// A model that repeats itself receives a note, and then its turn ends.
#[tokio::test]
async fn repetition_ends_a_turn() {
    let stage = Stage::new();
    let again = || Step::call("text", json!({}));
    let model = ModelServer::openai(std::iter::repeat_with(again).take(10));
    let server = stage.stdio("one", json!({"tools": ["text"]}), json!({}));
    let agent = agent(&stage, &model, [server], json!({"agent": {"repeats_max": 2}})).await;
    let told = ask(&agent, "go").await;
    assert_eq!(told.turn.as_ref().unwrap().end, TurnEnd::Repetition);
    assert_eq!(stage.messages("one", "tools/call").len(), 2);
    assert!(told.calls()[2].2.contains("made 2 times already"), "{:?}", told.calls());
}

/// `max_steps` bounds a turn, and the turn reports it.
#[tokio::test]
async fn steps_are_bounded() {
    let stage = Stage::new();
    let model =
        ModelServer::openai((0..10).map(|n| Step::call("echo", json!({"message": n.to_string()}))));
    let agent =
        agent(&stage, &model, [stage.plain("one")], json!({"agent": {"max_steps": 3}})).await;
    let told = ask(&agent, "go").await;
    let turn = told.turn.as_ref().unwrap();
    assert_eq!((turn.end, turn.steps, model.left()), (TurnEnd::MaxSteps, 3, 7));
    assert!(turn.end.explained().unwrap().contains("max_steps"));
}

/// Cancelling ends a turn while the model writes, and while a tool works; the conversation can be continued.
#[tokio::test]
async fn a_turn_can_be_cancelled_at_any_time() {
    for format in FORMATS {
        let stage = Stage::new();
        let model = ModelServer::start(
            format,
            [
                Step::text("I begin").then_silent(),
                Step::call("hang", json!({})),
                Step::by(|asked| Step::text(format!("{} messages", asked.messages().len()))),
            ],
        );
        let server = stage.stdio("one", json!({"tools": ["hang"]}), json!({}));
        let agent = agent(&stage, &model, [server], json!({})).await;
        let mut conversation = Conversation::new();
        for wanted in ["text", "tool"] {
            let cancel = CancellationToken::new();
            let tell = |event: AgentEvent| match event {
                AgentEvent::Text { .. } if wanted == "text" => cancel.cancel(),
                AgentEvent::ToolStarted { .. } if wanted == "tool" => cancel.cancel(),
                _ => {}
            };
            let said = vec![haft::Content::text("go")];
            let turn = agent.turn(&mut conversation, said, &tell, &cancel).await.unwrap();
            assert_eq!(turn.end, TurnEnd::Cancelled, "{wanted}");
        }
        let told = say(&agent, &mut conversation, "and now?").await;
        assert!(told.text().ends_with(" messages"), "{}", told.text());
        until(|| stage.logged().len() == 1).await;
        assert_eq!(stage.logged()[0].error.as_ref().unwrap().code, haft::Code::Cancelled);
    }
}

/// A failing model ends the turn with a reason, and the next turn works.
#[tokio::test]
async fn a_model_that_fails_ends_the_turn_with_a_reason() {
    for format in FORMATS {
        let stage = Stage::new();
        let model = ModelServer::start(format, [Step::status(500), Step::text("back")]);
        let agent = agent(&stage, &model, [], json!({})).await;
        let mut conversation = Conversation::new();
        let told = say(&agent, &mut conversation, "one").await;
        assert!(told.turn.is_err());
        assert!(
            matches!(told.events.last(), Some(AgentEvent::TurnFailed { message, .. }) if message.contains("500"))
        );
        assert_eq!(say(&agent, &mut conversation, "two").await.text(), "back");
    }
}

/// A model with a smaller context than assumed receives a shorter request.
#[tokio::test]
async fn a_conversation_that_is_too_long_is_shortened() {
    let stage = Stage::new();
    let too_long = r#"{"error": {"message": "This model's maximum context length is 8192 tokens.", "type": "invalid_request_error", "code": "context_length_exceeded"}}"#;
    let model = ModelServer::openai([
        Step::call("big", json!({"bytes": 100_000})),
        Step::status(400).with_body(too_long),
        Step::by(|asked| Step::text(asked.last_result().len().to_string())),
    ]);
    let server = stage.stdio("one", json!({"tools": ["big"]}), json!({}));
    let agent = agent(&stage, &model, [server], json!({})).await;
    let told = ask(&agent, "go").await;
    let seen: usize = told.text().parse().unwrap();
    assert!(seen < 60_000, "{seen}");
    assert!(told.events.iter().any(|event| matches!(event, AgentEvent::Warning { .. })));
}

/// The learned context size applies to the next request.
#[tokio::test]
async fn how_much_a_model_reads_is_learned() {
    let stage = Stage::new();
    let too_long = r#"{"error": {"message": "maximum context length is 8192 tokens"}}"#;
    let model = ModelServer::openai([
        Step::call("big", json!({"bytes": 100_000})),
        Step::status(400).with_body(too_long),
        Step::status(400).with_body(too_long),
        Step::text("one"),
        Step::text("two"),
    ]);
    let server = stage.stdio("one", json!({"tools": ["big"]}), json!({}));
    let agent = agent(&stage, &model, [server], json!({})).await;
    let mut conversation = Conversation::new();
    assert_eq!(say(&agent, &mut conversation, "go").await.text(), "one");
    let told = say(&agent, &mut conversation, "and now?").await;
    assert_eq!((told.text(), model.left()), ("two", 0));
    assert!(!told.events.iter().any(|event| matches!(event, AgentEvent::Warning { .. })));
}

/// Tools that leave no room for anything are named as the reason, and what to do about it.
#[tokio::test]
async fn tools_that_leave_no_room_are_the_reason() {
    let stage = Stage::new();
    let model = ModelServer::openai([]);
    let scenario = json!({"tools": [
        {"name": "wordy", "description": "word ".repeat(2000), "inputSchema": {"type": "object"}},
    ]});
    let settings = json!({"agent": {"context_tokens": 1000}});
    let agent = agent(&stage, &model, [stage.stdio("one", scenario, json!({}))], settings).await;
    let error = ask(&agent, "hi").await.turn.unwrap_err();
    assert!(error.message.starts_with("the tools and the system text alone"), "{error}");
    assert!(error.remedy.unwrap().contains("agent.tools_max"));
}

/// Proves S3-US3-2: a model without image support receives a note about the omission, and the
/// conversation continues; a later image is tried again.
#[tokio::test]
async fn a_picture_that_the_model_refuses_is_left_out() {
    let stage = Stage::new();
    let refused = r#"{"error": {"message": "image input is not supported"}}"#;
    let shows = |asked: &testkit::model::AskedModel| {
        Step::text(asked.body["messages"].to_string().contains("image_url").to_string())
    };
    let model = ModelServer::openai([
        Step::call("every_content", json!({})),
        Step::status(500).with_body(refused),
        Step::by(shows),
        Step::by(shows),
        Step::call("every_content", json!({})),
        Step::by(shows),
    ]);
    let server = stage.stdio("one", json!({"tools": ["every_content"]}), json!({}));
    let agent = agent(&stage, &model, [server], json!({})).await;
    let mut conversation = Conversation::new();
    let told = say(&agent, &mut conversation, "look").await;
    assert_eq!(told.text(), "false");
    let warned = told.events.iter().any(|event| {
        matches!(event, AgentEvent::Warning { message } if message.ends_with("asking again without images"))
    });
    assert!(warned, "{:?}", told.events);
    let sent = model.last_request().body["messages"].to_string();
    assert!(sent.contains("[left out, the model does not take it: image/png"), "{sent}");
    assert_eq!(say(&agent, &mut conversation, "and now?").await.text(), "false");
    assert_eq!(say(&agent, &mut conversation, "look again").await.text(), "true");
}

/// A call that was cut off is not made: the turn ends with the reason, and can be continued.
#[tokio::test]
async fn a_call_that_was_cut_off_is_not_made() {
    for (format, reason) in FORMATS.into_iter().zip(["length", "max_tokens"]) {
        let stage = Stage::new();
        let model = ModelServer::start(format, []);
        let servers = [stage.stdio("one", json!({"tools": ["echo"]}), json!({}))];
        let agent = agent(&stage, &model, servers, json!({})).await;
        // In the middle of its arguments, and before the first letter of them.
        for written in ["{\"message\": \"hel", ""] {
            let cut = Step::call_raw("echo", written).stopped_by(reason);
            model.then([cut, Step::text("Again.")]);
            let mut conversation = Conversation::new();
            let told = say(&agent, &mut conversation, "Say hello.").await;
            assert_eq!(told.turn.as_ref().unwrap().end, TurnEnd::Length, "{format:?} {written}");
            assert_eq!(told.calls(), []);
            assert!(stage.messages("one", "tools/call").is_empty());
            let told = say(&agent, &mut conversation, "Once more.").await;
            assert_eq!(told.text(), "Again.");
            let result = model.last_request().last_result();
            assert!(result.starts_with("not called: your answer was too long"), "{result}");
        }
    }
}

/// An empty answer is reported as such.
#[tokio::test]
async fn an_empty_answer_is_told() {
    for format in FORMATS {
        let stage = Stage::new();
        let model = ModelServer::start(format, [Step::text("")]);
        let told = ask(&agent(&stage, &model, [], json!({})).await, "?").await;
        assert_eq!(told.turn.as_ref().unwrap().end, TurnEnd::Answered);
        let is_told = told.events.iter().any(|event| {
            matches!(event, AgentEvent::Warning { message } if message.starts_with("the model's answer is empty"))
        });
        assert!(is_told, "{:?}", told.events);
    }
}

/// A model that stops for its own reason gave no answer.
#[tokio::test]
async fn a_model_that_stops_for_a_reason_of_its_own_did_not_answer() {
    let stage = Stage::new();
    let stopped = Step::text("").stopped_by("MALFORMED_FUNCTION_CALL");
    let model = ModelServer::gemini([stopped, Step::text("better")]);
    let agent = agent(&stage, &model, [], json!({})).await;
    let mut conversation = Conversation::new();
    let error = say(&agent, &mut conversation, "?").await.turn.unwrap_err();
    assert!(
        error.message.ends_with("said nothing and stopped: MALFORMED_FUNCTION_CALL"),
        "{error}"
    );
    assert_eq!(say(&agent, &mut conversation, "again").await.text(), "better");
}
