//! Images, audio and resources reach the model in order, or a note replaces them.

use haft::Content;
use haft_agent::model::{ChatMessage, ModelCall, ModelRequest, ModelResult};
use serde_json::{Value, json};
use testkit::{ModelServer, Step};

use crate::model_support::{model, turn};

fn image() -> Content {
    Content::Image { data: "aW1n".into(), mime_type: "image/png".into() }
}

fn sound() -> Content {
    Content::Audio { data: "c25k".into(), mime_type: "audio/wav".into() }
}

fn resource(text: Option<&str>, data: Option<&str>, mime_type: &str) -> Content {
    Content::Resource {
        uri: "file:///r".into(),
        mime_type: Some(mime_type.into()),
        text: text.map(Into::into),
        data: data.map(Into::into),
        about: haft::ResourceAbout::default(),
    }
}

/// The request for these results of calls.
async fn sent(server: &ModelServer, lines: &str, results: Vec<(Vec<Content>, bool)>) -> Vec<Value> {
    let mut calls = Vec::new();
    let mut answers = Vec::new();
    for (at, (content, is_error)) in results.into_iter().enumerate() {
        let (id, name) = (format!("id{at}"), "look".to_owned());
        calls.push(ModelCall { id: id.clone(), name: name.clone(), arguments: "{}".into() });
        answers.push(ModelResult { call_id: id, name, content, is_error });
    }
    let messages = vec![
        ChatMessage::user("look"),
        ChatMessage::Assistant { text: String::new(), calls, provider_state: None },
        ChatMessage::Tools { results: answers },
    ];
    turn(&model(server, lines), ModelRequest { messages, ..ModelRequest::default() }).await;
    server.last_request().messages()[2..].to_vec()
}

/// Proves S3-US3-2, S3-US3-4 (as far as a vision model).
#[tokio::test]
async fn anthropic_gets_pictures_inside_the_result_and_failures_marked() {
    let server = ModelServer::anthropic([Step::text("ok")]);
    let first = vec![Content::text("before"), image(), Content::text("after"), sound()];
    let second = vec![resource(Some("whole text"), None, "text/plain"), Content::text("broken")];
    let sent = sent(&server, "", vec![(first, false), (second, true)]).await;
    let picture = json!({"type": "image", "source":
        {"type": "base64", "media_type": "image/png", "data": "aW1n"}});
    assert_eq!(
        sent,
        [json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "id0", "content": [
                {"type": "text", "text": "before"},
                picture,
                {"type": "text", "text": "after"},
                {"type": "text", "text": "[left out, this model is not shown it: audio/wav, 3 bytes]"},
            ]},
            {"type": "tool_result", "tool_use_id": "id1", "is_error": true, "content": [
                {"type": "text", "text": "whole text"},
                {"type": "text", "text": "broken"},
            ]},
        ]})]
    );
}

/// Proves S3-US3-2, S3-US3-3, S3-US3-4 (as far as a model of OpenAI's format).
#[tokio::test]
async fn openai_gets_pictures_and_sounds_after_the_results_with_their_call() {
    let server = ModelServer::openai([Step::text("ok")]);
    let first = vec![Content::text("before"), image(), Content::text("after"), sound()];
    let second = vec![resource(None, Some("aW1n"), "image/jpg"), Content::text("broken")];
    let sent = sent(&server, "audio: true", vec![(first, false), (second, true)]).await;
    assert_eq!(
        sent,
        [
            json!({"role": "tool", "tool_call_id": "id0", "content":
                "before\n[image/png, shown below as attachment 1 of this result]\nafter\n\
                 [audio/wav, shown below as attachment 2 of this result]"}),
            json!({"role": "tool", "tool_call_id": "id1", "content":
                "[image/jpeg, shown below as attachment 1 of this result]\nbroken"}),
            json!({"role": "user", "content": [
                {"type": "text", "text": "Attachment 1 of the result of `look` (call id0):"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}},
                {"type": "text", "text": "Attachment 2 of the result of `look` (call id0):"},
                {"type": "input_audio", "input_audio": {"data": "c25k", "format": "wav"}},
                {"type": "text", "text": "Attachment 1 of the result of `look` (call id1):"},
                {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,aW1n"}},
            ]}),
        ]
    );
}

#[tokio::test]
async fn what_a_model_is_not_shown_is_said() {
    for (server, lines) in [
        (ModelServer::openai([Step::text("ok")]), "images: false"),
        (ModelServer::anthropic([Step::text("ok")]), "images: false\naudio: true"),
    ] {
        let odd = Content::Image { data: "PHN2Zz4=".into(), mime_type: "image/svg+xml".into() };
        let bytes = resource(None, Some("AAAA"), "application/zip");
        let content = vec![image(), sound(), odd, bytes];
        sent(&server, lines, vec![(content, false)]).await;
        let told = &server.last_request().results()[0].text;
        assert_eq!(
            told,
            "[left out, this model is not shown it: image/png, 3 bytes]\n\
             [left out, this model is not shown it: audio/wav, 3 bytes]\n\
             [left out, this model is not shown it: image/svg+xml, 5 bytes]\n\
             [left out, this model is not shown it: resource file:///r, application/zip, 3 bytes]"
        );
    }
}

#[tokio::test]
async fn a_person_can_show_pictures_too() {
    let content = vec![Content::text("What is this?"), image(), Content::text("")];
    let messages = vec![ChatMessage::User { content }];
    let request = ModelRequest { messages, ..ModelRequest::default() };
    let server = ModelServer::openai([Step::text("ok")]);
    turn(&model(&server, ""), request.clone()).await;
    assert_eq!(
        server.last_request().messages()[0]["content"],
        json!([{"type": "text", "text": "What is this?"},
               {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}}])
    );
    let server = ModelServer::anthropic([Step::text("ok")]);
    turn(&model(&server, ""), request).await;
    assert_eq!(
        server.last_request().messages()[0]["content"],
        json!([{"type": "text", "text": "What is this?"},
               {"type": "image", "source":
                    {"type": "base64", "media_type": "image/png", "data": "aW1n"}}])
    );
}

#[tokio::test]
async fn messages_that_say_nothing_are_not_refused() {
    let server = ModelServer::anthropic([Step::text("ok")]);
    let messages = vec![
        ChatMessage::user(" "),
        ChatMessage::Assistant { text: String::new(), calls: vec![], provider_state: None },
        ChatMessage::user("Hello?"),
    ];
    turn(&model(&server, ""), ModelRequest { messages, ..ModelRequest::default() }).await;
    assert_eq!(
        server.last_request().messages(),
        [json!({"role": "user", "content": "(empty message)\n\nHello?"})]
    );
}
