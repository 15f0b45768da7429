//! Clients made with the official SDKs at three replicas on one PostgreSQL, behind a balancer without affinity.

use serde_json::{Value, json};
use testkit::peers::{CommandLine, Era, node_program, python_program};
use testkit::postgres::database;
use testkit::{Balancer, Program, Running, Workspace};
use tokio::task::spawn_blocking;

use super::report;
use super::toolbox::program;
use crate::served::{SERVE, create_key, greeting};
use crate::support;

/// Tools of the server behind each replica.
const TOOLS: [&str; 6] = ["echo", "progress", "drip", "sample", "elicit", "roots"];

#[tokio::test(flavor = "multi_thread")]
async fn typescript_1_at_replicas() {
    visit(node_program(&program("replicas.mjs")).arg("1"), "legacy", "2025-11-25").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_2_at_replicas_in_the_modern_era() {
    visit(node_program(&program("replicas.mjs")).arg("2"), "modern", "2026-07-28").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_2_at_replicas() {
    let client = || python_program(Era::Modern, &program("replicas.py"));
    visit(client(), "legacy", "2025-11-25").await;
    visit(client(), "modern", "2026-07-28").await;
}

/// Lets a client use the replicas, and checks its report and that it reached all of them.
async fn visit(client: CommandLine, era: &'static str, version: &str) {
    let Some(test) = database() else { return };
    let workspaces = [(); 3].map(|()| {
        let tools = TOOLS
            .map(|name| json!({"name": name, "behaves": name, "inputSchema": {"type": "object"}}));
        let mut server = support::server(&json!({"tools": tools}));
        (server["sampling"], server["required"]) = (json!("allow"), json!(true));
        let workspace = Workspace::new();
        let config = json!({
            "shared": {"url": test.url}, "servers": {"fixture": server},
            "api": {"drain_delay": "0s"},
        });
        workspace.write("haft.json", config.to_string());
        workspace
    });
    let key = create_key(&workspaces[0], "client", haft_server::keys::Scope::Call);
    let started: Vec<(String, Running)> = workspaces.iter().map(start).collect();
    let balancer = Balancer::start(started.iter().map(|(url, _)| url.clone()).collect()).await;
    let request = json!({"url": format!("{}/mcp", balancer.url), "key": key, "era": era});
    let finished = spawn_blocking(move || client.run(&request.to_string())).await.unwrap();
    let report = report::read(&finished);
    assert_eq!(report["version"], version, "{report}");
    assert_eq!(report["echo"], json!([{"n": 0}, {"n": 1}, {"n": 2}, {"n": 3}]), "{report}");
    for question in ["sample", "elicit", "roots"] {
        let answers = report["answers"][question].as_array().unwrap();
        assert!(answers.len() == 4 && answers.iter().all(|it| it == &answers[0]), "{report}");
        assert!(answers[0].is_object(), "{report}");
    }
    assert_eq!(report["steps"], json!([3, 3, 3, 3]), "{report}");
    assert_eq!(report["cancelled"], 4, "{report}");
    for ((_, running), workspace) in started.into_iter().zip(&workspaces) {
        running.terminate();
        let finished = running.finish();
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        let calls = logged(workspace);
        let is_over =
            |call: &Value| call["status"] == "success" || call["error"]["code"] == "Cancelled";
        assert!(!calls.is_empty() && calls.iter().all(is_over), "{calls:?}");
    }
    let calls: usize = workspaces.iter().map(|workspace| logged(workspace).len()).sum();
    // A request that asks and is sent again is one call.
    assert_eq!(calls, 4 + 3 * 4 + 4 + 4);
}

fn start(workspace: &Workspace) -> (String, Running) {
    let running = Program::new(env!("CARGO_BIN_EXE_haft"), workspace).args(&SERVE).start();
    let url = greeting(&running)["listening"].as_str().unwrap().to_owned();
    (url, running)
}

fn logged(workspace: &Workspace) -> Vec<Value> {
    let files = std::fs::read_dir(workspace.path().join("logs")).into_iter().flatten();
    let files = files.map(|file| file.unwrap().path());
    let texts = files
        .filter(|file| file.extension().is_some_and(|extension| extension == "jsonl"))
        .map(|file| std::fs::read_to_string(file).unwrap());
    texts
        .flat_map(|text| {
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
        })
        .collect()
}
