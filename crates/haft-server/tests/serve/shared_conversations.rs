//! Conversations of several replicas: continued, listed, deleted and fenced wherever a request arrives.

use std::time::Duration;

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::model::{ModelServer, Step};
use testkit::postgres::database;

use crate::agent::{RUNS, begin, over, path};
use crate::faults::until;
use crate::served::{Served, answer};
use crate::shared_keys::signal;
use crate::shared_support::{readiness, replicas};

const CONVERSATIONS: &str = "/api/v1/conversations";

fn more(model: &ModelServer, lines: &str) -> String {
    format!("builtin: {{enabled: false}}\n{}{lines}", model.config())
}

fn conversation(run: &Value) -> String {
    format!("{CONVERSATIONS}/{}", run["session"].as_str().unwrap())
}

async fn ids(at: &Served) -> Vec<Value> {
    let list = at.get(CONVERSATIONS).await.json();
    list["conversations"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect()
}

/// A conversation begun at one replica is continued at another one with all its messages, listed and shown at both, and
/// deleted through either; then no replica knows its runs.
#[tokio::test]
async fn a_conversation_is_continued_listed_and_deleted_at_any_replica() {
    let Some(test) = database() else { return };
    let first = [Step::call("greet", json!({})), Step::text("Hello to you.")];
    let model = ModelServer::openai(first.into_iter().chain([Step::text("As I said.")]));
    let [one, two] = replicas(&test.url, &more(&model, "")).await;
    let run = over(&one, &begin(&one, json!({"input": "Greet me."})).await).await;
    assert_eq!((&run["status"], &run["text"]), (&json!("completed"), &json!("Hello to you.")));
    let again = json!({"input": "What was it?", "session": run["session"]});
    let second = over(&two, &begin(&two, again).await).await;
    assert_eq!((&second["text"], &second["session"]), (&json!("As I said."), &run["session"]));
    let asked = model.last_request();
    assert_eq!(asked.last_user_text(), "What was it?");
    let result = &asked.results()[0];
    assert!(format!("{result:?}").contains("Hello!"), "{result:?}");

    for replica in [&one, &two] {
        assert_eq!(ids(replica).await, [run["session"].clone()]);
        let shown = replica.get(&conversation(&run)).await.json();
        let roles: Vec<_> =
            shown["messages"].as_array().unwrap().iter().map(|it| &it["role"]).collect();
        assert_eq!(roles, ["user", "assistant", "tools", "assistant", "user", "assistant"]);
    }
    let list = two.get(CONVERSATIONS).await.json();
    let summary = &list["conversations"][0];
    assert_eq!((&summary["title"], &summary["messages"]), (&json!("Greet me."), &json!(6)));

    assert_eq!(two.delete(&conversation(&run)).await.status, 204);
    for replica in [&one, &two] {
        assert_eq!(ids(replica).await, [] as [Value; 0]);
        assert_eq!(replica.get(&conversation(&run)).await.status, 404);
        for run in [&run, &second] {
            assert_eq!(replica.get(&path(run)).await.status, 404, "its runs are forgotten with it");
        }
    }
    assert_eq!(test.sql("select count(*) from haft.message"), "0");
}

/// A run of one replica has its conversation for itself: a second run elsewhere is 409, and so is deleting it.
#[tokio::test]
async fn a_second_run_on_a_conversation_is_refused_at_every_replica() {
    let Some(test) = database() else { return };
    let model = ModelServer::openai([Step::text("Hello."), Step::silence(), Step::text("Again.")]);
    let [one, two] = replicas(&test.url, &more(&model, "")).await;
    let first = over(&one, &begin(&one, json!({"input": "Hi"})).await).await;
    let again = json!({"input": "Wait", "session": first["session"]});
    let busy = begin(&one, again.clone()).await;
    until("the model is asked", async || (model.requests().len() == 2).then_some(())).await;
    for replica in [&one, &two] {
        let refused = replica.post(RUNS, &again.to_string()).await;
        assert_eq!(refused.status, 409, "{}", refused.text);
        let refused = replica.delete(&conversation(&first)).await;
        assert_eq!(refused.status, 409, "{}", refused.text);
    }
    assert_eq!(two.delete(&path(&busy)).await.status, 202);
    over(&two, &busy).await;
    // Free as soon as the run is over.
    let last = over(&two, &begin(&two, again).await).await;
    assert_eq!(last["text"], "Again.", "{last}");
}

/// A call key sees, continues and deletes its own conversations at every replica, and those of others at none.
#[tokio::test]
async fn conversations_belong_to_their_key_at_every_replica() {
    let Some(test) = database() else { return };
    let model = ModelServer::openai([Step::text("One."), Step::text("Two.")]);
    let [one, two] = replicas(&test.url, &more(&model, "")).await;
    let mut keys = Vec::new();
    for name in ["ada", "bob"] {
        let body = json!({"name": name, "scope": Scope::Call.to_string()}).to_string();
        let made = one.post("/api/v1/keys", &body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        keys.push(made.json()["key"].as_str().unwrap().to_owned());
    }
    let [ada, bob] = &keys[..] else { panic!() };
    let send = async |at: &Served, key: &str, method: Method, path: &str, body: Value| {
        let request = at.request_as(key, method, path);
        answer(request.header("content-type", "application/json").body(body.to_string())).await
    };
    let begun = send(&one, ada, Method::POST, RUNS, json!({"input": "Hi"})).await.json();
    let run = over(&one, &begun).await;
    let list = async |key: &str| {
        let list = send(&two, key, Method::GET, CONVERSATIONS, Value::Null).await.json();
        list["conversations"].as_array().unwrap().len()
    };
    assert_eq!((list(ada).await, list(bob).await), (1, 0));
    let again = json!({"input": "Again", "session": run["session"]});
    let path = conversation(&run);
    for (method, path, body) in [
        (Method::POST, RUNS, again.clone()),
        (Method::GET, &path, Value::Null),
        (Method::DELETE, &path, Value::Null),
    ] {
        let refused = send(&two, bob, method, path, body).await;
        assert_eq!(refused.status, 404, "{}", refused.text);
    }
    let continued = send(&two, ada, Method::POST, RUNS, again).await;
    assert_eq!(over(&two, &continued.json()).await["text"], "Two.");
    assert_eq!(send(&one, ada, Method::DELETE, &path, Value::Null).await.status, 204);
}

/// The run of a killed replica leaves its messages. Its conversation is free when the lease expires, and the model
/// receives a result for the call whose outcome is unknown.
#[tokio::test]
async fn the_conversation_of_a_killed_replica_is_continued_after_its_lease() {
    let Some(test) = database() else { return };
    let model = ModelServer::openai([Step::call("slow", json!({})), Step::text("I see.")]);
    let [one, two] = replicas(&test.url, &more(&model, "")).await;
    let waiting = "import time\ndef run(args):\n    time.sleep(60)\n    return {}\n";
    one.workspace.write("tools/other.py", waiting);
    let entry = crate::shared_support::tool("slow", "other.py");
    assert_eq!(one.post("/api/v1/tools", &entry).await.status, 201);
    let begun = begin(&one, json!({"input": "Go."})).await;
    until("the call runs", async || {
        let calls = one.get("/api/v1/calls").await.json();
        (calls["calls"].as_array().unwrap().len() == 1).then_some(())
    })
    .await;
    drop(one.kill());
    let again = json!({"input": "What now?", "session": begun["session"]});
    let refused = two.post(RUNS, &again.to_string()).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    // Instead of waiting for half a minute.
    test.sql("update haft.conversation set lease = now() - interval '1 second'");
    let run = over(&two, &begin(&two, again).await).await;
    assert_eq!(run["text"], "I see.", "{run}");
    assert_eq!(model.last_request().results()[0].text, "it is not known what came of this call");
    let numbers = test.sql("select string_agg(n::text, ' ' order by n) from haft.message");
    assert_eq!(numbers, "0 1 2 3");
}

/// A replica that is frozen in mid-run beyond its lease, while another one continues the conversation, writes nothing when
/// it wakes up.
#[tokio::test]
async fn a_frozen_replica_that_wakes_up_writes_nothing() {
    let Some(test) = database() else { return };
    let slow = Step::endless("x", Duration::from_millis(20));
    let model = ModelServer::openai([slow, Step::text("I see.")]);
    let [one, two] = replicas(&test.url, &more(&model, "")).await;
    let begun = begin(&one, json!({"input": "Go."})).await;
    until("the model answers", async || (model.requests().len() == 1).then_some(())).await;
    signal(&one, "-STOP");
    test.sql("update haft.conversation set lease = now() - interval '1 second'");
    let again = json!({"input": "What now?", "session": begun["session"]});
    let run = over(&two, &begin(&two, again).await).await;
    assert_eq!(run["text"], "I see.", "{run}");
    let stored = || {
        let numbers = "select string_agg(n::text, ' ' order by n) from haft.message";
        (test.sql(numbers), test.sql("select updated from haft.conversation"))
    };
    let before = stored();
    assert_eq!(before.0, "0 1 2");
    signal(&one, "-CONT");
    // What it would write: the answer so far.
    let request = one.request(Method::DELETE, &path(&begun)).header("haft-hop", "1");
    assert_eq!(answer(request).await.status, 202);
    let request = || one.request(Method::GET, &path(&begun)).header("haft-hop", "1");
    until("the run is over", async || {
        (answer(request()).await.json()["status"] != "running").then_some(())
    })
    .await;
    assert_eq!(stored(), before);
}

/// A run whose conversation was taken by another process ends without a further message, call or model request.
#[tokio::test]
async fn a_run_that_lost_its_conversation_writes_nothing_and_asks_nothing() {
    let Some(test) = database() else { return };
    let taken = test.clone();
    let take = "update haft.conversation set fence = fence + 1, lease = now() + interval '1 hour'";
    let steps = Step::by(move |_| {
        taken.sql(take);
        Step::call("greet", json!({}))
    });
    let model = ModelServer::openai([steps, Step::text("Never asked.")]);
    let [one] = replicas(&test.url, &more(&model, "")).await;
    let run = over(&one, &begin(&one, json!({"input": "Go."})).await).await;
    assert_eq!(run["status"], "failed", "{run}");
    let message = run["error"]["message"].as_str().unwrap();
    assert!(message.contains("another process may continue it"), "{message}");
    assert_eq!((model.left(), test.sql("select count(*) from haft.message")), (1, "1".to_owned()));
    assert_eq!(one.get("/api/v1/log").await.json()["calls"], json!([]), "the call is not made");
}

/// Without the database, a new run is refused with the cause; afterwards conversations are as they were.
#[tokio::test]
async fn without_the_database_runs_are_refused_and_conversations_stay() {
    let Some(test) = database() else { return };
    let model = ModelServer::openai([Step::text("One."), Step::text("Two.")]);
    let [one] = replicas(&test.url, &more(&model, "")).await;
    let run = over(&one, &begin(&one, json!({"input": "Hi"})).await).await;
    test.stop();
    until("the outage is noticed", async || {
        (readiness(&one, "shared").await.1 == "degraded").then_some(())
    })
    .await;
    for body in [json!({"input": "Hi"}), json!({"input": "Hi", "session": run["session"]})] {
        let refused = one.post(RUNS, &body.to_string()).await;
        assert_eq!(refused.status, 503, "{}", refused.text);
        let problem = refused.json();
        assert!(problem["detail"].as_str().unwrap().contains("database"), "{problem}");
        assert!(problem["remedy"].as_str().unwrap().contains("shared.url"), "{problem}");
    }
    assert_eq!(one.get(CONVERSATIONS).await.status, 503);
    test.start();
    until("it is ready again", async || {
        (readiness(&one, "shared").await.1 == "ready").then_some(())
    })
    .await;
    let again = json!({"input": "Again", "session": run["session"]});
    assert_eq!(over(&one, &begin(&one, again).await).await["text"], "Two.");
}
