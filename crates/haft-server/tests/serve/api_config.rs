//! Configuration, reload and status over the API.

use serde_json::{Value, json};

use crate::served::{Served, toolbox};

fn value<'a>(config: &'a Value, path: &str) -> &'a Value {
    config["values"].as_array().unwrap().iter().find(|row| row["path"] == path).unwrap()
}

/// Proves S2-Q-08 for the files: invalid ones change nothing and are reported.
#[tokio::test]
async fn the_configuration_is_shown_and_loaded_again() {
    let served = Served::with_admin(toolbox());
    let config = served.get("/api/v1/config").await.json();
    assert_eq!(value(&config, "registry.dir")["origin"], json!("explicit"));
    assert_eq!(value(&config, "log.retain_days")["value"], json!(30));
    let files: Vec<&str> =
        config["files"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(files.iter().any(|it| it.ends_with("haft.yaml")), "{files:?}");
    assert_eq!(config["live"]["problem"], Value::Null);
    assert!(config["live"]["revision"].is_string(), "{config}");

    served.workspace.write("haft.yaml", "registry: {dir: tools}\nlog: {retain_days: 7}\n");
    let reloaded = served.post("/api/v1/reload", "").await;
    assert_eq!((reloaded.status, &reloaded.json()["problem"]), (200, &Value::Null));
    let config = served.get("/api/v1/config").await.json();
    assert_eq!(value(&config, "log.retain_days")["value"], json!(7));

    served
        .workspace
        .write("haft.yaml", "registry: {dir: tools}\nlog: {retain_days: many, colour: 1}\n");
    let refused = served.post("/api/v1/reload", "").await;
    assert_eq!((refused.status, &refused.json()["code"]), (422, &json!("InvalidFiles")));
    assert_eq!(refused.json()["errors"].as_array().unwrap().len(), 2, "{}", refused.text);
    let config = served.get("/api/v1/config").await.json();
    assert_eq!(value(&config, "log.retain_days")["value"], json!(7));
    assert_eq!(config["live"]["problem"]["errors"].as_array().unwrap().len(), 2);
    let ready = served.get("/readyz").await;
    assert_eq!((ready.status, &ready.json()["reasons"][0]["what"]), (200, &json!("configuration")));

    served.workspace.write("haft.yaml", "registry: {dir: tools}\n");
    assert_eq!(served.post("/api/v1/reload", "").await.status, 200);
    assert_eq!(served.get("/readyz").await.json()["status"], json!("ready"));
}

/// Proves X-10: the limits and how much of them is used can be seen.
#[tokio::test]
async fn the_status_shows_how_busy_it_is() {
    let served = Served::open(toolbox());
    let status = served.get("/api/v1/status").await.json();
    assert_eq!(status["version"], json!(env!("CARGO_PKG_VERSION")));
    assert_eq!((&status["tools"], &status["servers"]), (&json!(4), &json!(0)));
    assert_eq!((&status["log"]["is_working"], &status["model"]), (&json!(true), &Value::Null));
    let calls = &status["calls"];
    assert_eq!((&calls["in_flight"], &calls["waiting"]), (&json!(0), &json!(0)));
    assert!(calls["max_concurrent"].as_u64().unwrap() > 0);
    assert_eq!(calls["tools"].as_array().unwrap().len(), 4);
    assert_eq!(calls["tools"][0]["tool"], json!("greet"));
}
