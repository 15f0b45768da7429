//! The Python client against the real service.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;
use testkit::model::{ModelServer, Step};
use testkit::peers;

use crate::served::{Served, toolbox};

fn package() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../clients/python"))
}

/// Sync and async calls, errors, registration, runs with a question, and both adapters, with the pinned frameworks.
#[tokio::test]
async fn the_python_client_works() {
    let turn = || [Step::call("echo", json!({"city": "Oslo"})), Step::text("Sunny.")];
    let model = ModelServer::openai([turn(), turn()].into_iter().flatten());
    let workspace = toolbox();
    workspace.write(
        "haft.yaml",
        format!(
            "registry: {{dir: tools}}\npolicy: {{allowed_commands: [\"cat\"], allowed_scripts: upload}}\n\
             tools: [{{name: echo, approval: ask}}]\n{}",
            model.config()
        ),
    );
    let served = Served::with_admin(workspace);
    let mut command = Command::new(peers::client_python());
    command.arg(package().join("tests/check.py")).env("PYTHONPATH", package().join("src"));
    command.env("HAFT_URL", &served.url).env("HAFT_KEY", served.admin.as_ref().unwrap());
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("NO_PROXY", "127.0.0.1");
    let run = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "{}\n{}", text(&run.stdout), text(&run.stderr));
}

/// The models equal what the API document generates. `HAFT_UPDATE_DOCS=1` writes them.
#[tokio::test]
async fn the_models_are_generated_from_the_document() {
    let served = Served::open(toolbox());
    let document = served.get("/api/openapi.json").await.text;
    let path = package().join("src/haft_client/models.py");
    let models = tokio::task::spawn_blocking(move || {
        let mut generator = Command::new("python3");
        generator.arg(package().join("generate.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut generator = generator.spawn().unwrap();
        let mut input = generator.stdin.take().unwrap();
        let writer = std::thread::spawn(move || {
            std::io::Write::write_all(&mut input, document.as_bytes()).unwrap();
        });
        let output = generator.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    });
    let models = models.await.unwrap();
    if std::env::var_os("HAFT_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &models).unwrap();
    }
    let is_current = std::fs::read_to_string(&path).unwrap() == models;
    assert!(is_current, "models.py is out of date: run this test with HAFT_UPDATE_DOCS=1");
}
