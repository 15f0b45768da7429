//! `code_execution` needs approval where a model chooses the calls and no file configures it.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::{ModelServer, Step, Workspace};

use crate::agent_support::{answer, asking, only};
use crate::haft;

const NEEDS_APPROVAL: &str = "runs only when a person agrees";

fn code_runs() -> [Step; 2] {
    [
        Step::call("code_execution", json!({"language": "shell", "code": "echo $((6 * 7))"})),
        Step::by(|asked| Step::text(format!("It said {}", asked.last_result()))),
    ]
}

fn model_runs_code(yaml: &str, args: &[&str]) -> String {
    let model = ModelServer::openai(code_runs());
    let workspace = only(&model, yaml);
    let finished =
        asking(&workspace, &[&["compute it", "-q"], args].concat()).with_builtins().run();
    answer(&finished).to_owned()
}

#[test]
fn a_model_runs_no_code_that_neither_a_file_nor_a_person_allows() {
    for yaml in ["", "builtin: {web_search: {}}", "tools: [{name: code_execution, timeout: 5s}]"] {
        let said = model_runs_code(yaml, &[]);
        assert!(said.contains(NEEDS_APPROVAL) && !said.contains("42"), "{yaml}: {said}");
    }
}

#[test]
fn a_file_or_a_person_allows_it() {
    let allowed = [
        ("builtin: {code_execution: {}}", &[][..]),
        ("builtin: {enabled: true}", &[]),
        ("tools: [{name: code_execution, approval: auto}]", &[]),
        ("", &["--yes"]),
    ];
    for (yaml, args) in allowed {
        let said = model_runs_code(yaml, args);
        assert!(said.contains("42"), "{yaml} {args:?}: {said}");
    }
}

/// At a terminal the person who calls has decided.
#[test]
fn a_call_by_hand_needs_no_approval() {
    let workspace = Workspace::new();
    let call = ["call", "code_execution", "language=shell", "code=echo $((6 * 7))", "--json"];
    let finished = haft(&workspace, &call).with_builtins().run();
    assert_eq!(finished.code, 0, "{}", finished.stderr);
    assert!(finished.stdout.contains("42"), "{}", finished.stdout);
}

/// Calls the tool through `haft mcp` and returns the response.
fn client_runs_code(yaml: &str) -> Value {
    let workspace = Workspace::with(&[("haft.yaml", yaml)]);
    let mut mcp = Command::new(env!("CARGO_BIN_EXE_haft"))
        .arg("mcp")
        .current_dir(workspace.path())
        .env_remove("HAFT_CONFIG")
        .envs([workspace.state_home()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "code_execution",
            "arguments": {"language": "shell", "code": "echo $((6 * 7))"},
        }}),
    ];
    let mut input = mcp.stdin.take().unwrap();
    for message in messages {
        writeln!(input, "{message}").unwrap();
    }
    let output = std::io::BufReader::new(mcp.stdout.take().unwrap());
    let lines = std::io::BufRead::lines(output).map_while(Result::ok);
    let mut answers = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let found = answers.find(|answer| answer["id"] == 2).expect("an answer");
    drop(input);
    assert!(mcp.wait().unwrap().success());
    found
}

/// A client does not see the tool unless a file names it, and does not run it unless a file enables it.
#[test]
fn a_client_runs_no_code_that_no_file_allows() {
    for yaml in ["", "builtin: {web_search: {}}"] {
        let hidden = client_runs_code(yaml);
        assert_eq!(hidden["error"]["code"], -32602, "{yaml}: {hidden}");
        assert!(hidden["result"].is_null(), "{yaml}: {hidden}");
    }
    let refused = client_runs_code("tools: [{name: code_execution, timeout: 5s}]");
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(refused.to_string().contains(NEEDS_APPROVAL), "{refused}");
    let allowed = client_runs_code("builtin: {code_execution: {}}");
    assert!(allowed["result"].to_string().contains("42"), "{allowed}");
}
