//! Runs that wait for a person, who answers over HTTP.

use serde_json::{Value, json};
use testkit::fixture::Fixture;
use testkit::model::{ModelServer, Step};

use crate::agent::{HUMAN, begin, follow, over, questions, say, workspace};
use crate::faults::until;
use crate::served::Served;

/// A model that repeats the result of its last call.
fn tells() -> Step {
    Step::by(|asked| Step::text(asked.last_result()))
}

/// A tool that needs approval asks in the inbox; another caller's answer resumes the run.
#[tokio::test]
async fn a_person_approves_a_call_of_a_run() {
    let call = || Step::call("echo", json!({"to": "the moon"}));
    let model = ModelServer::openai([call(), tells(), call(), tells(), call(), tells()]);
    let served = Served::with_admin(workspace(&model, "tools: [{name: echo, approval: ask}]\n"));
    for (answer, told) in [("allow", "the moon"), ("deny", "a person")] {
        let mut events = follow(&served, json!({"input": "Send it."})).await;
        let asked = events.up_to("question.asked").await.pop().unwrap().data["item"].clone();
        assert_eq!((&asked["kind"], &asked["tool"]), (&json!("approval"), &json!("echo")));
        assert_eq!(asked["arguments"], json!({"to": "the moon"}));
        let run = served.get(events.header("location")).await.json();
        assert_eq!((&run["status"], &run["questions"]), (&json!("running"), &json!([asked])));
        assert_eq!(say(&served, &asked, json!(answer)).await.status, 200);
        let rest = events.rest().await;
        let closed = rest.iter().find(|event| event.name == "question.closed").unwrap();
        assert_eq!(closed.data["id"], asked["id"]);
        let text = rest.last().unwrap().data["text"].as_str().unwrap();
        assert!(text.contains(told), "{answer}: {text}");
    }
    // Approved in advance, so there is no question.
    let mut events = follow(&served, json!({"input": "Send it.", "approved": true})).await;
    let events = events.rest().await;
    assert!(!events.iter().any(|event| event.name.starts_with("question.")), "{events:?}");
    assert!(events.last().unwrap().data["text"].as_str().unwrap().contains("the moon"));
    let log: Vec<Value> = served.log().iter().map(|entry| entry["status"].clone()).collect();
    assert_eq!(log, ["success", "error", "success"]);
}

/// Proves S2-FR-006: the run pauses, its question is seen over HTTP, and the answer resumes it. Two runs wait
/// at once, and the later one is answered first.
#[tokio::test]
async fn runs_wait_for_their_answers() {
    let ask = |question: &str| Step::call("request_human_input", json!({"question": question}));
    let model = ModelServer::openai([ask("one?"), ask("two?"), tells(), tells()]);
    let served = Served::open(workspace(&model, HUMAN));
    let first = begin(&served, json!({"input": "first"})).await;
    let one = questions(&served, &first, 1).await.remove(0);
    let second = begin(&served, json!({"input": "second"})).await;
    let two = questions(&served, &second, 1).await.remove(0);
    assert_eq!((&one["question"], &two["question"]), (&json!("one?"), &json!("two?")));
    assert_eq!(one["session"], first["session"]);
    let open = served.get("/api/v1/inbox").await.json();
    assert_eq!(open, json!({"items": [one, two]}));
    for (run, question, answer) in [(&second, &two, "2"), (&first, &one, "1")] {
        assert_eq!(say(&served, question, json!(answer)).await.status, 200);
        let run = over(&served, run).await;
        assert_eq!((&run["text"], &run["questions"]), (&json!(answer), &json!([])));
    }
}

/// Several questions of one model answer, each emitted in the run.
#[tokio::test]
async fn a_run_asks_several_questions() {
    let ask = |question: &str| ("request_human_input", json!({"question": question}));
    let model = ModelServer::openai([
        Step::calls([ask("Name?"), ask("Age?")]),
        Step::by(|asked| {
            let told: Vec<String> = asked.results().into_iter().map(|it| it.text).collect();
            Step::text(told.join(" "))
        }),
    ]);
    let served = Served::open(workspace(&model, HUMAN));
    let mut events = follow(&served, json!({"input": "Register me."})).await;
    for _ in 0..2 {
        let asked = events.up_to("question.asked").await.pop().unwrap().data["item"].clone();
        let answer = if asked["question"] == "Name?" { "Ada" } else { "36" };
        assert_eq!(say(&served, &asked, json!(answer)).await.status, 200);
    }
    assert_eq!(events.rest().await.last().unwrap().data["text"], "Ada 36");
}

/// Without an answer the model is informed, and the run continues.
#[tokio::test]
async fn a_run_continues_without_an_answer() {
    let model = ModelServer::openai([
        Step::call("request_human_input", json!({"question": "Anybody?"})),
        tells(),
    ]);
    let served = Served::open(workspace(&model, &format!("{HUMAN}inbox: {{timeout: 20ms}}\n")));
    let mut events = follow(&served, json!({"input": "Ask."})).await;
    let events = events.rest().await;
    let closed = events.iter().find(|event| event.name == "question.closed").unwrap();
    assert_eq!(closed.data["how"], "expired");
    let result = model.last_request().results().pop().unwrap();
    assert!(result.text.contains("no answer came"), "{}", result.text);
    let last = events.last().unwrap();
    assert_eq!((&*last.name, &last.data["end"]), ("turn.completed", &json!("answered")));
}

/// A run that is broken off withdraws its question.
#[tokio::test]
async fn a_cancelled_run_withdraws_its_question() {
    let model = ModelServer::openai([Step::call("request_human_input", json!({"question": "?"}))]);
    let served = Served::open(workspace(&model, HUMAN));
    let mut events = follow(&served, json!({"input": "Ask."})).await;
    events.up_to("question.asked").await;
    assert_eq!(served.delete(events.header("location")).await.status, 202);
    let rest = events.rest().await;
    let closed = rest.iter().find(|event| event.name == "question.closed").unwrap();
    assert_eq!(closed.data["how"], "withdrawn");
    assert_eq!(rest.last().unwrap().data["end"], "cancelled");
    let run = served.get(events.header("location")).await.json();
    assert_eq!(run["questions"], json!([]));
    assert_eq!(served.get("/api/v1/inbox").await.json(), json!({"items": []}));
}

/// A server that asks people, as a line of `haft.yaml`.
fn asking_server() -> String {
    let scenario = json!({"tools": ["elicit", "sample"]});
    let server = json!({"far": {
        "command": Fixture::path(), "args": Fixture::stdio_args(&scenario), "mode": "dynamic",
        "sampling": "ask",
    }});
    format!("servers: {server}\n")
}

/// Proves S3-EC-9: a server's question in a run is part of its events, and is answered for it.
#[tokio::test]
async fn a_run_shows_what_its_servers_ask() {
    let model =
        ModelServer::openai([Step::call("elicit", json!({"message": "Your name?"})), tells()]);
    let served = Served::open(workspace(&model, &asking_server()));
    let mut events = follow(&served, json!({"input": "Ask."})).await;
    let asked = events.up_to("question.asked").await.pop().unwrap().data["item"].clone();
    assert_eq!((&asked["kind"], &asked["server"]), (&json!("elicitation"), &json!("far")));
    let run = served.get(events.header("location")).await.json();
    assert_eq!((&run["questions"], &run["session"]), (&json!([asked]), &asked["session"]));
    assert_eq!(say(&served, &asked, json!({"name": "Ada"})).await.status, 200);
    let rest = events.rest().await;
    let text = rest.last().unwrap().data["text"].as_str().unwrap();
    assert!(text.contains("Ada"), "{text}");
}

/// Proves S3-EC-9: a run that is broken off withdraws what its servers asked.
#[tokio::test]
async fn a_cancelled_run_withdraws_its_servers_questions() {
    for tool in ["elicit", "sample"] {
        let model = ModelServer::openai([Step::call(tool, json!({}))]);
        let served = Served::open(workspace(&model, &asking_server()));
        let mut events = follow(&served, json!({"input": "Ask."})).await;
        let asked = events.up_to("question.asked").await.pop().unwrap().data["item"].clone();
        assert_eq!(served.delete(events.header("location")).await.status, 202);
        let rest = events.rest().await;
        let closed = rest.iter().find(|event| event.name == "question.closed").unwrap();
        assert_eq!(
            closed.data,
            json!({"type": "question.closed", "id": asked["id"], "how": "withdrawn"})
        );
        assert_eq!(rest.last().unwrap().data["end"], "cancelled");
        let path = format!("/api/v1/inbox/{}", asked["id"].as_str().unwrap());
        until("the question is withdrawn", async || {
            (served.get(&path).await.status == 404).then_some(())
        })
        .await;
    }
}

/// A caller who names the session of a run in a call of their own puts no question into it.
#[tokio::test]
async fn a_question_of_another_call_is_not_the_runs() {
    use haft_server::keys::Scope;
    let model =
        ModelServer::openai([Step::call("request_human_input", json!({"question": "Mine?"}))]);
    let keys = [("boss", Scope::Admin), ("two", Scope::Call)];
    let (served, keys) = Served::with_keys(workspace(&model, HUMAN), &keys);
    let run = begin(&served, json!({"input": "Ask."})).await;
    questions(&served, &run, 1).await;
    let body = json!({"arguments": {"question": "Your password?"}, "session": run["session"]});
    let asking = served
        .request_as(&keys[1], reqwest::Method::POST, "/api/v1/tools/request_human_input/call")
        .header("content-type", "application/json")
        .body(body.to_string());
    let between = async {
        let open = crate::faults::until("both questions", async || {
            let open = served.get("/api/v1/inbox").await.json()["items"].as_array()?.clone();
            (open.len() == 2).then_some(open)
        });
        let other = open.await.remove(1);
        let seen = questions(&served, &run, 1).await;
        assert_eq!(seen[0]["question"], "Mine?");
        say(&served, &other, json!("no")).await;
    };
    tokio::join!(crate::served::answer(asking), between);
}
