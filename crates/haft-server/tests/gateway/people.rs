//! `request_human_input` through `haft mcp`: the client that made the call asks its person.

use serde_json::{Value, json};
use testkit::Workspace;

use crate::support::Client;

/// A workspace with the tool that asks people, and more lines in its `haft.yaml`.
fn workspace(yaml: &str) -> Workspace {
    let human = "builtin: {enabled: false, request_human_input: {}}\n";
    Workspace::with(&[("haft.yaml", &format!("{human}{yaml}"))])
}

/// Calls the tool; the question that comes to the client.
fn asked(client: &mut Client, arguments: &Value) -> Value {
    let params = json!({"name": "request_human_input", "arguments": arguments});
    client.request(&json!("call"), "tools/call", &params);
    question(client)
}

fn question(client: &Client) -> Value {
    let question = client.next();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    question
}

/// Answers a question; the next message.
fn replied(client: &mut Client, question: &Value, reply: &Value) -> Value {
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": reply}));
    client.next()
}

fn accept(content: &Value) -> Value {
    json!({"action": "accept", "content": content})
}

/// The result of the call.
fn result(message: &Value) -> &Value {
    assert_eq!(message["id"], "call", "{message}");
    &message["result"]
}

/// Proves S2-FR-006: a question with options is a form with a choice, and the answer resumes the call.
#[test]
fn a_client_over_stdio_is_asked_and_its_answer_resumes_the_call() {
    let workspace = workspace("");
    let mut client = Client::connect(&workspace);
    let wish = json!({"question": "Which colour?", "options": ["red", "blue", "red"]});
    let question = asked(&mut client, &wish);
    let form = json!({
        "message": "Which colour?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "answer": {"type": "string", "title": "Answer", "enum": ["red", "blue"]},
            },
            "required": ["answer"],
        },
    });
    assert_eq!(question["params"], form);
    let answer = replied(&mut client, &question, &accept(&json!({"answer": "blue"})));
    let result = result(&answer);
    assert_eq!(result["structuredContent"], json!({"answer": "blue"}), "{answer}");
    assert_eq!(result["content"][0]["text"], "blue");
}

/// Each kind of answer has its form: free text, one value, a flat object as it is, and text for anything else.
#[test]
fn the_form_follows_from_what_the_answer_must_be() {
    let workspace = workspace("");
    let mut client = Client::connect(&workspace);
    let text = json!({"type": "string", "title": "Answer"});
    let flat = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "sure": {"type": "boolean"}},
        "required": ["n"],
    });
    let nested = json!({"type": "array", "items": {"type": "integer"}});
    let one = |field: &Value| json!({"type": "object", "properties": {"answer": field}, "required": ["answer"]});
    let json_text = json!({"type": "string", "title": "Answer, as JSON"});
    let number = json!({"type": "number", "minimum": 1});
    for (schema, form, content, answer) in [
        (None, one(&text), json!({"answer": "any"}), json!("any")),
        (Some(&number), one(&number), json!({"answer": 2.5}), json!(2.5)),
        (Some(&flat), flat.clone(), json!({"n": 1, "sure": true}), json!({"n": 1, "sure": true})),
        (Some(&nested), one(&json_text), json!({"answer": "[1, 2]"}), json!([1, 2])),
    ] {
        let mut wish = json!({"question": "What?"});
        if let Some(schema) = schema {
            wish["schema"] = schema.clone();
        }
        let question = asked(&mut client, &wish);
        let params = &question["params"];
        assert_eq!(params["requestedSchema"], form);
        let says_schema = params["message"].as_str().unwrap().contains(r#""items""#);
        assert_eq!(says_schema, schema == Some(&nested), "{params}");
        let message = replied(&mut client, &question, &accept(&content));
        assert_eq!(result(&message)["structuredContent"], json!({"answer": answer}), "{message}");
    }
}

/// An invalid answer repeats the question with the error. A client that never gets it right ends the call.
#[test]
fn an_answer_that_does_not_fit_is_asked_for_again() {
    let workspace = workspace("");
    let mut client = Client::connect(&workspace);
    let wish = json!({"question": "Which?", "options": ["a", "b"]});
    let question = asked(&mut client, &wish);
    let again = replied(&mut client, &question, &accept(&json!({"answer": "c"})));
    let message = again["params"]["message"].as_str().unwrap();
    assert_eq!(message, "The answer does not fit: expected one of [\"a\",\"b\"].\n\nWhich?");
    let answer = replied(&mut client, &again, &accept(&json!({"answer": "b"})));
    assert_eq!(result(&answer)["structuredContent"], json!({"answer": "b"}));

    let mut message = asked(&mut client, &wish);
    for unfit in [accept(&json!({})), json!({"action": "accept"}), accept(&json!({"answer": 1}))] {
        assert_eq!(message["method"], "elicitation/create", "{message}");
        message = replied(&mut client, &message, &unfit);
    }
    let result = result(&message);
    assert_eq!(result["isError"], true);
    insta::assert_snapshot!(
        result["content"][0]["text"].as_str().unwrap(),
        @r#"ServiceUnavailable: the client that made the call was asked and gave no usable answer: the answer does not fit: expected one of ["a","b"]"#
    );
}

/// A person who declines or closes the form has refused; a client that fails has not asked.
#[test]
fn without_an_answer_the_call_has_a_reason() {
    let workspace = workspace("");
    let mut client = Client::connect(&workspace);
    let wish = json!({"question": "Anything?"});
    let mut texts = Vec::new();
    for reply in [json!({"action": "decline"}), json!({"action": "cancel"}), json!({"odd": 1})] {
        let question = asked(&mut client, &wish);
        let message = replied(&mut client, &question, &reply);
        assert_eq!(result(&message)["isError"], true);
        texts.push(result(&message)["content"][0]["text"].as_str().unwrap().to_owned());
    }
    let question = asked(&mut client, &wish);
    let error = json!({"code": -32603, "message": "no window"});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}));
    let message = client.next();
    texts.push(result(&message)["content"][0]["text"].as_str().unwrap().to_owned());
    insta::assert_snapshot!(texts.join("\n"), @r"
    Denied: a person refused to answer
    Denied: a person refused to answer: the question was closed without an answer
    ServiceUnavailable: the client that made the call was asked and gave no usable answer: its answer cannot be read: missing field `action` at line 1 column 9
    ServiceUnavailable: the client that made the call was asked and gave no usable answer: no window
    ");
}

/// A question that expires is cancelled at the client.
#[test]
fn a_question_that_expires_is_cancelled_at_the_client() {
    let workspace = workspace("");
    let mut client = Client::connect(&workspace);
    let question = asked(&mut client, &json!({"question": "Anybody?", "timeout": 0.1}));
    let cancelled = client.next();
    assert_eq!(cancelled["method"], "notifications/cancelled", "{cancelled}");
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
    let message = client.next();
    assert!(result(&message).to_string().contains("no answer came within"), "{message}");
}

/// Without a possible answer the call fails at once, even if a webhook would receive the question.
#[test]
fn a_client_that_cannot_be_asked_fails_at_once() {
    for yaml in ["", "inbox: {webhook: 'http://127.0.0.1:9/questions', timeout: 2s}\n"] {
        let workspace = workspace(yaml);
        for capabilities in [json!({}), json!({"elicitation": {"url": {}}})] {
            let mut client = Client::start(&workspace);
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities});
            client.ask(&json!(0), "initialize", &params);
            client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            let result = client.call("request_human_input", &json!({"question": "Anybody?"}));
            assert_eq!(result["isError"], true);
            insta::allow_duplicates! {
                insta::assert_snapshot!(
                    result["content"][0]["text"].as_str().unwrap(),
                    @"ServiceUnavailable: the client that made the call cannot be asked: it does not declare `elicitation`; use a client that does, or a service, whose inbox people can answer"
                );
            }
        }
    }
}
