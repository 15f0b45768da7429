//! The examples of the libraries, run as their programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use axum::body::Body;
use axum::http::Request;
use haft_server::gateway::{Hub, Mount};
use serde_json::{Value, json};
use testkit::{ModelServer, Program, Step, Workspace};
use tower::ServiceExt as _;

use crate::session::path;

/// The program of an example. A run of all tests has built it; a run of this binary alone builds it here.
fn example(package: &str, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_haft")).parent().unwrap().join("examples");
    let program = folder.join(name);
    if !program.exists() {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let built = Command::new(cargo)
            .args(["build", "--offline", "--package", package, "--example", name])
            .current_dir(crate::root())
            .status();
        assert!(built.unwrap().success(), "{name} does not build");
    }
    program
}

/// The output of an example that ends by itself.
fn run(package: &str, name: &str, environment: &[(&str, &str)]) -> String {
    let (workspace, private) = (Workspace::new(), Workspace::new());
    let program = example(package, name);
    let mut program = Program::new(program, &workspace).env("PATH", &path(&private));
    for (key, value) in environment {
        program = program.env(key, value);
    }
    let finished = program.run();
    assert_eq!(finished.code, 0, "{name}: {}{}", finished.stdout, finished.stderr);
    finished.stdout
}

#[test]
fn quickstart() {
    let printed = run("haft", "quickstart", &[]);
    assert!(printed.starts_with("5\nValidationError: "), "{printed}");
}

#[test]
fn mcp_servers() {
    let printed = run("haft", "mcp_servers", &[]);
    for part in ["time: Ready", "get_current_time", "Asia/Seoul"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
}

#[test]
fn approver() {
    let printed = run("haft", "approver", &[]);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "paid 5 euros");
    assert!(lines[1].starts_with("Denied: "), "{printed}");
}

#[test]
fn agent_events() {
    let steps = [Step::call("add", json!({"a": 2, "b": 3})), Step::text("It is 5.")];
    let model = ModelServer::openai(steps);
    let environment = [("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", &model.url())];
    let printed = run("haft-agent", "agent_events", &environment);
    assert_eq!(printed, "> add {\"a\":2,\"b\":3}\n< add: 5\nIt is 5.\nAnswered after 2 steps\n");
    assert_eq!(model.left(), 0);
}

#[test]
fn scripted_model() {
    assert_eq!(run("haft-agent", "scripted_model", &[]), "It is 5.\n");
}

/// `/mcp` answers in an app with other routes, for callers that the app has authenticated and no others.
#[tokio::test]
async fn axum_mcp() {
    let workspace = Workspace::new();
    let program = example("haft-server", "axum_mcp");
    let running = Program::new(program, &workspace).args(&["127.0.0.1:0"]).start();
    let line = running.line();
    let url = line.trim().strip_prefix("listening on ").unwrap();

    let client = haft::http_client_builder().no_proxy().build().unwrap();
    let own = client.get(url).send().await.unwrap().text().await.unwrap();
    assert_eq!(own, "my app");
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "greet", "arguments": {"name": "Ada"},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    });
    let request = || {
        let accepts = "application/json, text/event-stream";
        let headers = [
            ("accept", accepts),
            ("content-type", "application/json"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "greet"),
        ];
        let request = client.post(format!("{url}/mcp")).body(call.to_string());
        headers.into_iter().fold(request, |request, (name, value)| request.header(name, value))
    };
    assert_eq!(request().send().await.unwrap().status(), 401);
    let answer = request().bearer_auth("ada-secret").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!", "{answer}");

    running.interrupt();
    let finished = running.finish();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    let logs = workspace.path().join("target/example-axum-mcp/logs");
    let logged = haft::record::read(&logs, &haft::record::Filter::default()).unwrap();
    let callers: Vec<_> = logged.map(|call| call.unwrap().caller).collect();
    assert_eq!(callers, [Some("app:ada".to_owned())]);
}

/// An app that forgets to authenticate serves no tools.
#[tokio::test]
async fn mcp_routes_without_a_caller_are_refused() {
    let workspace = Workspace::new();
    let config = haft::ConfigBuilder::new().folder(workspace.path()).build().unwrap();
    let hub = Hub::default();
    let builder = haft::Runtime::builder(config).server_handler(hub.clone());
    let mount = Mount::new(builder.start().await.unwrap(), hub);
    let request = Request::post("/mcp").header("content-type", "application/json");
    let ping = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
    let answer = mount.routes().oneshot(request.body(Body::from(ping)).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 500);
    mount.stop().await;
}

/// The page shows the program that is run.
#[test]
fn the_rust_quick_start_is_the_example() {
    let example = crate::document("crates/haft/examples/quickstart.rs");
    let program = &example[example.find("use std::").unwrap()..];
    let page = crate::document("docs/quick-start.md");
    assert!(page.contains(&format!("```rust\n{program}```\n")), "{program}");
}

/// Every example has a test here.
#[test]
fn every_example_is_run() {
    let tests = include_str!("examples.rs");
    for package in ["haft", "haft-agent", "haft-server"] {
        let folder = crate::root().join("crates").join(package).join("examples");
        for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            // The conformance suite runs its client.
            let is_run = tests.contains(&format!("\"{package}\", \"{name}\""));
            assert!(is_run || name == "conformance_client", "{package}: {name}");
        }
    }
}
