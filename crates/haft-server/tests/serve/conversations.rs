//! Stored conversations: deleting them over the API, and how long they are kept.

use std::fs::File;
use std::time::{Duration, SystemTime};

use haft_server::keys::Scope;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::model::{ModelServer, Step};

use crate::agent::{RUNS, begin, over, path, run, workspace};
use crate::served::{Served, answer};

const CONVERSATIONS: &str = "/api/v1/conversations";

fn ids(list: &Value) -> Vec<Value> {
    let found = list["conversations"].as_array().unwrap().iter();
    found.map(|conversation| conversation["id"].clone()).collect()
}

/// A call key lists and deletes its own conversations; an admin key all of them.
#[tokio::test]
async fn conversations_are_listed_and_deleted_by_their_owner_or_an_admin() {
    let model = ModelServer::openai([Step::text("One."), Step::text("Two."), Step::text("Three.")]);
    let keys = [("boss", Scope::Admin), ("one", Scope::Call), ("two", Scope::Call)];
    let (served, keys) = Served::with_keys(workspace(&model, ""), &keys);
    let [boss, one, two] = [&keys[0], &keys[1], &keys[2]];
    let mut runs = Vec::new();
    for key in [one, one, two] {
        let request = served.request_as(key, Method::POST, RUNS);
        let request = request.header("content-type", "application/json");
        let begun = answer(request.body(json!({"input": "Hi"}).to_string())).await.json();
        runs.push(over(&served, &begun).await);
    }
    let list = async |key: &str| {
        let answer = answer(served.request_as(key, Method::GET, CONVERSATIONS)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        ids(&answer.json())
    };
    let delete = async |key: &str, id: &Value| {
        let path = format!("{CONVERSATIONS}/{}", id.as_str().unwrap());
        answer(served.request_as(key, Method::DELETE, &path)).await.status
    };
    let [first, second, third] = [0, 1, 2].map(|at: usize| runs[at]["session"].clone());
    assert_eq!(list(one).await, [second.clone(), first.clone()]);
    assert_eq!(list(two).await, std::slice::from_ref(&third));
    assert_eq!(list(boss).await.len(), 3);

    assert_eq!(delete(two, &first).await, 404, "another key's conversation is not known");
    assert_eq!(delete(one, &json!("%2e%2e%2fkeys")).await, 404);
    assert_eq!(delete(one, &first).await, 204);
    assert_eq!(delete(one, &first).await, 404);
    assert_eq!(delete(boss, &third).await, 204);
    assert_eq!(list(boss).await, [second]);
    let known = answer(served.request_as(one, Method::GET, &path(&runs[0]))).await;
    assert_eq!(known.status, 404, "its runs are forgotten with it: {}", known.text);
    let resumed = json!({"input": "Again", "session": first}).to_string();
    assert_eq!(served.post(RUNS, &resumed).await.status, 404);
}

#[tokio::test]
async fn a_conversation_in_use_is_not_deleted() {
    let model = ModelServer::openai([Step::text("Hello."), Step::silence()]);
    let served = Served::open(workspace(&model, ""));
    let first = run(&served, "Hi").await;
    let second = begin(&served, json!({"input": "Wait", "session": first["session"]})).await;
    crate::until(|| model.requests().len() == 2).await;
    let conversation = format!("{CONVERSATIONS}/{}", first["session"].as_str().unwrap());
    let busy = served.delete(&conversation).await;
    assert_eq!(busy.status, 409, "{}", busy.text);
    assert_eq!(served.delete(&path(&second)).await.status, 202);
    over(&served, &second).await;
    assert_eq!(served.delete(&conversation).await.status, 204);
}

/// `agent.retain_days` after the last message a conversation is deleted.
#[tokio::test]
async fn expired_conversations_are_deleted_when_the_service_starts() {
    let model = ModelServer::openai([Step::text("Old."), Step::text("New.")]);
    let served = Served::open(workspace(&model, "  retain_days: 3\n"));
    let [old, new] = [run(&served, "Hi").await, run(&served, "Hi").await];
    let file = |run: &Value| {
        let sessions = served.workspace.path().join(".haft/sessions");
        sessions.join(format!("{}.jsonl", run["session"].as_str().unwrap()))
    };
    for (run, age) in [(&old, Duration::from_hours(73)), (&new, Duration::from_hours(71))] {
        let file = File::options().append(true).open(file(run)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }
    let gone = file(&old);
    let served = served.restarted();
    crate::until(|| !gone.exists()).await;
    assert_eq!(ids(&served.get(CONVERSATIONS).await.json()), [new["session"].clone()]);
}
