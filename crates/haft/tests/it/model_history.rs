//! A conversation sent to a different model, or after a failed turn.

use haft::Content;
use haft_agent::model::{ChatMessage, ModelCall, ModelRequest, ModelResult};
use serde_json::{Value, json};
use testkit::model::Format;
use testkit::{ModelServer, Step};

use crate::model_support::{model, turn};

const ALL: [Format; 4] = [Format::OpenAi, Format::Anthropic, Format::Gemini, Format::Ollama];

/// The request for these messages.
async fn sent(format: Format, messages: Vec<ChatMessage>) -> Vec<Value> {
    let server = ModelServer::start(format, [Step::text("ok")]);
    turn(&model(&server, ""), ModelRequest { messages, ..ModelRequest::default() }).await;
    server.last_request().messages().to_vec()
}

fn called(id: &str) -> [ChatMessage; 2] {
    let name = "look".to_owned();
    let call = ModelCall { id: id.into(), name: name.clone(), arguments: "{}".into() };
    let content = vec![Content::text("seen")];
    let result = ModelResult { call_id: id.into(), name, content, is_error: false };
    let assistant =
        ChatMessage::Assistant { text: String::new(), calls: vec![call], provider_state: None };
    [assistant, ChatMessage::Tools { results: vec![result] }]
}

/// Ids that one provider gives and another refuses are others on the way, the same for the call and its answer.
#[tokio::test]
async fn ids_of_calls_are_such_as_the_provider_takes() {
    let long = format!("chatcmpl-tool-{}", "a".repeat(32));
    let is_plain = |id: &str| {
        id.len() <= 40 && id.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it))
    };
    for id in ["call#a_name_of_many_letters#18446744073709551615", "functions.look:0", &long] {
        let messages: Vec<ChatMessage> =
            [ChatMessage::user("look")].into_iter().chain(called(id)).collect();
        let openai = sent(Format::OpenAi, messages.clone()).await;
        let sent_id = openai[1]["tool_calls"][0]["id"].as_str().unwrap().to_owned();
        assert_eq!(openai[2]["tool_call_id"], sent_id);
        assert!(sent_id.len() <= 40, "{sent_id}");
        let anthropic = sent(Format::Anthropic, messages).await;
        let sent_id = anthropic[1]["content"][0]["id"].as_str().unwrap().to_owned();
        assert_eq!(anthropic[2]["content"][0]["tool_use_id"], sent_id);
        assert!(is_plain(&sent_id), "{sent_id}");
    }
    // Widely accepted ids stay, and so do those that only the same service may interpret.
    for id in ["call_abc-1", "functions.look:0"] {
        let openai = sent(Format::OpenAi, called(id).to_vec()).await;
        assert_eq!(openai[0]["tool_calls"][0]["id"], id);
    }
}

/// A failed turn leaves a message without an answer. The next message joins it: some models reject
/// two in a row, and some services reject lists.
#[tokio::test]
async fn consecutive_user_messages_are_joined() {
    let resource = Content::Resource {
        uri: "file:///a".into(),
        mime_type: Some("text/plain".into()),
        text: Some("AAA".into()),
        data: None,
        about: haft::ResourceAbout::default(),
    };
    for format in ALL {
        let messages = vec![
            ChatMessage::user("one"),
            ChatMessage::User { content: vec![Content::text("two"), resource.clone()] },
        ];
        let sent = sent(format, messages).await;
        let said = if format == Format::Gemini {
            sent[0]["parts"][0]["text"].clone()
        } else {
            sent[0]["content"].clone()
        };
        assert_eq!((sent.len(), said), (1, json!("one\n\ntwo\n\nAAA")), "{format:?}");
    }
}
