//! `haft check`.

use serde_json::{Value, json};
use testkit::Workspace;

use crate::{haft, run, toolbox, transcript};

const BROKEN: &str = "servers:
  a: {comand: x}
  b: {url: 'ftp://h/', mode: lenient}
  c: {command: x, env: {K: '${UNSET_KEY}'}, start: lazy, mode: strict}
tools:
  - {timeout: 0}
api: {}
";

/// Proves S0-89, S0-86: valid files are summed up, without other output.
#[test]
fn a_valid_configuration_is_summed_up() {
    let workspace = toolbox();
    insta::assert_snapshot!(transcript(&workspace, &run(&workspace, &["check"])));
    assert!(workspace.read("logs").is_none() && !workspace.path().join("logs").exists());
}

/// Proves S0-86, S3-FR-026: every problem at once, with place, cause and remedy; exit code 2.
#[test]
fn every_problem_is_reported_at_once() {
    let workspace = Workspace::with(&[("haft.yaml", BROKEN)]);
    let finished = run(&workspace, &["check"]);
    assert_eq!(finished.code, 2);
    insta::assert_snapshot!(transcript(&workspace, &finished));
}

/// Proves S0-89: every other command refuses the same configuration in the same words.
#[test]
fn every_command_refuses_an_invalid_configuration_alike() {
    let workspace = Workspace::with(&[("haft.yaml", BROKEN)]);
    let expected = run(&workspace, &["check"]);
    let commands: [&[&str]; 6] = [
        &["config", "show"],
        &["tools", "list"],
        &["call", "x"],
        &["explain", "x"],
        &["servers", "list"],
        &["log"],
    ];
    for command in commands {
        assert_eq!(run(&workspace, command), expected, "{command:?}");
    }
}

/// Proves S0-86: warnings do not fail the check.
#[test]
fn warnings_are_shown_and_do_not_fail() {
    let text =
        "servers: {s: {command: x, headers: {A: b}, start: lazy, mode: strict}}\nagent: {}\n";
    let workspace = Workspace::with(&[("haft.yaml", text)]);
    let finished = run(&workspace, &["check"]);
    assert_eq!(finished.code, 0);
    insta::assert_snapshot!(transcript(&workspace, &finished));
}

/// An unusable model is found before the first request.
#[test]
fn a_model_that_cannot_be_asked_is_a_warning() {
    let mut text = String::new();
    for agent in [
        "{model: gpt-5}",
        "{model: 'opnai::gpt-5'}",
        "{model: 'openai::gpt-5', api_key_env: MY_KEY}",
    ] {
        let workspace = Workspace::with(&[("haft.yaml", &format!("agent: {agent}\n"))]);
        text += &transcript(&workspace, &run(&workspace, &["check"]));
        let report: Value =
            serde_json::from_str(&run(&workspace, &["check", "--json"]).stdout).unwrap();
        assert_eq!(report["problems"][0]["severity"], "warning", "{report}");
    }
    insta::assert_snapshot!(text);
}

/// Proves S0-86 for programs: the same as JSON.
#[test]
fn the_check_is_readable_by_programs() {
    let workspace = Workspace::with(&[("haft.yaml", BROKEN)]);
    let finished = run(&workspace, &["check", "--json"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (2, ""));
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(report["valid"], json!(false));
    let mode = &report["problems"].as_array().unwrap().iter();
    let mode = mode.clone().find(|it| it["place"]["path"] == "servers.b.mode").unwrap();
    let expected = json!({
        "severity": "error",
        "place": {"file": "haft.yaml", "line": 3, "column": 30, "path": "servers.b.mode"},
        "problem": "`lenient` is not a mode",
        "remedy": "use one of `strict`, `dynamic`",
    });
    assert_eq!(mode, &expected);

    let finished = run(&toolbox(), &["check", "--json"]);
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(finished.stdout);
}

/// Proves S3-FR-010, S3-Q-02, S3-REF-1 on the command line: variables and inputs of the process.
#[test]
fn variables_and_inputs_come_from_the_process() {
    let text = r#"{"inputs": [{"id": "key", "type": "promptString"}],
        "servers": {"s": {"command": "x", "args": ["${env:WHO}", "${input:key}"]}}}"#;
    let workspace = Workspace::with(&[(".vscode/mcp.json", text)]);
    let args = ["check", "-c", ".vscode/mcp.json"];
    let missing = run(&workspace, &args);
    assert_eq!(missing.code, 2);
    insta::assert_snapshot!(missing.stderr);
    let by_option = haft(&workspace, &args).args(&["--input", "key=v"]).env("WHO", "w").run();
    assert_eq!(by_option.code, 0, "{}", by_option.stderr);
    let by_variable = haft(&workspace, &args).env("INPUT_KEY", "v").env("WHO", "w").run();
    assert_eq!(by_variable.code, 0, "{}", by_variable.stderr);
}

/// Proves X-12: `-c` may be repeated, and HAFT_CONFIG names files too.
#[test]
fn several_files_are_combined() {
    let workspace = Workspace::with(&[
        ("a.yaml", "servers: {a: {command: x}}\ndefaults: {}\n"),
        ("b/.mcp.json", r#"{"mcpServers": {"a": {"command": "y"}, "b": {"command": "x"}}}"#),
    ]);
    let finished = run(&workspace, &["check", "-c", "a.yaml", "-c", "b/.mcp.json"]);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    let by_variable = haft(&workspace, &["check"]).env("HAFT_CONFIG", "a.yaml:b/.mcp.json").run();
    assert_eq!(by_variable, finished);
}

/// Proves S0-94: a variable of the process overrides the file.
#[test]
fn a_variable_overrides_the_file() {
    let workspace = Workspace::with(&[("haft.yaml", "servers: {s: {command: x}}\n")]);
    let wrong = haft(&workspace, &["check"]).env("HAFT__SERVERS__s__MODE", "loose").run();
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("$HAFT__SERVERS__s__MODE"), "{}", wrong.stderr);
    let right =
        haft(&workspace, &["servers", "list"]).env("HAFT__SERVERS__s__MODE", "strict").run();
    assert!(right.stdout.contains("strict"), "{}", right.stdout);
}
