//! Servers' descriptions of themselves and their tools are served without known secrets.

use haft_server::keys::Scope;
use serde_json::json;
use testkit::Workspace;
use testkit::canary::{assert_masked, servers};

use crate::attack_secrets::readable;
use crate::faults::{call, until};
use crate::served::{SERVE, Served, create_key, haft};

/// Proves S3-SC-005 for the API: every path that can be read, and calls whose arguments, names or errors
/// hold a secret.
#[tokio::test]
async fn no_path_serves_a_known_secret() {
    let workspace = Workspace::new();
    let own_key = create_key(&workspace, "me", Scope::Admin);
    let (entries, _http) = servers(&workspace, &own_key);
    workspace.write("haft.yaml", json!({"servers": entries}).to_string());
    let program = haft(&workspace, &SERVE);
    let served = Served::run(workspace, Some(own_key.clone()), program);
    let tools = until("both servers are connected", async || {
        let text = served.get("/api/v1/tools").await.text;
        (text.contains("process_tool") && text.contains("remote_tool")).then_some(text)
    });
    assert!(tools.await.contains("it uses *** and ***"));
    let unknown = call(&served, &format!("x{own_key}"), &json!({"a": own_key})).await;
    assert_masked("an error", &unknown.json()["error"].to_string(), &own_key);
    let names = ["process_tool", "remote_tool"].map(|name| format!("/api/v1/tools/{name}"));
    for path in readable(&served).await.into_iter().chain(names) {
        assert_masked(&path, &served.get(&path).await.text, &own_key);
    }
    assert_masked("the lines it printed", &served.stderr(), &own_key);
    let log: String = served.log().iter().map(ToString::to_string).collect();
    assert_masked("the log", &log, &own_key);
}
