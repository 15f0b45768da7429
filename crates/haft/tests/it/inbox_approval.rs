//! Calls of tools with `approval: ask` that ask a person in the inbox.

use haft::human_input::{HumanAnswer, ItemKind};
use haft::{Code, Runtime, Status, ToolCall};
use serde_json::json;

use super::inbox::{answered, open};
use super::support::{Bench, Held};

const ASKING: &str = "tools: [{name: work, approval: ask, timeout: 30s}]\n";

async fn toolbox(bench: &Bench, yaml: &str) -> (Runtime, Held) {
    let held = Held::new();
    held.release.add_permits(100);
    let config = bench.config(&format!("{ASKING}{yaml}"));
    let runtime = Runtime::builder(config).tool(held.tool("work")).start().await.unwrap();
    (runtime, held)
}

fn work(session: &str) -> ToolCall {
    ToolCall::new("work", &json!({"path": "/x"})).caller("me").session(session).asking_people()
}

fn given(answer: &str) -> HumanAnswer {
    HumanAnswer::Given(json!(answer))
}

/// A person sees what is about to run. `allow` is for this call, `always` for those of the session.
#[tokio::test]
async fn a_person_agrees_once_or_for_good() {
    let bench = Bench::new();
    let (runtime, held) = toolbox(&bench, "").await;
    let _attending = runtime.inbox().attend();
    for answer in ["allow", "always"] {
        let (envelope, item) = answered(&runtime, work("one"), given(answer)).await;
        assert_eq!(envelope.status, Status::Success);
        assert_eq!((item.kind, item.tool.as_deref()), (ItemKind::Approval, Some("work")));
        assert_eq!(item.options, ["allow", "always", "deny"]);
        assert_eq!(item.arguments.unwrap().get(), r#"{"path":"/x"}"#);
        assert_eq!(item.execution_id, Some(envelope.execution_id));
    }
    assert_eq!(runtime.call(work("one")).await.status, Status::Success);
    let (other, _) = answered(&runtime, work("two"), given("deny")).await;
    assert_eq!(other.error.unwrap().code, Code::Denied);
    assert_eq!(held.total.load(std::sync::atomic::Ordering::SeqCst), 3);
}

/// A standing approval applies to waiting calls too, but not to those of other callers.
#[tokio::test]
async fn a_standing_approval_applies_to_waiting_calls() {
    let bench = Bench::new();
    let (runtime, _held) = toolbox(&bench, "").await;
    let _attending = runtime.inbox().attend();
    let calls = async { tokio::join!(runtime.call(work("one")), runtime.call(work("one"))) };
    let person = async {
        let items = open(runtime.inbox(), 3).await;
        let ours = items.iter().find(|item| item.session.as_deref() == Some("one")).unwrap();
        runtime.inbox().answer(&ours.id, given("always"), "ada").await.unwrap();
        let left = open(runtime.inbox(), 1).await.remove(0);
        assert_eq!(left.session.as_deref(), Some("two"));
        runtime.inbox().answer(&left.id, given("deny"), "ada").await.unwrap();
    };
    let ((first, second), other, ()) = tokio::join!(calls, runtime.call(work("two")), person);
    assert_eq!((first.status, second.status), (Status::Success, Status::Success));
    assert_eq!(other.error.unwrap().code, Code::Denied);
}

/// A standing approval does not pass to another owner of the same name.
#[tokio::test]
async fn an_approval_belongs_to_the_owner_and_not_to_the_name() {
    let bench = Bench::new();
    let (runtime, _held) = toolbox(&bench, "").await;
    let _attending = runtime.inbox().attend();
    let call =
        |owner: &str| ToolCall::new("work", &json!({})).caller("zed").owner(owner).asking_people();
    let (first, _) = answered(&runtime, call("zed#1"), given("always")).await;
    assert_eq!(first.status, Status::Success);
    assert_eq!(runtime.call(call("zed#1")).await.status, Status::Success);
    let (later, _) = answered(&runtime, call("zed#2"), given("deny")).await;
    assert_eq!(later.error.unwrap().code, Code::Denied);
}

/// A refusal may include a reason, which the log keeps. Nothing runs.
#[tokio::test]
async fn a_call_without_approval_does_not_run() {
    let bench = Bench::new();
    let (runtime, held) = toolbox(&bench, "inbox: {timeout: 20ms}").await;
    let needed = runtime.call(work("one")).await.error.unwrap();
    assert!(needed.message.contains("runs only when a person agrees"), "{}", needed.message);
    let _attending = runtime.inbox().attend();
    let expired = runtime.call(work("one")).await.error.unwrap();
    let patient = bench.config(ASKING);
    runtime.apply(patient).await.unwrap();
    let (denied, _) = answered(&runtime, work("one"), given("deny")).await;
    let refusal = HumanAnswer::Refused { reason: Some("too dangerous".into()) };
    let (refused, _) = answered(&runtime, work("one"), refusal).await;
    let errors = [expired, denied.error.unwrap(), refused.error.unwrap()];
    assert!(errors.iter().all(|error| error.code == Code::Denied));
    let texts: Vec<String> = errors
        .iter()
        .map(|error| format!("{}\n  help: {}", error.message, error.remedy.as_ref().unwrap()))
        .collect();
    insta::assert_snapshot!(texts.join("\n"));
    let logged = bench.logged();
    let last = logged.last().unwrap().error.as_ref().unwrap();
    assert!(last.message.contains("too dangerous"), "{}", last.message);
    assert_eq!(held.total.load(std::sync::atomic::Ordering::SeqCst), 0);
}

/// A call that waits for approval takes no slot; a call that does not ask for people behaves as
/// before, and so does one with invalid arguments.
#[tokio::test]
async fn only_calls_that_may_run_ask() {
    let bench = Bench::new();
    let (runtime, _) = toolbox(&bench, "defaults: {max_concurrent: 1}").await;
    let _attending = runtime.inbox().attend();
    let plain = runtime.call(ToolCall::new("work", &json!({}))).await.error.unwrap();
    assert_eq!(plain.code, Code::Denied);
    let wrong = runtime.call(ToolCall::from_text("work", "[]").asking_people()).await;
    assert_eq!(wrong.error.unwrap().code, Code::ValidationError);
    assert!(runtime.inbox().open().is_empty());
    let between = async {
        let item = open(runtime.inbox(), 1).await.remove(0);
        let approved = ToolCall::new("work", &json!({})).approved().asking_people();
        assert_eq!(runtime.call(approved).await.status, Status::Success);
        assert!(runtime.cancel(item.execution_id.as_deref().unwrap()));
    };
    let (cancelled, ()) = tokio::join!(runtime.call(work("one")), between);
    assert_eq!(cancelled.error.unwrap().code, Code::Cancelled);
    assert!(runtime.inbox().open().is_empty());
}
