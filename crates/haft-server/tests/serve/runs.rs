//! Runs of the agent over the API: their events, their end, and what cannot be begun.

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::model::{Format, ModelServer, Step};

use crate::agent::{
    HUMAN, RUNS, begin, follow, over, path, questions, say, until_waiting, workspace,
};
use crate::events::{Events, names};
use crate::faults::{all_gone, children};
use crate::served::{Answer, Served, answer, toolbox};

/// The steps of a model that greets a person with the tool for it.
fn greeting() -> [Step; 2] {
    [
        Step::call("greet", json!({"name": "Ada"})).saying("One moment."),
        Step::by(|asked| Step::text(format!("The tool says {}", asked.last_result()))),
    ]
}

/// The whole course of a run, in order, whatever format the model speaks.
#[tokio::test]
async fn events_describe_a_run() {
    for format in [Format::OpenAi, Format::Anthropic] {
        let model = ModelServer::start(format, greeting());
        let served = Served::open(workspace(&model, ""));
        let mut events = follow(&served, json!({"input": "Greet Ada."})).await;
        let location = events.header("location").to_owned();
        let events = events.rest().await;
        let course = [
            "turn.started",
            "step.started",
            "text.delta",
            "text.completed",
            "tool.started",
            "tool.completed",
            "step.started",
            "text.delta",
            "text.completed",
            "turn.completed",
        ];
        assert_eq!(names(&events), course, "{format:?}");
        let run = events[0].data["run"].as_str().unwrap();
        assert!(location.ends_with(&format!("/{run}")), "{location} is not of {run}");
        let ids: Vec<String> = (1..=events.len()).map(|id| id.to_string()).collect();
        assert_eq!(events.iter().map(|event| event.id.clone()).collect::<Vec<_>>(), ids);
        assert!(events.iter().all(|event| event.data["type"] == *event.name), "{events:?}");

        let call = events.iter().find(|event| event.name == "tool.completed").unwrap();
        let log = served.log();
        assert_eq!((log.len(), &log[0]["status"]), (1, &json!("success")));
        assert_eq!(log[0]["execution_id"], call.data["execution_id"]);
        assert_eq!(
            (&log[0]["caller"], &log[0]["session"]),
            (&json!("local"), &events[0].data["session"])
        );
        let last = &events.last().unwrap().data;
        let told = "The tool says {\"greeting\":\"Hello, Ada!\"}";
        assert_eq!((&last["text"], &last["steps"]), (&json!(told), &json!(2)), "{format:?}");

        // A client that received the end finds the run ended.
        let run = served.get(&location).await.json();
        assert_eq!((&run["status"], &run["text"]), (&json!("completed"), &json!(told)));
    }
}

/// Without events: the run as it begins, and as it is later.
#[tokio::test]
async fn a_run_is_looked_up_until_it_is_over() {
    let model = ModelServer::openai(greeting());
    let served = Served::open(workspace(&model, ""));
    let answer = served.post(RUNS, r#"{"input": "Greet Ada."}"#).await;
    let run = answer.json();
    assert_eq!((answer.status, answer.header("location")), (202, &*path(&run)));
    let ended = over(&served, &run).await;
    assert!(ended["ended"].as_str() >= ended["started"].as_str(), "{ended}");
    let expected = json!({
        "id": run["id"], "status": "completed", "session": run["session"], "caller": "local",
        "model": "openai::scripted", "started": run["started"], "ended": ended["ended"],
        "text": "The tool says {\"greeting\":\"Hello, Ada!\"}", "end": "answered", "steps": 2,
        "usage": {"input_tokens": 20, "output_tokens": 10}, "error": null, "questions": [],
    });
    assert_eq!(ended, expected);
    assert_eq!(served.get(RUNS).await.json(), json!({"runs": [expected]}));
}

/// The system prompt and the step limit of a run.
#[tokio::test]
async fn a_run_has_its_own_instructions_and_limit() {
    let model = ModelServer::openai([Step::call("greet", json!({"name": "Ada"}))]);
    let served = Served::open(workspace(&model, "  system: from the file\n"));
    let body = json!({"input": "Hi", "system": "from the run", "max_steps": 1});
    let run = begin(&served, body).await;
    let run = over(&served, &run).await;
    assert_eq!((&run["status"], &run["end"]), (&json!("completed"), &json!("max_steps")));
    assert_eq!(model.requests().len(), 1);
    assert_eq!(model.last_request().system().as_deref(), Some("from the run"));
}

/// Refused with the cause and the remedy; nothing of it asks the model or is remembered.
#[tokio::test]
async fn what_cannot_be_begun_is_refused() {
    let model = ModelServer::openai([]);
    let served = Served::open(workspace(&model, ""));
    let mut seen = Vec::new();
    let mut note = async |method: Method, path: &str, body: &str| {
        let answer = served.send(method.clone(), path, &[("x-request-id", "r1")], body).await;
        seen.push(format!("{method} {path} {body}\n{} {:#}", answer.status, answer.json()));
    };
    for body in [
        r#"{"input": " \n"}"#,
        "{}",
        r#"{"input": "Hi", "inputs": 1}"#,
        r#"{"input": "Hi", "max_steps": 0}"#,
        r#"{"input": "Hi", "session": "nobody"}"#,
        r#"{"input": "Hi", "session": "../haft"}"#,
    ] {
        note(Method::POST, RUNS, body).await;
    }
    note(Method::GET, "/api/v1/runs/nobody", "").await;
    note(Method::GET, "/api/v1/runs/nobody/events", "").await;
    note(Method::DELETE, "/api/v1/runs/nobody", "").await;
    assert_eq!(model.requests().len(), 0);
    assert_eq!(served.get(RUNS).await.json(), json!({"runs": []}));
    let without = Served::open(toolbox());
    let answer =
        without.send(Method::POST, RUNS, &[("x-request-id", "r1")], r#"{"input": "Hi"}"#).await;
    seen.push(format!("without a model\n{} {:#}", answer.status, answer.json()));
    insta::assert_snapshot!(served.workspace.stable(&seen.join("\n\n")));
}

/// A model that refuses the request fails the run, with the reason.
#[tokio::test]
async fn a_run_without_an_answer_fails() {
    let model = ModelServer::openai([Step::status(401)]);
    let served = Served::open(workspace(&model, ""));
    let mut events = follow(&served, json!({"input": "Hi"})).await;
    let run = events.header("location").to_owned();
    let events = events.rest().await;
    assert_eq!(names(&events), ["turn.started", "step.started", "turn.failed"]);
    let run = served.get(&run).await.json();
    let failed = &events.last().unwrap().data;
    assert_eq!((&run["status"], &run["text"]), (&json!("failed"), &Value::Null));
    assert_eq!(run["error"], json!({"message": failed["message"], "remedy": failed["remedy"]}));
    assert!(failed["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{failed}");
}

/// A disconnected client receives the rest without duplicates, and finds the question that waits meanwhile.
#[tokio::test]
async fn a_run_continues_without_its_client() {
    let ask = Step::call("request_human_input", json!({"question": "Which colour?"}));
    let model = ModelServer::openai([
        ask.saying("Let me ask."),
        Step::by(|asked| Step::text(format!("It is {}.", asked.last_result()))),
    ]);
    let served = Served::open(workspace(&model, HUMAN));
    let mut first = follow(&served, json!({"input": "Paint it."})).await;
    let path = first.header("location").to_owned();
    let received = first.up_to("question.asked").await;
    drop(first);

    let run = served.get(&path).await.json();
    let question = questions(&served, &run, 1).await.remove(0);
    assert_eq!(received.last().unwrap().data["item"], question);
    let last = &received.last().unwrap().id;
    let again = served.request(Method::GET, &format!("{path}/events"));
    let mut again = Events::of(again.header("last-event-id", last)).await;
    assert_eq!(say(&served, &question, json!("blue")).await.status, 200);
    let rest = again.rest().await;
    let course = [
        "question.closed",
        "tool.completed",
        "step.started",
        "text.delta",
        "text.completed",
        "turn.completed",
    ];
    assert_eq!(names(&rest), course);
    assert_eq!(rest.last().unwrap().data["text"], "It is blue.");

    // Together they are everything, in order, as a later client receives it.
    let all = Events::of(served.request(Method::GET, &format!("{path}/events"))).await.rest().await;
    assert_eq!([received, rest].concat(), all);
    // A client that has received everything, or claims more, receives nothing.
    for received in [all.len().to_string(), usize::MAX.to_string()] {
        let late = served.request(Method::GET, &format!("{path}/events"));
        assert_eq!(Events::of(late.header("last-event-id", received)).await.rest().await, []);
    }
}

/// A run is broken off while a tool works and while the model thinks; what is over is over.
#[tokio::test]
async fn a_run_is_cancelled() {
    let model = ModelServer::openai([Step::call("wait", json!({})), Step::silence()]);
    let served = Served::open(workspace(&model, ""));
    for (count, is_tool) in [(1, true), (2, false)] {
        let mut events = follow(&served, json!({"input": "Wait."})).await;
        let path = events.header("location").to_owned();
        if is_tool {
            until_waiting(&served).await;
        } else {
            crate::until(|| model.requests().len() == count).await;
        }
        let cancelled = served.delete(&path).await;
        assert_eq!(cancelled.status, 202, "{}", cancelled.text);
        let last = events.rest().await.pop().unwrap();
        assert_eq!((&*last.name, &last.data["end"]), ("turn.completed", &json!("cancelled")));
        assert_eq!(served.get(&path).await.json()["status"], "cancelled");
        let late = served.delete(&path).await;
        assert_eq!(late.status, 409, "{}", late.text);
    }
    let log = served.log();
    assert_eq!((log.len(), &log[0]["error"]["code"]), (1, &json!("Cancelled")));
    assert_eq!(served.get("/api/v1/calls").await.json(), json!({"calls": []}));
}

/// Too many runs get `Retry-After`, and one caller cannot take every slot.
#[tokio::test]
async fn there_is_a_limit_to_runs_at_once() {
    let model = ModelServer::openai(vec![Step::silence(); 34]);
    let keys = [("one", Scope::Call), ("two", Scope::Call), ("boss", Scope::Admin)];
    let (served, keys) = Served::with_keys(workspace(&model, ""), &keys);
    let start = async |key: &str| {
        let request = served.request_as(key, Method::POST, RUNS).body(r#"{"input": "Hi"}"#);
        answer(request.header("content-type", "application/json")).await
    };
    let busy = |answer: Answer| {
        assert_eq!((answer.status, answer.header("retry-after")), (429, "5"), "{}", answer.text);
        let problem = answer.json();
        assert_eq!(problem["remedy"], "wait for the end of one, or cancel one");
        problem["detail"].as_str().unwrap().to_owned()
    };
    let mut first = Value::Null;
    for key in &keys[..2] {
        for _ in 0..16 {
            let begun = start(key).await;
            assert_eq!(begun.status, 202, "{}", begun.text);
            first = begun.json();
        }
        if key == &keys[0] {
            let own = busy(start(key).await);
            assert_eq!(own, "16 of your runs are active, the limit for one caller");
        }
    }
    assert_eq!(busy(start(&keys[2]).await), "32 runs are active, the limit");
    let ended = answer(served.request_as(&keys[1], Method::DELETE, &path(&first))).await;
    assert_eq!(ended.status, 202, "{}", ended.text);
    over(&served, &first).await;
    assert_eq!(start(&keys[1]).await.status, 202);
}

/// The service ends with a run in flight: its followers receive the end, and nothing is left.
#[tokio::test]
async fn a_run_ends_with_the_service() {
    let model = ModelServer::openai([Step::call("wait", json!({})), Step::silence()]);
    let mut served = Served::open(workspace(&model, "  max_steps: 3\napi: {shutdown_grace: 3s}\n"));
    let mut working = follow(&served, json!({"input": "Wait."})).await;
    until_waiting(&served).await;
    let mut thinking = follow(&served, json!({"input": "Think."})).await;
    crate::until(|| model.requests().len() == 2).await;
    let processes = children(served.pid);
    assert!(!processes.is_empty());
    served.terminate();
    for events in [&mut working, &mut thinking] {
        let last = events.rest().await.pop().unwrap();
        assert_eq!((&*last.name, &last.data["end"]), ("turn.completed", &json!("cancelled")));
    }
    let finished = served.ended();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    all_gone(&processes);
    assert_eq!(served.log()[0]["error"]["code"], "Cancelled");
}
