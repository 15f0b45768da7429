//! The API against its own document, tested by a client generated from it.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;
use testkit::model::{ModelServer, Step};
use testkit::{Workspace, peers};

use crate::served::Served;

/// The checks of each answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_schema_conformance";

/// Needs a call or a run that is in flight, a question that is open just then, or a definition that differs from a lock
/// file, which is a matter of chance. `calls.rs`, `runs.rs`, `inbox.rs` and `lock.rs` have one.
const MAY_NEVER_SUCCEED: [&str; 5] = [
    "DELETE /api/v1/calls/{execution_id}",
    "DELETE /api/v1/runs/{id}",
    "GET /api/v1/inbox/{id}",
    "POST /api/v1/inbox/{id}",
    "POST /api/v1/lock/approve",
];

/// More model answers than the tests use.
const ANSWERS_MAX: usize = 5_000;

/// Endless streams, and operations that query servers, which are unreachable here: 502 to 504 are right then, but a
/// server error to the generated client. `api_log.rs`, `inbox.rs`, `runs.rs`,
/// `api_offers.rs` and `console_api.rs` test them. A rotation would end the key that the client uses; `key_limits.rs`
/// tests it.
const LEFT_OUT: [&str; 8] = [
    "/api/v1/inbox/events",
    "/api/v1/keys/{name}/rotate",
    "/api/v1/log/tail",
    "/api/v1/prompts/{server}/{name}",
    "/api/v1/resources",
    "/api/v1/resources/content",
    "/api/v1/runs/{id}/events",
    "/api/v1/servers/{name}/sign-in",
];

/// No answer that the document does not have, none of another shape, and no fault inside. That is worth
/// something only where the questions got through: no operation may be hidden behind a refused key, and each
/// must have succeeded at least once.
#[tokio::test]
async fn the_api_matches_its_document() {
    let model = ModelServer::openai(vec![Step::text("Fine."); ANSWERS_MAX]);
    let served = Served::with_admin(registry(&model));
    let key = served.admin.clone().unwrap();
    let reports = served.workspace.path().join("reports");
    let mut command = Command::new(peers::schemathesis());
    command.current_dir(served.workspace.path()).env_clear();
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.env("HOME", served.workspace.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg("run").arg(format!("{}/api/openapi.json", served.url));
    // In both headers: in a missing one it would try keys of its own, count as guessing, and receive nothing but 429.
    command.arg("-H").arg(format!("X-API-Key: {key}"));
    command.arg("-H").arg(format!("Authorization: Bearer {key}"));
    command.args(["--checks", CHECKS, "--max-examples", "25", "--seed", "1", "--no-color"]);
    for path in LEFT_OUT {
        command.args(["--exclude-path", path]);
    }
    command.args(["--report", "har", "--report-dir"]).arg(&reports);
    let run = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));

    let report = std::fs::read_dir(&reports).unwrap().next().unwrap().unwrap().path();
    let report: Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    let document = served.get("/api/openapi.json").await.json();
    let answers = answers(&document, &report);
    let refused =
        answers.iter().filter(|(_, answers)| answers.iter().any(|it| [401, 429].contains(it)));
    assert_eq!(refused.count(), 0, "{answers:?}");
    let failed: Vec<&str> = answers
        .iter()
        .filter(|(_, answers)| !answers.iter().any(|status| (200..300).contains(status)))
        .map(|(operation, _)| operation.as_str())
        .filter(|operation| !LEFT_OUT.iter().any(|path| operation.ends_with(&format!(" {path}"))))
        .filter(|operation| !MAY_NEVER_SUCCEED.contains(operation))
        .collect();
    assert_eq!(failed, [""; 0], "{answers:?}");
}

/// Tools and a model that answer at once, whatever they are asked.
fn registry(model: &ModelServer) -> Workspace {
    let tool = |name: &str, schema: &str| {
        format!(
            r#"{{"name": "{name}", "description": "Answers.", "type": "local", "parallel_capable": true,
            "input_schema": {schema}, "config": {{"script_path": "answer.py"}}}}"#
        )
    };
    let strict =
        r#"{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}"#;
    let tools = [tool("any", r#"{"type": "object"}"#), tool("strict", strict)].join(",");
    Workspace::with(&[
        ("haft.yaml", &format!("registry: {{dir: tools}}\n{}", model.config())),
        ("tools/tools.json", &format!(r#"{{"tools": [{tools}]}}"#)),
        ("tools/mcp.json", r#"{"mcp_servers": {}}"#),
        ("tools/answer.py", "def run(args):\n    return {'answer': 42}\n"),
        ("tools/hello_world.py", "def run(args):\n    return {}\n"),
    ])
}

/// The statuses of each documented operation.
fn answers(document: &Value, report: &Value) -> BTreeMap<String, Vec<u64>> {
    let mut answers = BTreeMap::new();
    let mut paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    // A path without variables before one that would take it too.
    paths.sort_by_key(|path| path.contains('{'));
    for path in &paths {
        for method in document["paths"][path.as_str()].as_object().unwrap().keys() {
            answers.insert(format!("{} {path}", method.to_uppercase()), Vec::new());
        }
    }
    for entry in report["log"]["entries"].as_array().unwrap() {
        let url = reqwest::Url::parse(entry["request"]["url"].as_str().unwrap()).unwrap();
        let path = paths.iter().find(|path| is_of(path, url.path()));
        let method = entry["request"]["method"].as_str().unwrap();
        let operation = path.map(|path| format!("{method} {path}")).unwrap_or_default();
        // Methods and paths that are not there are tried too.
        if let Some(statuses) = answers.get_mut(&operation) {
            statuses.push(entry["response"]["status"].as_u64().unwrap());
        }
    }
    answers
}

fn is_of(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) =
        (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len()
        && template.iter().zip(&path).all(|(part, it)| part.starts_with('{') || part == it)
}
