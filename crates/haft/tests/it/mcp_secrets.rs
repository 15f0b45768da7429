//! Secrets reach only the server they are for: no log line, answer, file or error.

use haft::config::LoadOptions;
use haft::{Config, Runtime, ServerInfo};
use serde_json::{Value, json};
use testkit::LogCapture;

use super::mcp_support::{Stage, call, files_with, with};

const CANARIES: [(&str, &str); 3] = [
    ("IN_ENV", "canary-env-8c1f"),
    ("IN_FILE", "canary-file-77aa"),
    ("IN_CONFIG", "canary-config-1b2d"),
];

/// A server that receives a canary in every possible way, and uses them as `scenario` defines.
fn config(stage: &Stage, scenario: Value, settings: Value) -> Config {
    stage.workspace.write("secret.env", format!("FROM_FILE={}\n", CANARIES[1].1));
    let own = json!({
        "env": {"API_KEY": "${IN_ENV}"}, "env_file": "secret.env",
        "config": {"token": "${IN_CONFIG}"}, "reconnect": {"attempts": 0},
    });
    let (name, mut server) = stage.stdio("one", scenario, with(own, settings));
    // A command line is shown, so the server's script comes from a file.
    stage.workspace.write("scenario.json", server["args"][2].as_str().unwrap());
    server["args"] = json!(["stdio", "--script", stage.path("scenario.json")]);
    let file = json!({
        "log": {"dir": stage.path("out/logs")}, "state_dir": stage.path("out/state"),
        "servers": {name: server},
    });
    stage.workspace.write("haft.yaml", file.to_string());
    let environment = CANARIES.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let options = LoadOptions {
        files: vec!["haft.yaml".into()],
        environment: environment.collect(),
        cwd: stage.workspace.path().to_path_buf(),
        ..LoadOptions::default()
    };
    Config::load(&options).unwrap_or_else(|error| panic!("{error}"))
}

fn assert_clean(what: &str, text: &str) {
    for (_, canary) in CANARIES {
        assert!(!text.contains(canary), "`{canary}` in {what}: {text}");
    }
}

fn assert_all_clean(stage: &Stage, heard: &LogCapture, infos: &[ServerInfo]) {
    assert_clean("the log lines", &heard.lines().join("\n"));
    assert_clean("the servers", &json!(infos).to_string());
    for (_, canary) in CANARIES {
        let found = files_with(&stage.path("out"), canary);
        assert!(found.is_empty(), "`{canary}` in {found:?}");
    }
}

/// Proves S3-SC-005, S3-US2-1: the server has the secrets; calls, logs and files do not show them,
/// even where the server sends them back.
#[tokio::test]
async fn a_healthy_servers_secrets_stay_with_it() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let config = config(&stage, json!({}), json!({}));
    assert_clean("the configuration", &format!("{config:?}"));
    let runtime = Runtime::start(config).await.unwrap();
    let start = testkit::fixture::events(&stage.facts("one"), "start").remove(0);
    assert_eq!(start["env"]["API_KEY"], json!(CANARIES[0].1), "the server has it");
    assert_eq!(start["env"]["FROM_FILE"], json!(CANARIES[1].1));
    assert!(start["env"]["MCP_CONFIG"].as_str().unwrap().contains(CANARIES[2].1));
    call(
        &runtime,
        "echo",
        json!({"key": CANARIES[0].1, "say": format!("it is {}", CANARIES[1].1)}),
    )
    .await;
    call(&runtime, "stats", json!({})).await;
    let failed = call(&runtime, "crash", json!({"key": CANARIES[0].1})).await;
    assert_clean("an error", &json!(failed.error).to_string());
    let gone = call(&runtime, "echo", json!({})).await;
    assert_clean("an error", &json!(gone.error).to_string());
    assert_all_clean(&stage, &heard, &runtime.servers());
}

/// Proves S3-SC-005: a server that dies with a secret on its lips.
#[tokio::test]
async fn last_words_are_masked() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let words = format!("bad key {} of {}\n", CANARIES[0].1, CANARIES[1].1);
    let scenario = json!({"start": {"stderr": words, "exit": 3}});
    let runtime = Runtime::start(config(&stage, scenario.clone(), json!({}))).await.unwrap();
    assert!(heard.count("bad key ***") > 0, "the rest of the words is there: {:?}", heard.lines());
    runtime.discover().await;
    assert!(runtime.ping("one").await.is_err());
    let error = runtime.ping("one").await.unwrap_err();
    assert_clean("an error", &format!("{error:?}"));
    assert_all_clean(&stage, &heard, &runtime.servers());
    let refused = Runtime::start(config(&stage, scenario, json!({"required": true}))).await;
    assert_clean("the start's error", &format!("{}", refused.err().unwrap()));
    assert_all_clean(&stage, &heard, &[]);
}

/// Proves S3-SC-005: a server that logs its secret, or quotes it in an error.
#[tokio::test]
async fn what_servers_say_about_secrets_is_masked() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let quoted = json!({"code": -32000, "message": format!("no access with {}", CANARIES[0].1), "data": {"key": CANARIES[1].1}});
    let scenario = json!({"errors_on": {"tools/call": quoted, "prompts/get": quoted}, "noise": [format!("key={}", CANARIES[0].1)]});
    let runtime = Runtime::start(config(&stage, scenario, json!({}))).await.unwrap();
    let failed = call(&runtime, "echo", json!({})).await;
    assert_clean("an error", &json!(failed.error).to_string());
    let empty = serde_json::value::RawValue::from_string("{}".into()).unwrap();
    let refused = runtime.prompt("one", "plain", &empty).await.unwrap_err();
    assert_clean("a refused prompt", &format!("{refused:?}"));
    assert_all_clean(&stage, &heard, &runtime.servers());
}
