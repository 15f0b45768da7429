//! Questions to people: asked by the built-in tool, answered by an attending client.

use std::time::Duration;

use haft::human_input::{
    AnswerError, CloseReason, HumanAnswer, HumanInbox, HumanInputError, HumanQuestion, InboxEvent,
    InboxItem, ItemKind,
};
use haft::{CallOrigin, Code, Config, Envelope, Runtime, Status, ToolCall};
use serde_json::{Value, json};

use super::support::{Bench, Held, empty, spawn, until};

/// The built-in tool that asks people, and no other.
pub const HUMAN: &str = "builtin: {enabled: false, request_human_input: {}}\n";

fn question(arguments: &Value) -> ToolCall {
    ToolCall::new("request_human_input", arguments).caller("me").session("s")
}

pub async fn asking(bench: &Bench, yaml: &str) -> Runtime {
    Runtime::start(bench.config(&format!("{HUMAN}{yaml}"))).await.unwrap()
}

/// Waits until `count` questions are open.
pub async fn open(inbox: &HumanInbox, count: usize) -> Vec<InboxItem> {
    until(|| inbox.open().len() == count).await;
    inbox.open()
}

/// A call and the answer to its only question.
pub async fn answered(
    runtime: &Runtime,
    call: ToolCall,
    answer: HumanAnswer,
) -> (Envelope, InboxItem) {
    let answering = async {
        let item = open(runtime.inbox(), 1).await.remove(0);
        runtime.inbox().answer(&item.id, answer, "ada").await.unwrap().item
    };
    tokio::join!(runtime.call(call), answering)
}

fn given(answer: &str) -> HumanAnswer {
    HumanAnswer::Given(json!(answer))
}

/// Proves S2-FR-006: the call waits, the question is visible, the answer resumes it.
#[tokio::test]
async fn the_answer_of_a_person_is_the_answer_of_the_tool() {
    let bench = Bench::new();
    let runtime = asking(&bench, "").await;
    let _attending = runtime.inbox().attend();
    let mut news = runtime.inbox().subscribe();
    let asked = question(&json!({"question": "Which colour?", "options": ["red", "blue"]}));
    let (envelope, item) = answered(&runtime, asked, given("blue")).await;
    assert_eq!(envelope.status, Status::Success);
    assert_eq!(envelope.content[0].as_text(), "blue");
    assert_eq!(envelope.data.unwrap().get(), r#"{"answer":"blue"}"#);
    assert_eq!((item.kind, item.question.as_str()), (ItemKind::Question, "Which colour?"));
    assert_eq!(item.execution_id.as_ref(), Some(&envelope.execution_id));
    assert_eq!((item.caller.as_deref(), item.session.as_deref()), (Some("me"), Some("s")));
    assert_eq!(item.expires.duration_since(item.asked).as_secs(), 3600);
    let InboxEvent::Asked(told) = news.recv().await.unwrap() else { panic!("not asked") };
    assert_eq!(told.id, item.id);
    let closed = serde_json::to_value(news.recv().await.unwrap()).unwrap();
    assert_eq!(closed, json!({"event": "closed", "id": item.id, "how": "answered"}));
    assert_eq!(bench.logged().len(), 1);
    let form = question(&json!({"question": "How many?", "schema": {"type": "integer"}}));
    let (envelope, _) = answered(&runtime, form, HumanAnswer::Given(json!(3))).await;
    assert_eq!(envelope.content[0].as_text(), "3");
}

/// Each way to get no answer has its code, its cause and its remedy.
#[tokio::test]
async fn no_answer_is_an_error_with_a_remedy() {
    let bench = Bench::new();
    let runtime = asking(&bench, "").await;
    let asked = || question(&json!({"question": "Why?", "timeout": 0.02}));
    let mut seen = Vec::new();
    seen.push(runtime.call(asked()).await);
    let _attending = runtime.inbox().attend();
    seen.push(runtime.call(asked()).await);
    let refused = HumanAnswer::Refused { reason: Some("not my business".into()) };
    let patient = question(&json!({"question": "Why?"}));
    seen.push(answered(&runtime, patient, refused).await.0);
    let wrong = json!({"question": "Why?", "schema": {"type": "no such type"}});
    seen.push(runtime.call(question(&wrong)).await);
    let errors: Vec<_> = seen.into_iter().map(|it| it.error.unwrap()).collect();
    let codes: Vec<Code> = errors.iter().map(|error| error.code).collect();
    let expected =
        [Code::ServiceUnavailable, Code::Timeout, Code::Denied, Code::ToolExecutionError];
    assert_eq!(codes, expected);
    let texts: Vec<String> = errors
        .iter()
        .map(|error| format!("{}\n  help: {}", error.message, error.remedy.as_ref().unwrap()))
        .collect();
    insta::assert_snapshot!(texts.join("\n"));
    assert!(runtime.inbox().open().is_empty());
}

/// Two questions wait at once, and the second is answered first.
#[tokio::test]
async fn questions_are_answered_in_any_order() {
    let bench = Bench::new();
    let runtime = asking(&bench, "").await;
    let _attending = runtime.inbox().attend();
    let first = runtime.call(question(&json!({"question": "one"})));
    let second = async {
        open(runtime.inbox(), 1).await;
        runtime.call(question(&json!({"question": "two"}))).await
    };
    let answering = async {
        let items = open(runtime.inbox(), 2).await;
        let asked: Vec<&str> = items.iter().map(|item| item.question.as_str()).collect();
        assert_eq!(asked, ["one", "two"]);
        for (at, answer) in [(1, "second"), (0, "first")] {
            runtime.inbox().answer(&items[at].id, given(answer), "ada").await.unwrap();
        }
    };
    let (first, second, ()) = tokio::join!(first, second, answering);
    assert_eq!(first.content[0].as_text(), "first");
    assert_eq!(second.content[0].as_text(), "second");
}

/// An answer that does not fit changes nothing; the first that fits counts, and no other.
#[tokio::test]
async fn a_wrong_answer_leaves_the_question_open() {
    let inbox = HumanInbox::default();
    let _attending = inbox.attend();
    let ask = HumanQuestion::new(ItemKind::Question, "Which?")
        .options(["a", "b"])
        .schema(json!({"minLength": 1}));
    let answering = async {
        let id = open(&inbox, 1).await.remove(0).id;
        for wrong in [json!("c"), json!(1), json!(null), json!(["a"])] {
            let error = inbox.answer(&id, HumanAnswer::Given(wrong), "ada").await.unwrap_err();
            let AnswerError::Invalid { violations } = error else { panic!("{error}") };
            assert_eq!(violations[0].problem, r#"expected one of ["a","b"]"#);
            assert_eq!(inbox.item(&id).unwrap().question, "Which?");
        }
        inbox.answer(&id, given("b"), "ada").await.unwrap();
        let late = inbox.answer(&id, given("a"), "eve").await.unwrap_err();
        assert_eq!(late, AnswerError::Unknown);
    };
    let (answer, ()) = tokio::join!(inbox.ask(ask), answering);
    assert_eq!(answer.unwrap(), json!("b"));
    let strict = HumanQuestion::new(ItemKind::Question, "How many?")
        .schema(json!({"type": "object", "required": ["count"]}));
    let answering = async {
        let id = open(&inbox, 1).await.remove(0).id;
        let error = inbox.answer(&id, HumanAnswer::Given(json!({})), "ada").await.unwrap_err();
        assert_eq!(error.to_string(), "the answer does not fit: `count` is missing");
        inbox.answer(&id, HumanAnswer::Given(json!({"count": 1})), "ada").await.unwrap();
    };
    let (answer, ()) = tokio::join!(inbox.ask(strict), answering);
    assert_eq!(answer.unwrap(), json!({"count": 1}));
}

/// A cancelled call withdraws its question, and subscribers are notified.
#[tokio::test]
async fn a_call_that_ends_takes_its_question_with_it() {
    let bench = Bench::new();
    let runtime = asking(&bench, "").await;
    let _attending = runtime.inbox().attend();
    let mut news = runtime.inbox().subscribe();
    let cancelling = async {
        let item = open(runtime.inbox(), 1).await.remove(0);
        assert!(runtime.cancel(item.execution_id.as_deref().unwrap()));
    };
    let asked = question(&json!({"question": "Still there?"}));
    let (envelope, ()) = tokio::join!(runtime.call(asked), cancelling);
    assert_eq!(envelope.error.unwrap().code, Code::Cancelled);
    news.recv().await.unwrap();
    let InboxEvent::Closed { how, .. } = news.recv().await.unwrap() else { panic!("not closed") };
    assert_eq!(how, CloseReason::Withdrawn);
    assert!(runtime.inbox().open().is_empty());
}

/// A call that waits for a person holds no slot of the toolbox, so other tools continue.
#[tokio::test]
async fn waiting_for_people_holds_up_nobody() {
    let bench = Bench::new();
    let held = Held::new();
    held.release.add_permits(1);
    let yaml = format!("{HUMAN}defaults: {{max_concurrent: 1}}\ntools: [{{name: work}}]");
    let runtime =
        Runtime::builder(bench.config(&yaml)).tool(held.tool("work")).start().await.unwrap();
    let _attending = runtime.inbox().attend();
    let asked = ["one", "two"].map(|text| question(&json!({ "question": text })));
    let mut waiting = spawn(&runtime, asked);
    let items = open(runtime.inbox(), 2).await;
    assert_eq!(runtime.call(empty("work")).await.status, Status::Success);
    for item in items {
        runtime.inbox().answer(&item.id, given("go on"), "ada").await.unwrap();
    }
    while let Some(envelope) = waiting.join_next().await {
        assert_eq!(envelope.unwrap().status, Status::Success);
    }
}

/// The inbox outlives a change of the configuration, and follows it.
#[tokio::test]
async fn the_time_to_answer_follows_the_configuration() {
    let bench = Bench::new();
    let runtime = asking(&bench, "inbox: {timeout: 2m}").await;
    let _attending = runtime.inbox().attend();
    let lasts = |item: &InboxItem| item.expires.duration_since(item.asked).as_secs();
    let changed: Config = bench.config(&format!("{HUMAN}inbox: {{timeout: 5m}}"));
    let ask = |text: &str| question(&json!({"question": text, "timeout": 10_000}));
    let changing = async {
        assert_eq!(lasts(&open(runtime.inbox(), 1).await[0]), 120);
        runtime.apply(changed).await.unwrap();
        let timeout = runtime.tool("request_human_input").unwrap().setting("timeout").cloned();
        assert_eq!(timeout, Some(json!("310s")));
        let later = async {
            let items = open(runtime.inbox(), 2).await;
            assert_eq!(lasts(&items[1]), 300);
            for item in items {
                runtime.inbox().answer(&item.id, given("yes"), "ada").await.unwrap();
            }
        };
        tokio::join!(runtime.call(ask("second")), later).0
    };
    let (first, second) = tokio::join!(runtime.call(ask("first")), changing);
    assert_eq!((first.status, second.status), (Status::Success, Status::Success));
}

/// The number of open questions is limited, and the error names the limit.
#[tokio::test]
async fn too_many_questions_are_refused() {
    let inbox = HumanInbox::default();
    let _attending = inbox.attend();
    let mut waiting = tokio::task::JoinSet::new();
    for number in 0..haft::human_input::OPEN_MAX {
        let inbox = inbox.clone();
        waiting.spawn(async move {
            inbox.ask(HumanQuestion::new(ItemKind::Question, number.to_string())).await
        });
    }
    open(&inbox, haft::human_input::OPEN_MAX).await;
    let error = inbox.ask(HumanQuestion::new(ItemKind::Question, "one more")).await.unwrap_err();
    assert!(matches!(error, HumanInputError::Full { .. }), "{error}");
    assert!(error.remedy().to_string().contains("answer or refuse"));
    waiting.shutdown().await;
    assert!(inbox.open().is_empty());
    let of = |caller: &str| {
        let origin = CallOrigin { caller: Some(caller.to_owned()), ..CallOrigin::default() };
        HumanQuestion::new(ItemKind::Question, "?").origin(origin)
    };
    for _ in 0..haft::human_input::OPEN_OF_ONE_CALLER_MAX {
        let (inbox, ask) = (inbox.clone(), of("ada"));
        waiting.spawn(async move { inbox.ask(ask).await });
    }
    open(&inbox, haft::human_input::OPEN_OF_ONE_CALLER_MAX).await;
    let error = inbox.ask(of("ada")).await.unwrap_err().to_string();
    assert!(error.ends_with("100 of them are of this caller, the limit"), "{error}");
    let brief = of("bob").within(Duration::from_millis(1));
    assert!(matches!(inbox.ask(brief).await, Err(HumanInputError::Expired { .. })));
    waiting.shutdown().await;
    let large = "x".repeat(haft::human_input::OPEN_BYTES_MAX + 1);
    let error = inbox.ask(HumanQuestion::new(ItemKind::Question, large)).await.unwrap_err();
    assert!(matches!(error, HumanInputError::Full { .. }));
    let brief = HumanQuestion::new(ItemKind::Question, "now?").within(Duration::from_millis(1));
    let after = Duration::from_millis(1);
    assert_eq!(inbox.ask(brief).await, Err(HumanInputError::Expired { after }));
}

/// A schema that would take the process with it, or keep it busy, is refused; so is an answer that takes too long to check.
#[tokio::test]
async fn schemas_that_ask_for_too_much_are_refused() {
    let bench = Bench::new();
    let runtime = asking(&bench, "").await;
    let _attending = runtime.inbox().attend();
    let link = |n: usize| (format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}));
    let links: serde_json::Map<String, Value> = (0..5000).map(link).collect();
    let chain = json!({"$ref": "#/$defs/d0", "$defs": links});
    let patterns: Vec<Value> =
        (0..600).map(|n| json!({"pattern": format!("^([^a]{{70}}){{20}}x{n}")})).collect();
    for schema in [chain, json!({ "anyOf": patterns })] {
        let envelope = runtime.call(question(&json!({"question": "?", "schema": schema}))).await;
        assert_eq!(envelope.error.unwrap().code, Code::ToolExecutionError);
    }
    let rules = vec![json!({"minLength": 1}); 500];
    let heavy = json!({"type": "array", "items": {"allOf": rules}});
    let asked = question(&json!({"question": "?", "schema": heavy}));
    let person = async {
        let item = open(runtime.inbox(), 1).await.remove(0);
        let long = HumanAnswer::Given(json!(vec!["a"; 1_000_000]));
        let error = runtime.inbox().answer(&item.id, long, "ada").await.unwrap_err();
        assert!(
            matches!(&error, AnswerError::Invalid { violations } if violations[0].problem.contains("it took longer than")),
            "{error:?}"
        );
        runtime.inbox().answer(&item.id, HumanAnswer::Given(json!(["b"])), "ada").await.unwrap();
    };
    let (envelope, ()) = tokio::join!(runtime.call(asked), person);
    assert_eq!(envelope.status, Status::Success);
}
