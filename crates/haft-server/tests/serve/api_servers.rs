//! MCP servers over the API: shown, added, replaced, removed, left out, reconnected.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::Workspace;
use testkit::fixture::{Fixture, Running, Transport};

use crate::served::{Answer, Served, toolbox};

fn remote(tools: &[&str]) -> Running {
    Fixture::serve(Transport::Http, &json!({ "tools": tools }))
}

fn registry(workspace: &Workspace) -> Value {
    serde_json::from_str(&workspace.read("tools/mcp.json").unwrap()).unwrap()
}

fn code(answer: &Answer) -> (u16, String) {
    (answer.status, answer.json()["code"].as_str().unwrap_or_default().to_owned())
}

/// Proves S0-83, S2-FR-015: from nothing to a server whose tools can be called, and away again, with every
/// step in the file.
#[tokio::test]
async fn a_server_is_added_changed_and_removed() {
    let served = Served::with_admin(toolbox());
    let docs = remote(&["echo", "text"]);
    let body = json!({"name": "docs", "url": docs.url, "mode": "dynamic"}).to_string();
    let added = served.post("/api/v1/servers", &body).await;
    assert_eq!(added.status, 201, "{}", added.text);
    assert_eq!(added.header("location"), "/api/v1/servers/docs");
    let shown = added.json();
    assert_eq!((&shown["state"], &shown["tools"]), (&json!("ready"), &json!(2)), "{shown}");
    assert_eq!(registry(&served.workspace)["mcp_servers"]["docs"]["url"], json!(docs.url));

    let twice = served.post("/api/v1/servers", &body).await;
    assert_eq!(code(&twice), (409, "Exists".to_owned()));

    let shown = served.get("/api/v1/servers/docs").await;
    let tag = shown.header("etag").to_owned();
    assert_eq!(tag, added.header("etag"));
    let details = shown.json();
    // The registry has a local tool `echo`, which keeps its name.
    assert_eq!(details["tool_names"], json!(["docs__echo", "text"]));
    assert_eq!(details["in_registry"], json!(true));
    let listed = served.get("/api/v1/servers").await.json();
    assert_eq!(listed["servers"][0]["name"], json!("docs"));

    let other = remote(&["sleep"]);
    let new = json!({"url": other.url, "mode": "dynamic"}).to_string();
    let replaced =
        served.send(Method::PUT, "/api/v1/servers/docs", &[("if-match", &tag)], &new).await;
    assert_eq!((replaced.status, &replaced.json()["tools"]), (200, &json!(1)), "{}", replaced.text);
    // The tag named the previous version: another change would be lost.
    let lost = served.send(Method::PUT, "/api/v1/servers/docs", &[("if-match", &tag)], &new).await;
    assert_eq!(code(&lost), (412, "PreconditionFailed".to_owned()));
    let only_new = [("if-none-match", "*")];
    let refused = served.send(Method::PUT, "/api/v1/servers/docs", &only_new, &new).await;
    assert_eq!(refused.status, 412, "{}", refused.text);
    let added = served.send(Method::PUT, "/api/v1/servers/more%20docs", &only_new, &new).await;
    assert_eq!(added.header("location"), "/api/v1/servers/more%20docs", "{}", added.text);
    assert_eq!(served.delete("/api/v1/servers/more%20docs").await.status, 204);
    let added = served.send(Method::PUT, "/api/v1/servers/more", &only_new, &new).await;
    assert_eq!(added.status, 201, "{}", added.text);

    let stale =
        served.send(Method::DELETE, "/api/v1/servers/docs", &[("if-match", &tag)], "").await;
    assert_eq!(stale.status, 412);
    assert_eq!(served.delete("/api/v1/servers/docs").await.status, 204);
    assert_eq!(served.delete("/api/v1/servers/docs").await.status, 404);
    assert_eq!(served.get("/api/v1/servers/docs").await.status, 404);
    assert_eq!(registry(&served.workspace)["mcp_servers"].as_object().unwrap().len(), 1);
}

#[tokio::test]
async fn a_server_is_disabled_enabled_and_reconnected() {
    let served = Served::with_admin(toolbox());
    let mut docs = remote(&["echo"]);
    let port = docs.port();
    let body =
        json!({"name": "docs", "url": docs.url, "mode": "dynamic", "reconnect": {"attempts": 0}});
    assert_eq!(served.post("/api/v1/servers", &body.to_string()).await.status, 201);

    let disabled = served.post("/api/v1/servers/docs/disable", "").await;
    assert_eq!((disabled.status, &disabled.json()["state"]), (200, &json!("disabled")));
    assert_eq!(registry(&served.workspace)["mcp_servers"]["docs"]["disabled"], json!(true));
    let refused = served.post("/api/v1/servers/docs/reconnect", "").await;
    assert_eq!(code(&refused), (409, "Conflict".to_owned()));
    let enabled = served.post("/api/v1/servers/docs/enable", "").await;
    assert_eq!((enabled.status, &enabled.json()["state"]), (200, &json!("ready")));
    assert_eq!(registry(&served.workspace)["mcp_servers"]["docs"], {
        let mut entry = body.clone();
        entry.as_object_mut().unwrap().remove("name");
        entry
    });

    docs.kill();
    let gone = served.post("/api/v1/servers/docs/reconnect", "").await;
    assert_eq!((gone.status, &gone.json()["state"]), (200, &json!("unavailable")), "{}", gone.text);
    let _docs = Fixture::serve_at(Transport::Http, &json!({"tools": ["echo"]}), port);
    let back = served.post("/api/v1/servers/docs/reconnect", "").await;
    assert_eq!((back.status, &back.json()["state"]), (200, &json!("ready")), "{}", back.text);
    assert_eq!(served.post("/api/v1/servers/dosc/reconnect", "").await.status, 404);
}

/// Problems of an entry are reported field by field, and nothing changes.
#[tokio::test]
async fn what_cannot_be_added_is_refused_with_reasons() {
    let workspace = toolbox();
    workspace.write(
        "haft.yaml",
        "registry: {dir: tools}\nservers: {fixed: {url: 'http://127.0.0.1:1/mcp', reconnect: {attempts: 0}}}\n",
    );
    let before = workspace.read("tools/mcp.json");
    let served = Served::with_admin(workspace);
    for (body, status, code) in [
        (
            json!({"name": "x", "url": "http://127.0.0.1:1/mcp", "colour": "red"}),
            422,
            "InvalidEntry",
        ),
        (json!({"name": "x"}), 422, "InvalidEntry"),
        (json!({"url": "http://127.0.0.1:1/mcp"}), 422, "InvalidEntry"),
        (json!({"name": 7, "url": "http://127.0.0.1:1/mcp"}), 422, "InvalidEntry"),
        (json!(["x"]), 400, "InvalidBody"),
        (json!({"name": "fixed", "url": "http://127.0.0.1:1/mcp"}), 409, "ReadOnly"),
        (json!({"name": "x", "command": "touch", "args": ["spawned"]}), 403, "NotAllowed"),
    ] {
        let refused = served.post("/api/v1/servers", &body.to_string()).await;
        assert_eq!(self::code(&refused), (status, code.to_owned()), "{body}: {}", refused.text);
        assert!(refused.json()["remedy"].is_string(), "{}", refused.text);
    }
    let mismatch = served.put("/api/v1/servers/a", r#"{"name": "b", "url": "http://x/"}"#).await;
    assert_eq!(mismatch.status, 422);
    let invalid = served.post("/api/v1/servers", r#"{"name": "x", "colour": "red"}"#).await.json();
    assert!(!invalid["errors"].as_array().unwrap().is_empty(), "{invalid}");
    assert_eq!(served.delete("/api/v1/servers/fixed").await.status, 409);
    assert_eq!(served.workspace.read("tools/mcp.json"), before);
    assert_eq!(served.get("/api/v1/servers").await.json()["servers"].as_array().unwrap().len(), 1);
}

/// Lines of a server that are not messages are counted for every caller.
#[tokio::test]
async fn stray_output_of_a_server_is_counted() {
    let workspace = toolbox();
    let noisy = json!({"command": Fixture::path(),
        "args": Fixture::stdio_args(&json!({"tools": ["text"], "noise": ["Loading model..."]}))});
    let config = json!({"registry": {"dir": "tools"}, "servers": {"noisy": noisy}});
    std::fs::remove_file(workspace.path().join("haft.yaml")).unwrap();
    workspace.write("haft.json", config.to_string());
    let served = Served::with_admin(workspace);
    assert_eq!(served.post("/api/v1/tools/text/call", "{}").await.status, 200);
    let shown = served.get("/api/v1/servers/noisy").await.json();
    assert!(shown["stray_lines"].as_u64().unwrap() > 0, "{shown}");
}
