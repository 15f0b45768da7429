//! Replicas of the real `haft serve` on one PostgreSQL.

use haft_server::keys::Scope;
use serde_json::{Value, json};
use testkit::Workspace;

use crate::faults::until;
use crate::served::{SERVE, Served, create_key, haft};

/// A workspace whose service shares its state in the database at `url`. Scripts are in `tools`.
pub(crate) fn workspace(url: &str) -> Workspace {
    Workspace::with(&[
        ("haft.yaml", &config(url, "")),
        ("tools/greet.py", "def run(args):\n    return {'greeting': 'Hello!'}\n"),
        ("tools/other.py", "def run(args):\n    return {'greeting': 'Bye!'}\n"),
    ])
}

/// A configuration with the given database and more lines.
pub(crate) fn config(url: &str, more: &str) -> String {
    let shared = json!({"url": url});
    format!("shared: {shared}\nregistry: {{store: shared, dir: tools}}\n{more}")
}

/// Starts a replica. `name` is the name of its admin key.
pub(crate) fn replica(url: &str, name: &str) -> Served {
    replica_in(workspace(url), name)
}

pub(crate) fn replica_in(workspace: Workspace, name: &str) -> Served {
    let key = create_key(&workspace, name, Scope::Admin);
    // No balancer waits for it.
    let program = haft(&workspace, &SERVE).env("HAFT__API__DRAIN_DELAY", "0s");
    Served::run(workspace, Some(key), program)
}

/// An entry of a local tool with a script.
pub(crate) fn tool(name: &str, script: &str) -> String {
    let entry = json!({
        "name": name, "description": "Greets.", "type": "local",
        "input_schema": {"type": "object"}, "config": {"script_path": script},
    });
    entry.to_string()
}

/// Waits until a call of a tool at a replica answers with `greeting`.
pub(crate) async fn until_greets(served: &Served, tool: &str, greeting: &str) {
    until("the tool answers", async || {
        let answer = served.post(&format!("/api/v1/tools/{tool}/call"), "{}").await;
        (answer.status == 200 && answer.text.contains(greeting)).then_some(())
    })
    .await;
}

/// The readiness of a replica: its status code, and the reason of one part.
pub(crate) async fn readiness(served: &Served, part: &str) -> (u16, Value, Option<String>) {
    let answer = served.get("/readyz").await;
    let document = answer.json();
    let reasons = document["reasons"].as_array().cloned().unwrap_or_default();
    let reason = reasons.iter().find(|reason| reason["what"] == part);
    let why = reason.and_then(|reason| reason["why"].as_str()).map(ToOwned::to_owned);
    (answer.status, document["status"].clone(), why)
}
