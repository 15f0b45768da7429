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

/// Starts replicas with the same admin key and more lines in their configuration. Tools `greet` and `other` are
/// registered.
pub(crate) async fn replicas<const N: usize>(url: &str, more: &str) -> [Served; N] {
    let workspaces = [(); N].map(|()| {
        let workspace = workspace(url);
        workspace.write("haft.yaml", config(url, more));
        workspace
    });
    let key = create_key(&workspaces[0], "admin", Scope::Admin);
    let replicas = workspaces.map(|workspace| {
        let program = haft(&workspace, &SERVE).env("HAFT__API__DRAIN_DELAY", "0s");
        Served::run(workspace, Some(key.clone()), program)
    });
    for name in ["greet", "other"] {
        let made = replicas[0].post("/api/v1/tools", &tool(name, &format!("{name}.py"))).await;
        assert_eq!(made.status, 201, "{}", made.text);
    }
    for replica in &replicas {
        until("both tools and all replicas", async || {
            let list = replica.get("/api/v1/replicas").await.json();
            let tools = replica.get("/api/v1/tools").await.text;
            let knows_all = list["replicas"].as_array().is_some_and(|list| list.len() == N);
            (knows_all && tools.contains("\"greet\"") && tools.contains("\"other\"")).then_some(())
        })
        .await;
    }
    replicas
}
