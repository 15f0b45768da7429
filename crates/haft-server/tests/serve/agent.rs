//! Runs of the agent, as tests begin and follow them.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::model::ModelServer;

use crate::events::Events;
use crate::faults::until;
use crate::served::{Answer, Served, toolbox};

/// Where runs are begun.
pub(crate) const RUNS: &str = "/api/v1/runs";

/// The tool that asks people and none of the others that Haft brings, as a line of `haft.yaml`.
pub(crate) const HUMAN: &str = "builtin: {enabled: false, request_human_input: {}}\n";

/// The toolbox with a model, and more lines in its `haft.yaml`.
pub(crate) fn workspace(model: &ModelServer, yaml: &str) -> Workspace {
    let workspace = toolbox();
    let text = workspace.read("haft.yaml").unwrap();
    workspace.write("haft.yaml", text + &model.config() + yaml);
    workspace
}

/// Starts a run without following it. Returns its summary.
pub(crate) async fn begin(served: &Served, body: Value) -> Value {
    let answer = served.post(RUNS, &body.to_string()).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    answer.json()
}

/// Begins a run and follows it.
pub(crate) async fn follow(served: &Served, body: Value) -> Events {
    let request = served.request(Method::POST, RUNS).body(body.to_string());
    let request = request.header("accept", "text/event-stream");
    Events::of(request.header("content-type", "application/json")).await
}

/// The path of a run, from its summary.
pub(crate) fn path(run: &Value) -> String {
    format!("{RUNS}/{}", run["id"].as_str().unwrap())
}

/// The summary of a run as soon as it is over.
pub(crate) async fn over(served: &Served, run: &Value) -> Value {
    until("the end of a run", async || {
        let run = served.get(&path(run)).await.json();
        (run["status"] != "running").then_some(run)
    })
    .await
}

/// The summary of a finished run that was started with plain input.
pub(crate) async fn run(served: &Served, input: &str) -> Value {
    let run = begin(served, json!({"input": input})).await;
    over(served, &run).await
}

/// The questions of a run, as soon as there are `count`.
pub(crate) async fn questions(served: &Served, run: &Value, count: usize) -> Vec<Value> {
    until("so many questions", async || {
        let questions = served.get(&path(run)).await.json()["questions"].as_array()?.clone();
        (questions.len() == count).then_some(questions)
    })
    .await
}

/// Answers a question.
pub(crate) async fn say(served: &Served, question: &Value, answer: Value) -> Answer {
    let path = format!("/api/v1/inbox/{}", question["id"].as_str().unwrap());
    served.post(&path, &json!({"answer": answer}).to_string()).await
}

/// Waits until the tool `wait` works.
pub(crate) async fn until_waiting(served: &Served) {
    until("`wait` works", async || {
        let calls = served.get("/api/v1/calls").await.json()["calls"].clone();
        calls.as_array()?.iter().any(|call| call["state"] == "running").then_some(())
    })
    .await;
}
