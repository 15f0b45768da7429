//! The expected results of every client.

use serde_json::{Value, json};
use testkit::Finished;

use super::toolbox::tools;

/// The report of a client that came to its end.
pub(super) fn read(client: &Finished) -> Value {
    assert_eq!(client.code, 0, "{}\n{}", client.stdout, client.stderr);
    serde_json::from_str(&client.stdout).unwrap_or_else(|error| panic!("{error}: {client:?}"))
}

/// Asserts that everything is complete, in every era and over every transport. Not every client reports the version.
pub(super) fn assert_complete(report: &Value, version: Option<&str>) {
    assert_eq!((&report["version"], &report["server"]), (&json!(version), &json!("haft")));
    assert_tools(report);
    assert_prompts_and_resources(report);
    assert_questions(report);
    assert_changes(report);
}

fn assert_tools(report: &Value) {
    let names: Vec<&str> =
        report["tools"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let ours = tools();
    let (first, rest) = names.split_at(ours.len());
    assert_eq!(first, ours);
    assert!(rest.contains(&"get-sum"), "no tool of the real server: {rest:?}");
    assert_eq!(report["greet"], json!({"greeting": "Hello, you!"}));
    assert_eq!(report["echo"], json!([{"n": 1}, {"n": 1}]));
    assert_eq!(report["failed"], true);
    assert_eq!((&report["refused"], &report["unknown"]), (&json!(-32050), &json!(-32602)));
    let blocks = ["text", "image", "audio", "resource_link", "resource", "resource"];
    assert_eq!(report["blocks"], json!(blocks));
    assert_eq!(numbers(&report["progress"]), json!([steps(), steps()]));
}

/// A call whose stream broke off was taken up where it broke.
pub(super) fn assert_resumed(report: &Value) {
    let resumed = &report["resumed"];
    assert_eq!(numbers(&resumed["steps"]), steps());
    // The stream broke before its first message.
    let is_beginning = |id: &Value| id.as_str().is_some_and(|id| id.ends_with("-0"));
    assert!(resumed["from"].as_array().unwrap().iter().any(is_beginning), "{resumed}");
}

fn steps() -> Value {
    json!([[1.0, 3.0, "step 1"], [2.0, 3.0, "step 2"], [3.0, 3.0, "step 3"]])
}

fn assert_prompts_and_resources(report: &Value) {
    let contains = |key: &str, wanted: &[&str]| {
        let listed = report[key].as_array().unwrap_or_else(|| panic!("no {key}: {report}"));
        for name in wanted {
            assert!(listed.contains(&json!(name)), "{key} without {name}: {listed:?}");
        }
    };
    contains("prompts", &["old_prompt", "new_prompt", "completable-prompt"]);
    assert_eq!(report["prompt"], r#"prompt "old_prompt" with {"name":"you"}"#);
    contains("resources", &["old://note", "new://note"]);
    contains("templates", &["test://template/{id}/data"]);
    assert_eq!(report["read"], json!(["the note of old", "the note of new", "data of 7"]));
    assert_eq!(report["completion"], json!(["Engineering"]));
}

fn assert_questions(report: &Value) {
    let levels = ["error", "critical", "alert", "emergency"];
    assert_eq!(report["logs"], json!([levels, levels]));
    for (question, answers) in report["answers"].as_object().unwrap() {
        for answer in answers.as_array().unwrap() {
            match question.as_str() {
                "sample" => assert_eq!(answer["content"]["text"], "from the model", "{report}"),
                "elicit" => {
                    assert_eq!(answer["action"], "accept", "{report}");
                    assert_eq!(answer["content"], json!({"name": "Ada"}));
                }
                "roots" => assert_eq!(answer["roots"][0]["uri"], "file:///here", "{report}"),
                other => panic!("a question nobody asked: {other}"),
            }
        }
    }
    assert_eq!(report["answers"].as_object().unwrap().len(), 3);
}

fn assert_changes(report: &Value) {
    assert_eq!(report["changed"], json!([true, true, true]));
    assert_eq!(report["updated"], "old://note");
    assert_eq!(report["crash"], true);
    assert_eq!(report["after"], json!([{"n": 2}, {"n": 2}]));
}

/// The same with every number as a fraction: JavaScript knows no other.
fn numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(numbers).collect(),
        other => other.clone(),
    }
}
