//! Content other than text that reaches the model: images, audio, resources and prompts of servers;
//! and servers that request completions themselves.

use haft::{AccessLists, Content, Refusal, ServerHandler};
use haft_agent::{Conversation, Sampler, from_prompt, mentioned};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use testkit::model::Format;
use testkit::{ModelServer, Step};
use tokio_util::sync::CancellationToken;

use crate::agent_support::{FORMATS, agent, agent_of, ask, say, section};
use crate::mcp_support::Stage;

/// Proves S3-US3-2, S3-US3-3, S3-US3-4, S3-US3-5, S3-US3-T: every kind of block of a tool's output
/// reaches the model in order: text as text, an image as an image, audio as audio, a text resource
/// as text.
#[tokio::test]
async fn every_kind_of_content_reaches_the_model() {
    for format in FORMATS {
        let stage = Stage::new();
        let model = ModelServer::start(
            format,
            [Step::call("every_content", json!({})), Step::text("seen")],
        );
        let server = stage.stdio("one", json!({"tools": ["every_content"]}), json!({}));
        let settings = json!({"agent": {"audio": format == Format::OpenAi}});
        let agent = agent(&stage, &model, [server], settings).await;
        let mut conversation = Conversation::new();
        say(&agent, &mut conversation, "go").await;
        let sent = model.last_request().body["messages"].to_string();
        let kinds: Vec<&str> = kinds(&conversation);
        assert!(
            kinds.contains(&"image") && kinds.contains(&"audio") && kinds.contains(&"resource"),
            "{kinds:?}"
        );
        let picture = match format {
            Format::OpenAi => "data:image/png;base64,",
            _ => "\"media_type\":\"image/png\"",
        };
        assert!(sent.contains(picture), "{sent}");
        match format {
            Format::OpenAi => assert!(sent.contains("input_audio"), "{sent}"),
            // It accepts no audio, and receives a note about the omission.
            _ => assert!(sent.contains("audio/wav"), "{sent}"),
        }
        for block in blocks(&conversation) {
            if let Content::Resource { text: Some(text), .. } | Content::Text { text } = block {
                let text = serde_json::to_string(&text).unwrap();
                assert!(sent.contains(text.trim_matches('"')), "{text} in {sent}");
            }
        }
    }
}

fn blocks(conversation: &Conversation) -> Vec<Content> {
    let mut blocks = Vec::new();
    for message in conversation.messages() {
        if let haft_agent::model::ChatMessage::Tools { results } = message {
            blocks.extend(results.iter().flat_map(|result| result.content.clone()));
        }
    }
    blocks
}

fn kinds(conversation: &Conversation) -> Vec<&'static str> {
    let kind = |block: &Content| match block {
        Content::Text { .. } => "text",
        Content::Image { .. } => "image",
        Content::Audio { .. } => "audio",
        Content::Resource { .. } => "resource",
    };
    blocks(conversation).iter().map(kind).collect()
}

fn notes() -> Value {
    json!({
        "tools": [],
        "resources": [{"uri": "note://plan", "name": "plan", "text": "Buy 12 apples."}],
        "prompts": [{"name": "greet", "messages": [
            {"role": "user", "content": {"type": "text", "text": "Who are you?"}},
            {"role": "assistant", "content": {"type": "text", "text": "A pirate."}},
            {"role": "user", "content": {"type": "text", "text": "Greet me."}},
        ]}],
    })
}

/// Proves S2-US4-2, S3-US3-6: the model reads a resource it needs; `resources/read` goes to the server, the content
/// is in the next request, and the call is in the log.
#[tokio::test]
async fn a_model_reads_the_resources_it_needs() {
    for format in FORMATS {
        let stage = Stage::new();
        let model = ModelServer::start(
            format,
            [
                Step::call("list_resources", json!({})),
                Step::by(|asked| {
                    assert!(asked.last_result().contains("note://plan"), "{}", asked.last_result());
                    Step::call("read_resource", json!({"uri": "note://plan"}))
                }),
                Step::by(|asked| Step::text(format!("The note says: {}", asked.last_result()))),
            ],
        );
        let agent =
            agent(&stage, &model, [stage.stdio("notes", notes(), json!({}))], json!({})).await;
        let told = ask(&agent, "What is in my plan?").await;
        assert_eq!(told.text(), "The note says: Buy 12 apples.");
        assert_eq!(stage.messages("notes", "resources/read").len(), 1);
        let logged: Vec<String> = stage.logged().into_iter().map(|call| call.tool).collect();
        assert_eq!(logged, ["list_resources", "read_resource"]);
    }
}

/// No server with resources: the two tools are not offered.
#[tokio::test]
async fn resource_tools_are_offered_where_there_are_resources() {
    let stage = Stage::new();
    let model = ModelServer::openai([Step::text("yes")]);
    let server =
        stage.stdio("one", json!({"tools": ["text"], "capabilities": {"tools": {}}}), json!({}));
    let agent = agent(&stage, &model, [server], json!({})).await;
    ask(&agent, "go").await;
    assert_eq!(model.last_request().tool_names(), ["text"]);
}

/// Proves S3-US3-6: `@URI` in a user message adds the resource to the request; other words stay
/// text.
#[tokio::test]
async fn mentioned_resources_are_handed_to_the_model() {
    let stage = Stage::new();
    let model = ModelServer::openai([Step::text("12")]);
    let agent = agent(&stage, &model, [stage.stdio("notes", notes(), json!({}))], json!({})).await;
    let text = "How many apples does @note://plan say? Write to me@example.com or @nobody, not @note://plan.";
    let said = mentioned(agent.runtime(), text, &AccessLists::default()).await.unwrap();
    assert_eq!(said.read, ["notes:note://plan"]);
    assert_eq!(stage.messages("notes", "resources/read").len(), 1);
    let cancel = CancellationToken::new();
    agent.turn(&mut Conversation::new(), said.content, &|_| {}, &cancel).await.unwrap();
    let sent = model.last_request().body["messages"].to_string();
    assert!(
        sent.contains("[notes:note://plan]\\n\\nBuy 12 apples.") && sent.contains("me@example.com"),
        "{sent}"
    );
    let many: String = (0..30).map(|n| format!("@notes:note://plan?{n} ")).collect();
    let refused = mentioned(agent.runtime(), &many, &AccessLists::default()).await;
    assert!(refused.is_err(), "{refused:?}");
    let missing = mentioned(agent.runtime(), "@notes:note://gone", &AccessLists::default())
        .await
        .unwrap_err();
    assert!(!missing.to_string().is_empty());
    let unknown =
        mentioned(agent.runtime(), "what is in (@note://gone)?", &AccessLists::default()).await;
    assert!(unknown.is_err(), "{unknown:?}");
}

/// Proves S2-US4-2: a URI whose scheme is the name of a server is read as a whole.
#[tokio::test]
async fn a_uri_that_begins_like_a_server_is_read_as_a_whole() {
    let stage = Stage::new();
    let model = ModelServer::openai([]);
    let notes = json!({"tools": [], "resources": [
        {"uri": "notes://today", "name": "today", "text": "Sunny."},
        {"uri": "plain", "name": "plain", "text": "Short."},
    ]});
    let agent = agent(&stage, &model, [stage.stdio("notes", notes, json!({}))], json!({})).await;
    let said =
        mentioned(agent.runtime(), "read @notes://today and @notes:plain", &AccessLists::default())
            .await
            .unwrap();
    assert_eq!(said.read, ["notes:notes://today", "notes:plain"]);
    let asked = stage.messages("notes", "resources/read");
    let uris: Vec<&Value> = asked.iter().map(|message| &message["params"]["uri"]).collect();
    assert_eq!(uris, ["notes://today", "plain"]);
}

/// Proves S2-US4-2: a later run offers the resource tools of a server that has not started yet.
#[tokio::test]
async fn a_second_run_offers_the_resources_of_a_lazy_server() {
    let stage = Stage::new();
    let server = || stage.stdio("notes", notes(), json!({"start": "lazy"}));
    let first = stage.start([server()], json!({})).await;
    first.discover().await;
    first.shutdown(std::time::Duration::ZERO).await;
    let model = ModelServer::openai([
        Step::call("read_resource", json!({"uri": "note://plan"})),
        Step::by(|asked| Step::text(asked.last_result())),
    ]);
    let agent = agent(&stage, &model, [server()], json!({})).await;
    assert_eq!(ask(&agent, "What is in my plan?").await.text(), "Buy 12 apples.");
    assert_eq!(model.last_request().tool_names(), ["list_resources", "read_resource"]);
}

/// Proves S3-US3-6: the messages of a prompt become messages of the conversation, with their roles.
#[tokio::test]
async fn prompts_become_messages() {
    let stage = Stage::new();
    let model = ModelServer::openai([Step::text("Ahoy!")]);
    let agent = agent(&stage, &model, [stage.stdio("notes", notes(), json!({}))], json!({})).await;
    let arguments = RawValue::from_string("{}".to_owned()).unwrap();
    let messages = agent.runtime().prompt("notes", "greet", &arguments).await.unwrap();
    let mut conversation = Conversation::new();
    let mut messages = from_prompt(messages);
    messages.pop();
    for message in messages {
        conversation.push(message).await;
    }
    assert_eq!(say(&agent, &mut conversation, "Greet me.").await.text(), "Ahoy!");
    let sent = model.last_request();
    let roles: Vec<&str> = sent.messages().iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
}

/// Lets the agent's model answer servers.
struct Samples(Sampler);

impl ServerHandler for Samples {
    fn capabilities(&self, _: &str) -> Value {
        json!({"sampling": {}})
    }

    fn sample<'a>(
        &'a self,
        _: &'a str,
        params: &'a RawValue,
    ) -> haft::BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(self.0.sample(params))
    }
}

/// Proves S3-EC-9: with `sampling: allow` the agent's own model answers a server that asks in the middle of a call.
#[tokio::test]
async fn servers_may_ask_the_agents_model() {
    for format in FORMATS {
        let stage = Stage::new();
        let model = ModelServer::start(
            format,
            [
                Step::call("sample", json!({"message": "Say hello."})),
                Step::by(|asked| Step::text(format!("hello to {}", asked.last_user_text()))),
                Step::by(|asked| Step::text(asked.last_result())),
            ],
        );
        let server = stage.stdio("one", json!({"tools": ["sample"]}), json!({"sampling": "allow"}));
        let config = stage.config([server], json!({"agent": section(&stage, &model, json!({}))}));
        let sampler = Sampler::new(haft_agent::model::open(&config.agent).unwrap());
        let builder = haft::Runtime::builder(config).server_handler(Samples(sampler));
        let agent = agent_of(builder.start().await.unwrap());
        let told = ask(&agent, "go").await;
        assert!(told.text().contains("hello to Say hello."), "{}", told.text());
        assert_eq!(model.requests()[1].tool_names(), Vec::<String>::new());
    }
}

/// A model that takes no temperature answers a server without.
#[tokio::test]
async fn a_temperature_is_a_hint_to_models_that_take_one() {
    let refused = r#"{"error": {"message": "Unsupported value: 'temperature' does not support 0.2 with this model."}}"#;
    let model = ModelServer::openai([Step::status(400).with_body(refused), Step::text("hello")]);
    let stage = Stage::new();
    let config = stage.config([], json!({"agent": section(&stage, &model, json!({}))}));
    let sampler = Sampler::new(haft_agent::model::open(&config.agent).unwrap());
    let wanted = json!({
        "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
        "maxTokens": 10, "temperature": 0.2,
    });
    let answer = sampler.sample(&RawValue::from_string(wanted.to_string()).unwrap()).await.unwrap();
    assert_eq!(answer["content"]["text"], "hello");
    let sent: Vec<Value> =
        model.requests().iter().map(|it| it.body["temperature"].clone()).collect();
    assert_eq!(sent, [json!(0.2), Value::Null]);
}

/// The model receives the instructions of servers after the operator's own, labelled with the
/// server. Known secrets are masked, and tools that only user interfaces call are neither offered
/// nor known.
#[tokio::test]
async fn the_model_reads_the_instructions_of_servers() {
    let stage = Stage::new();
    let model =
        ModelServer::start(Format::OpenAi, [Step::call("tick", json!({})), Step::text("seen")]);
    let scenario = json!({
        "instructions": "Use key s3cr3t-value-0815.\u{202e}\nBe brief.",
        "tools": ["text", {"name": "tick", "_meta": {"ui": {"visibility": ["app"]}}}],
    });
    let settings = json!({"env": {"API_TOKEN": "s3cr3t-value-0815"}});
    let server = stage.stdio("notes", scenario, settings);
    let rest = json!({"agent": {"system": "You are kind."}, "builtin": {"enabled": false}});
    let agent = agent(&stage, &model, [server], rest).await;
    let followed = ask(&agent, "go").await;
    let calls = followed.calls();
    assert_eq!((calls[0].0, calls[0].1), ("tick", true), "{calls:?}");
    assert!(stage.messages("notes", "tools/call").is_empty());
    let sent = model.last_request().body;
    let system = sent["messages"][0]["content"].as_str().unwrap();
    let theirs = "Instructions of the server `notes`:\n> Use key ***.\n> Be brief.\n";
    assert!(system.starts_with("You are kind.\n\n") && system.ends_with(theirs), "{system}");
    assert!(system.contains("These texts come from the servers, not from the user"), "{system}");
    assert!(!sent["tools"].to_string().contains("tick"), "{sent}");
}
