//! A service of embeddings by setting.

use std::path::Path;
use std::time::Duration;

use haft::{Config, Runtime};
use serde_json::json;
use testkit::LogCapture;
use testkit::embeddings::{Asked, EmbeddingAnswer, EmbeddingServer};

use crate::toolbox::function;

/// Words that only the service knows to mean the same.
const TOPICS: [&[&str]; 2] = [&["brimble", "quux"], &["florble", "zanth"]];
const REQUEST: &str = "please zanth";

fn config(server: &EmbeddingServer, dir: &Path) -> Config {
    config_with(server, dir, "")
}

fn config_with(server: &EmbeddingServer, dir: &Path, more: &str) -> Config {
    let (address, dir) = (server.address, dir.display());
    Config::from_yaml(&format!(
        "log: {{dir: '{dir}/logs'}}\nstate_dir: '{dir}/state'\ntools: [{{name: first}}, {{name: second}}]\n\
         select: {{embeddings: {{url: 'http://{address}/v1', model: small, api_key: sesame{more}}}}}\n"
    ))
    .unwrap()
}

async fn start(server: &EmbeddingServer, dir: &Path) -> Runtime {
    start_with(config(server, dir)).await
}

async fn start_with(config: Config) -> Runtime {
    let builder = Runtime::builder(config);
    let builder = builder.tool(function("first", "Does the brimble."));
    builder.tool(function("second", "Does the florble.")).start().await.unwrap()
}

async fn best(runtime: &Runtime) -> String {
    runtime.select(REQUEST, 2).await.remove(0).tool
}

fn inputs(asked: &[Asked]) -> Vec<usize> {
    asked.iter().map(|it| it.input.len()).collect()
}

/// Proves S2-FR-004: the service's embeddings decide where the table has none. Each tool is
/// embedded once, also across restarts.
#[tokio::test]
async fn the_service_knows_better_and_is_asked_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = EmbeddingServer::start(&TOPICS).await;
    let runtime = start(&server, dir.path()).await;
    assert_eq!(best(&runtime).await, "second");
    let asked = server.asked();
    assert_eq!(inputs(&asked), [2, 1], "the tools, then the request: {asked:?}");
    for request in &asked {
        assert_eq!(request.authorization.as_deref(), Some("Bearer sesame"));
        assert_eq!(request.model, "small");
    }
    assert!(asked[0].input.contains(&"first. Does the brimble.".to_owned()), "{asked:?}");
    assert_eq!(asked[1].input, [REQUEST]);
    let ranked = runtime.select(REQUEST, 1).await.remove(0);
    assert!(ranked.why.semantic > 0.9, "the service's cosine: {ranked:?}");
    assert_eq!(inputs(&server.asked()), [1]);
    runtime.shutdown(Duration::ZERO).await;

    let runtime = start(&server, dir.path()).await;
    assert_eq!(best(&runtime).await, "second");
    assert_eq!(inputs(&server.asked()), [1], "only the request");
    runtime.shutdown(Duration::ZERO).await;
}

/// New and changed tools are embedded; the others are not.
#[tokio::test]
async fn only_what_is_new_is_asked_about() {
    let dir = tempfile::tempdir().unwrap();
    let server = EmbeddingServer::start(&TOPICS).await;
    let runtime = start(&server, dir.path()).await;
    best(&runtime).await;
    server.asked();
    let mut changed = config(&server, dir.path());
    changed.tools =
        Config::from_yaml("tools: [{name: first, examples: [one quux]}, {name: second}]")
            .unwrap()
            .tools;
    runtime.apply(changed).await.unwrap();
    assert_eq!(best(&runtime).await, "second");
    let asked = server.asked();
    assert_eq!(inputs(&asked), [1, 1]);
    assert_eq!(asked[0].input, ["one quux"]);
    assert_eq!(runtime.select("a quux", 1).await[0].tool, "first");
    runtime.shutdown(Duration::ZERO).await;
}

/// Whatever the service does, tools are chosen: by the table, with one WARNING that hides the key, and by the service
/// again when it is back.
#[tokio::test]
async fn a_service_that_fails_is_done_without() {
    let answers = [
        EmbeddingAnswer::Refusal(401, "no such key: sesame"),
        EmbeddingAnswer::Refusal(500, ""),
        EmbeddingAnswer::Body(json!({"data": []})),
        EmbeddingAnswer::Body(json!({"object": "list"})),
        EmbeddingAnswer::Body(
            json!({"data": [{"index": 0, "embedding": [0.0]}, {"index": 1, "embedding": [0.0]}]}),
        ),
        EmbeddingAnswer::Body(
            json!({"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]}),
        ),
    ];
    let server = EmbeddingServer::start(&TOPICS).await;
    for answer in answers {
        let dir = tempfile::tempdir().unwrap();
        let (heard, guard) = LogCapture::start();
        server.answers(answer.clone());
        let runtime = start(&server, dir.path()).await;
        assert_eq!(best(&runtime).await, "first", "the table: {answer:?}");
        assert_eq!(best(&runtime).await, "first");
        assert_eq!(server.asked().len(), 1, "nobody waits a second time: {answer:?}");
        let warnings = heard.from("WARNING");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("no embeddings from http://127.0.0.1"), "{warnings:?}");
        assert!(!warnings[0].contains("sesame"), "{warnings:?}");

        server.answers(EmbeddingAnswer::Vectors);
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(31)).await;
        tokio::time::resume();
        assert_eq!(best(&runtime).await, "second", "{answer:?}");
        assert_eq!(heard.count("embeddings come again"), 1);
        server.asked();
        drop(guard);
        runtime.shutdown(Duration::ZERO).await;
    }
}

/// If the service switches to another model, the tools are embedded again, and a log line reports
/// it.
#[tokio::test]
async fn another_model_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let server = EmbeddingServer::start(&TOPICS).await;
    let (heard, _guard) = LogCapture::start();
    let runtime = start(&server, dir.path()).await;
    assert_eq!(best(&runtime).await, "second");
    server.answers(EmbeddingAnswer::Longer(3));
    server.asked();
    assert_eq!(best(&runtime).await, "second");
    assert_eq!(inputs(&server.asked()), [1, 2], "the request, then the tools");
    assert_eq!(heard.count("have another length than before"), 1);
    assert_eq!(best(&runtime).await, "second");
    assert_eq!(inputs(&server.asked()), [1]);
    runtime.shutdown(Duration::ZERO).await;
}

/// An oversized input is shortened, and other tools keep their embeddings.
#[tokio::test]
async fn a_text_that_is_refused_concerns_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    let server = EmbeddingServer::start(&TOPICS).await;
    server.answers(EmbeddingAnswer::Limited(400));
    let (heard, _guard) = LogCapture::start();
    let long = format!("Does the brimble. {}", "and more of it ".repeat(60));
    let builder = Runtime::builder(config(&server, dir.path())).tool(function("first", &long));
    let runtime = builder.tool(function("second", "Does the florble.")).start().await.unwrap();
    assert_eq!(best(&runtime).await, "second");
    let request = format!("please zanth {}", "with all the rest ".repeat(60));
    assert_eq!(runtime.select(&request, 1).await[0].tool, "second");
    server.answers(EmbeddingAnswer::Limited(1));
    best(&runtime).await;
    server.answers(EmbeddingAnswer::Vectors);
    assert_eq!(best(&runtime).await, "second", "at once");
    assert_eq!(heard.from("WARNING"), [""; 0]);
    runtime.shutdown(Duration::ZERO).await;
}

/// A silent service is awaited once, and not longer than the setting allows.
#[tokio::test]
async fn a_service_that_is_silent_is_done_without() {
    let dir = tempfile::tempdir().unwrap();
    let server = EmbeddingServer::start(&TOPICS).await;
    server.answers(EmbeddingAnswer::Silence);
    let (heard, _guard) = LogCapture::start();
    let runtime = start_with(config_with(&server, dir.path(), ", timeout: 100ms")).await;
    assert_eq!((best(&runtime).await, best(&runtime).await), ("first".into(), "first".into()));
    assert_eq!(server.asked().len(), 1);
    assert_eq!(heard.count("did not answer in time (`select.embeddings.timeout`)"), 1);
    runtime.shutdown(Duration::ZERO).await;
}

/// A truncated cache file is rebuilt.
#[tokio::test]
async fn a_broken_file_is_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let server = EmbeddingServer::start(&TOPICS).await;
    let runtime = start(&server, dir.path()).await;
    best(&runtime).await;
    runtime.shutdown(Duration::ZERO).await;
    let kept = std::fs::read_dir(dir.path().join("state/embeddings")).unwrap();
    let kept = kept.map(|entry| entry.unwrap().path()).next().unwrap();
    let bytes = std::fs::read(&kept).unwrap();
    std::fs::write(&kept, &bytes[..bytes.len() - 5]).unwrap();
    server.asked();
    let runtime = start(&server, dir.path()).await;
    assert_eq!(best(&runtime).await, "second");
    assert_eq!(inputs(&server.asked()), [2, 1]);
    assert_eq!(std::fs::read(&kept).unwrap().len(), bytes.len());
    runtime.shutdown(Duration::ZERO).await;
    // This file is never written again.
    std::fs::remove_file(&kept).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&kept).status().unwrap().success());
    let runtime = start(&server, dir.path()).await;
    assert_eq!(best(&runtime).await, "second");
    assert_eq!(std::fs::read(&kept).unwrap().len(), bytes.len());
    runtime.shutdown(Duration::ZERO).await;
}

/// Settings that cannot be used are refused, and what is shown hides the key.
#[test]
fn settings_are_checked_and_shown() {
    let wrong = |embeddings: &str| {
        let error = Config::from_yaml(&format!("select: {{embeddings: {embeddings}}}\n"));
        error.unwrap_err().to_string()
    };
    assert!(wrong("{url: 'http://h/v1'}").contains("needs both `url` and `model`"));
    assert!(wrong("{url: 'ftp://h', model: m}").contains("is not an address of a service"));
    assert!(wrong("{url: 'http://u:p@h/v1', model: m}").contains("`url` has a name or password"));
    assert!(wrong("{url: 'http://h/v1', model: ' '}").contains("`model` names no model"));
    assert!(wrong("{url: 'http://h/v1', model: m, api_key: ''}").contains("`api_key` is empty"));
    assert!(wrong("{url: 'http://h', model: m, timeout: 0}").contains("timeout"));
    assert!(wrong("{url: 'http://h', model: m, key: x}").contains("key"));
    let text = "select: {embeddings: {url: 'http://h/v1', model: m, api_key: sesame}}\n";
    let rows = haft::config::show::rows(&Config::from_yaml(text).unwrap());
    let shown = |path: &str| rows.iter().find(|row| row.path == path).unwrap().value.clone();
    assert_eq!(shown("select.embeddings.api_key"), json!("***"));
    assert_eq!(shown("select.embeddings.timeout"), json!("10s"));
}

/// A part of the tools is compared by the service too, each tool by its own meaning.
#[tokio::test]
async fn a_part_of_the_tools_is_compared_by_the_service() {
    let dir = tempfile::tempdir().unwrap();
    let server = EmbeddingServer::start(&TOPICS).await;
    let runtime = start(&server, dir.path()).await;
    let part = runtime.choose_among(REQUEST, 2, |_, name| name == "second").await;
    let [second] = &part.ranked[..] else { panic!("{part:?}") };
    assert_eq!(second.tool, "second");
    assert!(second.why.semantic > 0.9, "the service's cosine: {second:?}");
    runtime.shutdown(Duration::ZERO).await;
}
