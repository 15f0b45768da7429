//! Selection of the model, its address and its key.

use haft_agent::model::{ModelError, ModelFailure};
use testkit::{ModelServer, Step, Workspace};

use crate::config_support::{errors, load, native};
use crate::model_support::{KEY, failure, model, open_in, question, turn};

fn refused(config: &str, environment: &[(&str, &str)]) -> ModelError {
    let Err(error) = open_in(config, environment) else { panic!("{config} was taken") };
    assert_eq!(error.kind, ModelFailure::Setup);
    error
}

#[test]
fn a_model_that_cannot_be_asked_says_why() {
    for (config, message, remedy) in [
        (
            "agent: {}",
            "no model is configured",
            "write one under `agent` in the configuration, such as `model: openai::gpt-5`",
        ),
        (
            "agent: {model: gpt-5}",
            "the model `gpt-5` does not say whose it is",
            "write `openai::gpt-5`",
        ),
        (
            "agent: {model: \"opnai::gpt-5\"}",
            "there is no provider `opnai` (of the model `opnai::gpt-5`)",
            "write `openai::gpt-5`",
        ),
        (
            "agent: {model: \"openai::gpt-5\"}",
            "there is no key for the model `openai::gpt-5`",
            "set `OPENAI_API_KEY`, or name a file that holds it with `agent.api_key_file`",
        ),
        (
            "agent: {model: \"gemini::gemini-3-pro\"}",
            "there is no key for the model `gemini::gemini-3-pro`",
            "set `GEMINI_API_KEY`, or name a file that holds it with `agent.api_key_file`",
        ),
        (
            "agent: {model: \"groq::llama\"}",
            "there is no key for the model `groq::llama`",
            "write `api_key_env: GROQ_API_KEY` under `agent` and set that variable, or name a file \
             with `agent.api_key_file`",
        ),
        (
            "agent: {model: \"openai::gpt-5\", api_key_env: MY_KEY}",
            "there is no key for the model `openai::gpt-5`",
            "set `MY_KEY`, or name a file that holds it with `agent.api_key_file`",
        ),
        // A self-hosted service may name a variable explicitly.
        (
            "agent: {model: \"openai::own\", base_url: \"http://localhost:1/v1\", api_key_env: MY_KEY}",
            "there is no key for the model `openai::own`",
            "set `MY_KEY`, or name a file that holds it with `agent.api_key_file`",
        ),
    ] {
        let error = refused(config, &[]);
        assert_eq!((error.message.as_str(), error.remedy.as_deref()), (message, Some(remedy)));
    }
}

#[test]
fn ollama_needs_no_key() {
    let model = open_in("agent: {model: \"ollama::qwen3:8b\"}", &[]).unwrap();
    assert_eq!(model.name(), "ollama::qwen3:8b");
}

#[tokio::test]
async fn the_key_goes_where_the_format_has_it() {
    let server = ModelServer::openai([Step::text("ok")]);
    turn(&model(&server, ""), question("?")).await;
    let request = server.last_request();
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(
        (request.path.as_str(), &request.body["model"]),
        ("/v1/chat/completions", &"scripted".into())
    );

    let server = ModelServer::anthropic([Step::text("ok")]);
    turn(&model(&server, ""), question("?")).await;
    let request = server.last_request();
    assert_eq!(request.headers["x-api-key"], KEY);
    assert_eq!(request.path, "/v1/messages");
}

#[tokio::test]
async fn ollama_gets_a_key_where_there_is_one() {
    let server = ModelServer::ollama([Step::text("ok"), Step::text("ok")]);
    let config = format!("{}  api_key_env: OLLAMA_KEY\n", server.config());
    turn(&open_in(&config, &[("OLLAMA_KEY", KEY)]).unwrap(), question("?")).await;
    assert_eq!(server.last_request().headers["authorization"], format!("Bearer {KEY}"));
    turn(&model(&server, ""), question("?")).await;
    assert_eq!(server.last_request().headers.get("authorization"), None);
}

/// Gemini models without reasoning reject a request for it.
#[tokio::test]
async fn gemini_is_not_asked_for_thoughts() {
    let server = ModelServer::gemini([Step::text("ok")]);
    turn(&model(&server, ""), question("?")).await;
    assert_eq!(server.last_request().body.pointer("/generationConfig/thinkingConfig"), None);
}

/// A model of another provider on the command line does not use the address and key of the file.
#[test]
fn another_providers_model_has_its_own_address_and_key() {
    let written =
        "agent: {model: \"openai::own\", base_url: \"http://localhost:1/v1\", api_key_file: key}";
    let mut config = native(written, &[]).unwrap();
    let environment = [("ANTHROPIC_API_KEY".to_owned(), KEY.to_owned())].into();
    config.choose_model("openai::other", &environment);
    assert!(config.agent.base_url.is_some() && config.agent.api_key_file.is_some());
    config.choose_model("anthropic::claude", &environment);
    assert!(config.agent.base_url.is_none() && config.agent.api_key_file.is_none());
    assert_eq!(config.agent.api_key.as_ref().map(haft::config::Secret::expose), Some(KEY));
}

/// A setting that the model's provider ignores is reported.
#[test]
fn settings_without_effect_are_reported() {
    for (provider, expected) in [("openai", 0), ("anthropic", 2), ("gemini", 1), ("ollama", 2)] {
        let agent =
            format!("agent: {{model: \"{provider}::m\", strict_schemas: true, audio: true}}");
        let warnings = native(&agent, &[]).unwrap().warnings;
        assert_eq!(warnings.len(), expected, "{warnings:?}");
        assert!(warnings.iter().all(|it| it.to_string().contains("does nothing with a model of")));
    }
}

#[tokio::test]
async fn a_service_of_ones_own_needs_no_key() {
    let server = ModelServer::openai([Step::text("ok"), Step::status(401)]);
    let model = open_in(&server.config(), &[]).unwrap();
    turn(&model, question("?")).await;
    assert_eq!(server.last_request().headers.get("authorization"), None);
    let error = failure(&model, question("?")).await;
    assert_eq!(error.message, "the service of `openai::scripted` wants a key (401): scripted 401");
    assert_eq!(
        error.remedy.as_deref(),
        Some("look at `OPENAI_API_KEY` or `agent.api_key_file`: none is set")
    );
    let server = ModelServer::anthropic([Step::text("ok")]);
    turn(&open_in(&server.config(), &[]).unwrap(), question("?")).await;
    assert_eq!(server.last_request().headers["x-api-key"], "none");
}

#[tokio::test]
async fn the_file_with_the_key_is_read_for_each_request() {
    let server = ModelServer::openai([Step::text("1"), Step::text("2"), Step::status(401)]);
    let config = format!("{}  api_key_file: secrets/key\n", server.config());
    let workspace =
        Workspace::with(&[("haft.yaml", config.as_str()), ("secrets/key", " first-key-1\n")]);
    let config = load(&workspace, &["haft.yaml"], &[("OPENAI_API_KEY", KEY)]).unwrap();
    let model = haft_agent::model::open(&config.agent).unwrap();
    let file = workspace.path().join("secrets/key");
    let shown = file.display();
    turn(&model, question("?")).await;
    std::fs::write(&file, "second-key-2").unwrap();
    turn(&model, question("?")).await;
    let keys: Vec<_> =
        server.requests().iter().map(|it| it.headers["authorization"].clone()).collect();
    assert_eq!(keys, ["Bearer first-key-1", "Bearer second-key-2"]);

    let error = failure(&model, question("?")).await;
    assert_eq!(error.remedy, Some(format!("look at the file `{shown}`")));

    for (text, message) in [
        ("\n", format!("the file `{shown}` holds no key: it is empty")),
        ("two words", "the key of the model has characters that no header may have".to_owned()),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = failure(&model, question("?")).await;
        assert_eq!((error.kind, error.message), (ModelFailure::Setup, message));
    }
    std::fs::remove_file(&file).unwrap();
    let error = failure(&model, question("?")).await;
    assert_eq!(error.kind, ModelFailure::Setup);
    assert!(error.message.starts_with(&format!("the file `{shown}` with the key: ")), "{error}");
    assert_eq!(server.requests().len(), 3);
}

/// A pipe without a writer, a device without an end, a folder and a long file are none.
#[cfg(unix)]
#[tokio::test]
async fn a_key_is_only_read_from_a_short_plain_file() {
    let server = ModelServer::openai([]);
    let long = "k".repeat((64 << 10) + 1);
    for (file, problem) in [
        ("pipe", "it is not a file"),
        ("/dev/zero", "it is not a file"),
        (".", "it is not a file"),
        ("long", "it has more than 65536 bytes"),
    ] {
        let config = format!("{}  api_key_file: {file}\n", server.config());
        let workspace = Workspace::with(&[("haft.yaml", config.as_str()), ("long", &long)]);
        let pipe = workspace.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        let config = load(&workspace, &["haft.yaml"], &[]).unwrap();
        let model = haft_agent::model::open(&config.agent).unwrap();
        let error = failure(&model, question("?")).await;
        assert_eq!(error.kind, ModelFailure::Setup);
        assert!(error.message.ends_with(&format!("with the key: {problem}")), "{error}");
    }
    assert_eq!(server.requests().len(), 0);
}

/// The same holds for the system instructions.
#[cfg(unix)]
#[test]
fn instructions_are_only_read_from_a_plain_file_that_is_not_too_long() {
    let long = "k".repeat((1 << 20) + 1);
    for (file, problem) in [
        ("pipe", "`pipe` cannot be read: it is not a file"),
        ("/dev/zero", "`/dev/zero` cannot be read: it is not a file"),
        ("long", "`long` cannot be read: it has more than 1048576 bytes"),
    ] {
        let config = format!("agent: {{system_file: {file}}}\n");
        let workspace = Workspace::with(&[("haft.yaml", config.as_str()), ("long", &long)]);
        let pipe = workspace.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        let told = errors(load(&workspace, &["haft.yaml"], &[]));
        assert!(told.contains(problem), "{told}");
        assert!(told.contains("name a text file of at most 1 MiB"), "{told}");
    }
}

#[tokio::test]
async fn a_name_that_ends_like_an_effort_is_sent_whole() {
    let server = ModelServer::openai([Step::text("ok")]);
    let config = server.config().replace("scripted", "qwen3-max");
    turn(&open_in(&config, &[]).unwrap(), question("?")).await;
    let body = server.last_request().body;
    assert_eq!(body["model"], "qwen3-max");
    assert_eq!(body.get("reasoning_effort"), None);
}

#[tokio::test]
async fn a_service_that_does_not_run_is_named() {
    let config = "agent: {model: \"openai::x\", base_url: \"http://127.0.0.1:1/v1\", retries: 1}";
    let error = failure(&open_in(config, &[]).unwrap(), question("?")).await;
    assert_eq!(error.kind, ModelFailure::Passing { retry_after: None });
    let begin = "the service of `openai::x` cannot be reached at http://127.0.0.1:1/v1: ";
    assert!(error.message.starts_with(begin), "{error}");
    assert_eq!(
        error.remedy.as_deref(),
        Some("look at `agent.base_url` and whether the service runs")
    );
}
