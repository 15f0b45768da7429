//! The model's key appears in no answer, event or file.

use std::fmt::Write as _;

use serde_json::json;
use testkit::model::{Format, ModelServer, Step};

use crate::agent::{RUNS, follow, workspace};
use crate::events::Events;
use crate::served::{SERVE, Served, create_key, haft};

const KEY: &str = "sk-canary-model-4f2e9d8c7b6a";

/// Proves S3-SC-005 for runs: also where the model's service repeats the key in what it answers.
#[tokio::test]
async fn the_key_of_the_model_is_nowhere() {
    for (format, variable) in
        [(Format::OpenAi, "OPENAI_API_KEY"), (Format::Anthropic, "ANTHROPIC_API_KEY")]
    {
        let refused = format!(r#"{{"error": {{"message": "Incorrect API key provided: {KEY}"}}}}"#);
        let model = ModelServer::start(
            format,
            [
                Step::call("greet", json!({"name": "Ada"})),
                Step::text("Fine."),
                Step::status(401).with_body(refused.clone()),
                Step::status(400).with_body(refused),
            ],
        );
        let workspace = workspace(&model, "");
        let admin = create_key(&workspace, "me", haft_server::keys::Scope::Admin);
        let program = haft(&workspace, &SERVE).env(variable, KEY).args(&["--log-level", "debug"]);
        let served = Served::run(workspace, Some(admin), program);
        let mut all = String::new();
        for _ in 0..3 {
            let mut events = follow(&served, json!({"input": "Hi"})).await;
            let path = events.header("location").to_owned();
            let _ = write!(all, "{:?}", events.rest().await);
            all += &served.get(&path).await.text;
            let again = served.request(reqwest::Method::GET, &format!("{path}/events"));
            let _ = write!(all, "{:?}", Events::of(again).await.rest().await);
        }
        let headers = format!("{:?}", model.last_request().headers);
        assert!(headers.contains(KEY), "the key was used: {headers}");
        for path in [RUNS, "/api/v1/config", "/api/v1/log", "/api/v1/status", "/readyz", "/metrics"]
        {
            let answer = served.get(path).await;
            let _ = write!(all, "\n{path} {:?} {}", answer.headers, answer.text);
        }
        all += &served.stderr();
        for entry in served.log() {
            all += &entry.to_string();
        }
        for line in all.lines() {
            assert!(!line.contains(KEY), "{format:?}: {line}");
        }
    }
}
