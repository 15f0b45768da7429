//! `start: lazy`: no process before the first need, and a memory of what the server had.

use std::time::Duration;

use haft::{Code, ServerState, StartError, Status};
use serde_json::{Value, json};
use testkit::LogCapture;

use super::mcp_support::{Server, Stage, answer, call, failure, names};

fn lazy(stage: &Stage, settings: Value) -> Server {
    let settings = super::mcp_support::with(json!({"start": "lazy"}), settings);
    stage.stdio("late", json!({"tools": ["echo", "stats"]}), settings)
}

/// Proves S3-FR-024, X-2: nothing runs until a call of an unknown tool; after the shutdown it is
/// gone.
#[tokio::test]
async fn a_lazy_server_starts_at_the_first_need() {
    let stage = Stage::new();
    let eager = stage.stdio("soon", json!({"tools": ["text"]}), json!({}));
    let runtime = stage.start([lazy(&stage, json!({})), eager], json!({})).await;
    assert_eq!((stage.starts("late"), stage.starts("soon")), (0, 1));
    assert_eq!(names(&runtime), ["text"]);
    assert_eq!(runtime.servers()[0].state, ServerState::Configured);
    assert_eq!(call(&runtime, "text", json!({})).await.status, Status::Success);
    assert_eq!(stage.starts("late"), 0, "a known tool needs nobody else");
    assert_eq!(answer(&runtime, "echo", json!({"n": 1})).await, json!({"n": 1}));
    assert_eq!(stage.starts("late"), 1);
    assert_eq!(names(&runtime), ["echo", "stats", "text"]);
    runtime.shutdown(Duration::from_secs(1)).await;
    assert!(!testkit::is_running(stage.pids("late")[0]));
}

/// Proves X-2: asking for the complete list starts it too; `eager` is the native default.
#[tokio::test]
async fn the_list_of_tools_can_be_completed() {
    let stage = Stage::new();
    let runtime = stage.start([lazy(&stage, json!({}))], json!({})).await;
    assert!(names(&runtime).is_empty());
    runtime.discover().await;
    assert_eq!(names(&runtime), ["echo", "stats"]);
    assert_eq!(stage.starts("late"), 1);
}

/// Proves X-2: the second run lists the tools without starting anything, and starts at the call.
#[tokio::test]
async fn the_next_run_knows_the_tools_without_a_process() {
    let stage = Stage::new();
    let first = stage.start([lazy(&stage, json!({}))], json!({})).await;
    first.discover().await;
    first.shutdown(Duration::ZERO).await;
    let second = stage.start([lazy(&stage, json!({}))], json!({})).await;
    assert_eq!(names(&second), ["echo", "stats"]);
    second.discover().await;
    assert_eq!(stage.starts("late"), 1, "only that of the first run");
    assert_eq!(answer(&second, "echo", json!({"n": 1})).await, json!({"n": 1}));
    assert_eq!(stage.starts("late"), 2);
}

/// Proves X-2: a server with a changed endpoint counts as unknown.
#[tokio::test]
async fn another_command_line_is_another_server() {
    let stage = Stage::new();
    let first = stage.start([lazy(&stage, json!({}))], json!({})).await;
    first.discover().await;
    let (name, mut server) = lazy(&stage, json!({}));
    server["args"].as_array_mut().unwrap().push(json!("--other"));
    let second = stage.start([(name, server)], json!({})).await;
    assert!(names(&second).is_empty());
}

/// Proves X-2, S0-27: strict and lazy is checked at the first connection: T1, and the tool stays
/// out.
#[tokio::test]
async fn a_strict_lazy_server_is_checked_when_it_connects() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let config = stage
        .config([lazy(&stage, json!({"mode": "strict"}))], json!({"tools": [{"name": "echo"}]}));
    assert!(config.warnings.iter().any(|it| it.to_string().contains("strict but starts lazily")));
    let runtime = haft::Runtime::start(config).await.unwrap();
    assert_eq!(answer(&runtime, "echo", json!({})).await, json!({}));
    assert_eq!(failure(&call(&runtime, "stats", json!({})).await).0, Code::UnknownTool);
    let errors = heard.from("ERROR");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].starts_with("ERROR: Tool 'stats' from MCP server 'late' is not configured"));
}

/// Proves S1-16, X-1: a lazy server that cannot be reached stops no start and answers its calls.
#[tokio::test]
async fn a_lazy_server_that_is_missing_is_found_out_at_its_call() {
    let stage = Stage::new();
    let (heard, _guard) = LogCapture::start();
    let missing = json!({"command": "nope-not-here", "start": "lazy", "required": true});
    let started: Result<_, StartError> =
        stage.builder([("late", missing)], json!({})).start().await;
    let runtime = started.unwrap();
    assert!(heard.from("WARNING").is_empty());
    assert_eq!(failure(&call(&runtime, "echo", json!({})).await).0, Code::UnknownTool);
    assert_eq!(heard.count("mcp: server 'late' failed to connect: "), 1);
}
