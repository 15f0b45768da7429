//! Remedies in the words of their edge: commands at a terminal, endpoints in the API, neither in the log.

use serde_json::Value;
use testkit::eventually;

use crate::served::{Served, haft, toolbox};

const UNKNOWN: &str = r#"{"arguments": {}}"#;

/// The remedy of the same failure in the API, as JSON and as an event, at a terminal beside the service and without
/// one, and in the log.
#[tokio::test]
async fn each_edge_renders_the_remedy_in_its_own_words() {
    let served = Served::open(toolbox());
    let path = "/api/v1/tools/greet/call";
    let wrong = r#"{"arguments": {"name": 1}}"#;
    let endpoint = "`GET /api/v1/tools/greet` has the input schema";
    let answer = served.post(path, wrong).await.json();
    assert_eq!(answer["error"]["remedy"], endpoint);
    let headers = [("accept", "text/event-stream"), ("content-type", "application/json")];
    let events = served.send(reqwest::Method::POST, path, &headers, wrong).await.text;
    assert!(events.contains(endpoint), "{events}");
    let batch = r#"{"calls": [{"tool": "greet", "arguments": {"name": 1}}]}"#;
    let batch = served.post("/api/v1/calls", batch).await.json();
    assert_eq!(batch["results"][0]["error"]["remedy"], endpoint);
    let missing = served.post("/api/v1/tools/gret/call", UNKNOWN).await.json();
    assert_eq!(
        missing["error"]["remedy"],
        "did you mean `greet`? `GET /api/v1/tools` lists every tool"
    );

    for more in [&[][..], &["--standalone"][..]] {
        let args = [more, &["call", "greet", "name:=1"]].concat();
        let called = haft(&served.workspace, &args).run();
        assert!(called.stderr.contains("`haft tools show greet` shows"), "{}", called.stderr);
        assert!(!called.stderr.contains("/api/v1"), "{}", called.stderr);
    }

    let id = answer["execution_id"].as_str().unwrap();
    let entry = eventually("the call is logged", || {
        let shown = haft(&served.workspace, &["--json", "log", "show", id]).run();
        serde_json::from_str::<Value>(&shown.stdout).ok()
    });
    assert_eq!(entry["error"]["remedy"], "see the input schema of `greet`");
}
