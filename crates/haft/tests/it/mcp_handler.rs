//! Requests and notifications of servers: sampling, elicitation, log messages, list changes.

use std::sync::{Arc, Mutex};

use haft::{CallOrigin, Refusal, ServerHandler, Status, ToolCall};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use testkit::LogCapture;
use tokio_util::sync::CancellationToken;

use super::mcp_support::{Stage, answer, call};
use super::support::until;

type Answer<'a, T> = haft::BoxFuture<'a, T>;

/// A program that answers every request, records it, and approves as configured.
#[derive(Clone, Default)]
struct Program {
    agrees: bool,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Program {
    fn note(&self, line: String) {
        self.heard.lock().unwrap().push(line);
    }

    fn heard(&self, part: &str) -> usize {
        self.heard.lock().unwrap().iter().filter(|line| line.contains(part)).count()
    }
}

impl ServerHandler for Program {
    fn capabilities(&self, _: &str) -> Value {
        json!({"sampling": {}, "elicitation": {}, "roots": {}})
    }

    fn approve_sampling<'a>(&'a self, server: &'a str, _: &'a RawValue) -> Answer<'a, bool> {
        self.note(format!("approve {server}"));
        Box::pin(async { self.agrees })
    }

    fn sample<'a>(
        &'a self,
        server: &'a str,
        params: &'a RawValue,
    ) -> Answer<'a, Result<Value, Refusal>> {
        self.note(format!("sample {server} {params}"));
        let message = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "hello"}});
        Box::pin(async { Ok(message) })
    }

    fn elicit<'a>(
        &'a self,
        server: &'a str,
        params: &'a RawValue,
    ) -> Answer<'a, Result<Value, Refusal>> {
        self.note(format!("elicit {server} {params}"));
        Box::pin(async { Ok(json!({"action": "accept", "content": {"name": "Ada"}})) })
    }

    fn roots<'a>(&'a self, _: &'a str) -> Answer<'a, Result<Value, Refusal>> {
        Box::pin(async { Ok(json!({"roots": [{"uri": "file:///here"}]})) })
    }

    fn on_notification(&self, server: &str, method: &str, params: Option<&RawValue>) {
        self.note(format!("{server} {method} {}", params.map_or("", RawValue::get)));
    }

    fn on_server_error(&self, server: &str, error: &str) {
        self.note(format!("error of {server}: {error}"));
    }
}

/// The answer that the server's `sample` received, and our log of it.
async fn sample(setting: Option<&str>, program: Program) -> (Value, Vec<String>) {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let settings = setting.map_or(json!({}), |setting| json!({ "sampling": setting }));
    let server = stage.stdio("one", json!({"tools": ["sample"]}), settings);
    let runtime = stage.builder([server], json!({})).server_handler(program).start().await.unwrap();
    let answer = answer(&runtime, "sample", json!({"message": "Say hello."})).await;
    let lines = heard.lines().into_iter().filter(|line| line.contains("sampling/createMessage"));
    (answer, lines.collect())
}

/// Proves S3-EC-9: refused by default, with a clear reason; the request is logged, the model is not
/// called, and the capability is not declared.
#[tokio::test]
async fn sampling_is_refused_by_default() {
    for setting in [None, Some("deny")] {
        let program = Program { agrees: true, ..Program::default() };
        let (answer, lines) = sample(setting, program.clone()).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("`sampling: deny`"), "{message}");
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("INFO: refused a request of the server"), "{lines:?}");
        assert_eq!((program.heard("sample"), program.heard("approve")), (0, 0));
    }
}

/// Proves S3-EC-9: with `ask` a person decides each time.
#[tokio::test]
async fn sampling_may_be_asked_about() {
    let program = Program { agrees: true, ..Program::default() };
    let (answer, lines) = sample(Some("ask"), program.clone()).await;
    assert_eq!(answer["result"]["content"]["text"], json!("hello"));
    assert_eq!((program.heard("approve one"), program.heard("sample one")), (1, 1));
    assert!(lines[0].starts_with("INFO: answered a request of the server"), "{lines:?}");
    let program = Program::default();
    let (answer, _) = sample(Some("ask"), program.clone()).await;
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("no person approved"),
        "{answer}"
    );
    assert_eq!((program.heard("approve one"), program.heard("sample one")), (1, 0));
}

/// Proves S3-EC-9: with `allow` the model answers, and gets what the server sent.
#[tokio::test]
async fn sampling_may_be_allowed() {
    let program = Program::default();
    let (answer, _) = sample(Some("allow"), program.clone()).await;
    assert_eq!(answer["result"]["content"]["text"], json!("hello"));
    assert_eq!((program.heard("approve"), program.heard("sample one")), (0, 1));
    assert_eq!(program.heard("Say hello."), 1);
}

/// Proves S3-FR-028: the embedding program answers questions and roots; without one both are
/// refused with a reason.
#[tokio::test]
async fn a_program_answers_what_servers_ask() {
    let stage = Stage::new();
    let program = Program::default();
    let runtime = stage
        .builder([stage.plain("one")], json!({}))
        .server_handler(program.clone())
        .start()
        .await
        .unwrap();
    let elicited = answer(&runtime, "elicit", json!({"message": "Your name?"})).await;
    assert_eq!(elicited["result"]["content"], json!({"name": "Ada"}));
    assert_eq!(program.heard("Your name?"), 1);
    let roots = answer(&runtime, "roots", json!({})).await;
    assert_eq!(roots["result"]["roots"][0]["uri"], json!("file:///here"));
    assert_eq!(answer(&runtime, "ping_client", json!({})).await["result"], json!({}));
    let alone = Stage::new();
    let runtime = alone.start([alone.plain("one")], json!({})).await;
    for tool in ["elicit", "roots"] {
        let refused = answer(&runtime, tool, json!({})).await;
        assert!(refused["error"]["message"].as_str().unwrap().contains("refused"), "{refused}");
    }
}

/// A program that records the call of each request, and never answers.
#[derive(Clone, Default)]
struct Silent {
    asked: Arc<Mutex<Vec<CallOrigin>>>,
    dropped: Arc<Mutex<usize>>,
}

/// Counts questions that are not waited for any more.
struct Dropped(Arc<Mutex<usize>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        *self.0.lock().unwrap() += 1;
    }
}

impl ServerHandler for Silent {
    fn capabilities(&self, _: &str) -> Value {
        json!({"sampling": {}, "elicitation": {}})
    }

    fn approve_sampling_for<'a>(
        &'a self,
        call: &'a CallOrigin,
        _: &'a str,
        _: &'a RawValue,
    ) -> Answer<'a, bool> {
        self.asked.lock().unwrap().push(call.clone());
        let dropped = Dropped(Arc::clone(&self.dropped));
        Box::pin(async move {
            let _dropped = dropped;
            std::future::pending().await
        })
    }

    fn elicit_for<'a>(
        &'a self,
        call: &'a CallOrigin,
        _: &'a str,
        _: &'a RawValue,
    ) -> Answer<'a, Result<Value, Refusal>> {
        self.asked.lock().unwrap().push(call.clone());
        let dropped = Dropped(Arc::clone(&self.dropped));
        Box::pin(async move {
            let _dropped = dropped;
            std::future::pending().await
        })
    }
}

/// Proves S3-EC-9: a program receives the call that a server request belongs to, and the request
/// ends with that call.
#[tokio::test]
async fn a_question_of_a_server_belongs_to_its_call() {
    for era in ["legacy", "modern"] {
        for tool in ["elicit", "sample"] {
            let stage = Stage::new();
            let program = Silent::default();
            let scenario = json!({"tools": ["elicit", "sample"], "era": era});
            let settings = json!({"sampling": "ask", "protocol": era});
            let server = stage.stdio("one", scenario, settings);
            let builder = stage.builder([server], json!({}));
            let runtime = builder.server_handler(program.clone()).start().await.unwrap();
            let cancel = CancellationToken::new();
            let call = ToolCall::new(tool, &json!({})).caller("ada").session("s");
            let ending = async {
                until(|| !program.asked.lock().unwrap().is_empty()).await;
                cancel.cancel();
            };
            let calling = runtime.call(call.cancelled_by(cancel.clone()));
            let (envelope, ()) = tokio::join!(calling, ending);
            until(|| *program.dropped.lock().unwrap() == 1).await;
            let origin = CallOrigin {
                execution_id: Some(envelope.execution_id),
                caller: Some("ada".to_owned()),
                session: Some("s".to_owned()),
            };
            assert_eq!(*program.asked.lock().unwrap(), [origin], "{era} {tool}");
        }
    }
}

/// If a request may belong to several calls, the program receives only their common attributes:
/// never one caller's question for another.
#[tokio::test]
async fn a_question_that_several_calls_may_have_asked_has_no_owner() {
    let cases = [
        (("ada", "s"), ("ada", "s"), (Some("ada"), Some("s"))),
        (("ada", "s"), ("ada", "t"), (Some("ada"), None)),
        (("ada", "s"), ("bob", "s"), (None, None)),
    ];
    for (first, second, (caller, session)) in cases {
        let stage = Stage::new();
        let program = Silent::default();
        let server = stage.stdio("one", json!({"tools": ["elicit"]}), json!({}));
        let builder = stage.builder([server], json!({}));
        let runtime = builder.server_handler(program.clone()).start().await.unwrap();
        let cancel = CancellationToken::new();
        let call = |(caller, session): (&str, &str)| {
            let call = ToolCall::new("elicit", &json!({})).caller(caller).session(session);
            runtime.call(call.cancelled_by(cancel.clone()))
        };
        let later = async {
            until(|| program.asked.lock().unwrap().len() == 1).await;
            call(second).await
        };
        let ending = async {
            until(|| program.asked.lock().unwrap().len() == 2).await;
            cancel.cancel();
        };
        tokio::join!(call(first), later, ending);
        let shared = CallOrigin {
            execution_id: None,
            caller: caller.map(ToOwned::to_owned),
            session: session.map(ToOwned::to_owned),
        };
        assert_eq!(program.asked.lock().unwrap()[1], shared);
        until(|| *program.dropped.lock().unwrap() == 2).await;
    }
}

/// Proves S3-EC-8, S3-FR-027, S0-47: each of the eight levels at ours, the highest with a field.
#[tokio::test]
async fn log_messages_arrive_at_their_level() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let runtime = stage.start([stage.plain("one")], json!({})).await;
    // The wish for messages of every level goes out without waiting for its answer.
    until(|| !stage.messages("one", "logging/setLevel").is_empty()).await;
    call(&runtime, "log_all_levels", json!({})).await;
    until(|| heard.count("an emergency message") + heard.count("a emergency message") > 0).await;
    let mut lines = heard.lines();
    lines.retain(|line| line.contains("logger=fixture"));
    let line = |level: &str, word: &str, more: &str| {
        format!("{level}: a {word} message server=one logger=fixture{more}")
    };
    let expected = [
        line("DEBUG", "debug", ""),
        line("INFO", "info", ""),
        line("INFO", "notice", ""),
        line("WARNING", "warning", ""),
        line("ERROR", "error", ""),
        line("ERROR", "critical", " severity=critical"),
        line("ERROR", "alert", " severity=critical"),
        line("ERROR", "emergency", " severity=critical"),
    ];
    assert_eq!(lines, expected);
}

/// Proves S3-FR-028: progress, log messages, changed lists, updated resources, and what goes wrong.
#[tokio::test]
async fn a_program_hears_every_notice_and_every_trouble() {
    let stage = Stage::new();
    let program = Program::default();
    let runtime = stage
        .builder([stage.plain("one")], json!({}))
        .server_handler(program.clone())
        .start()
        .await
        .unwrap();
    for (tool, notice) in [
        ("progress", "one notifications/progress "),
        ("log_all_levels", "one notifications/message "),
        ("add_tool", "one notifications/tools/list_changed "),
        ("add_prompt", "one notifications/prompts/list_changed "),
        ("update_resource", "one notifications/resources/updated "),
    ] {
        assert_eq!(call(&runtime, tool, json!({})).await.status, Status::Success);
        until(|| program.heard(notice) > 0).await;
    }
    assert_eq!(program.heard("one notifications/progress "), 3);
    call(&runtime, "duplicate", json!({})).await;
    until(|| program.heard("error of one: the server answered a request that is not pending") == 1)
        .await;
    let before = program.heard("error of one: ");
    call(&runtime, "crash", json!({})).await;
    until(|| program.heard("error of one: ") > before).await;
}
