//! `${VAR}` and its relatives.

use haft::config::model::Origin;
use serde_json::json;
use testkit::Workspace;

use crate::config_support::{
    args, env, errors, load, native, remote, server, stdio, value, warnings,
};

/// Proves S3-FR-010, S3-US2-1.
#[test]
fn a_set_variable_is_replaced_in_every_text_field() {
    let text = "
servers:
  near:
    command: ${PROGRAM}
    args: ['--to=${TARGET}', '${TARGET}-${TARGET}']
    cwd: ${FOLDER}
    env: {API_KEY: '${KEY}'}
    config: {nested: [{deep: 'x${KEY}y'}]}
  far:
    url: https://${HOST}/mcp
    headers: {Authorization: 'Bearer ${KEY}'}
defaults: {python: '${PROGRAM}', tool_timeout: '${SPAN}'}
log: {dir: '${FOLDER}/log'}
";
    let variables = [
        ("PROGRAM", "node"),
        ("TARGET", "there"),
        ("FOLDER", "sub"),
        ("KEY", "k1"),
        ("HOST", "far.example"),
        ("SPAN", "7s"),
    ];
    let workspace = Workspace::with(&[("haft.yaml", text)]);
    let config = load(&workspace, &["haft.yaml"], &variables).unwrap();
    let [near, far] = &config.servers[..] else { panic!() };
    assert_eq!(stdio(near).command.expose(), "node");
    assert_eq!(args(near), ["--to=there", "there-there"]);
    assert_eq!(stdio(near).cwd, Some(workspace.path().join("sub")));
    assert_eq!(env(near), [("API_KEY", Some("k1"))]);
    assert_eq!(remote(far).url.expose().as_str(), "https://far.example/mcp");
    assert_eq!(remote(far).headers[0].1.expose(), "Bearer k1");
    assert_eq!(config.defaults.python.value.expose(), "node");
    assert_eq!(value(&config, "defaults.tool_timeout"), json!("7s"));
    assert_eq!(config.log.dir.value, workspace.path().join("sub/log"));
}

/// Proves S3-FR-010: the registry's folder accepts variables too.
#[test]
fn the_registrys_folder_may_come_from_a_variable() {
    let workspace = Workspace::with(&[
        ("haft.yaml", "registry: {dir: '${TOOLS_DIR}'}"),
        ("shelf/tools.json", r#"{"tools": []}"#),
        ("shelf/mcp.json", r#"{"mcp_servers": {"s": {"command": "true"}}}"#),
    ]);
    let config = load(&workspace, &["haft.yaml"], &[("TOOLS_DIR", "shelf")]).unwrap();
    assert_eq!(config.servers[0].name, "s");
    insta::assert_snapshot!(errors(load(&workspace, &["haft.yaml"], &[])));
}

/// Proves S3-FR-010: `${VAR:-default}` with the variable set, unset, empty and nested.
#[test]
fn a_default_stands_in_for_an_unset_or_empty_variable() {
    let text =
        server("command: x\nargs: ['${A:-a}', '${A:-${B:-b}}', '${A:-}', '${A:-x:-y}', '${A}']");
    let of = |variables: &[(&str, &str)]| {
        let config = native(&text, variables).unwrap();
        args(&config.servers[0]).join("|")
    };
    assert_eq!(of(&[("A", "set"), ("B", "used")]), "set|set|set|set|set");
    assert_eq!(of(&[("A", ""), ("B", "used")]), "a|used||x:-y|");
    assert_eq!(of(&[("A", "")]), "a|b||x:-y|");
}

/// Proves S3-FR-010: `${env:VAR}`, VS Code's spelling.
#[test]
fn env_colon_var_is_the_same_as_var() {
    let text = server("command: x\nargs: ['${env:A}', '${env:B:-b}']");
    let config = native(&text, &[("A", "1")]).unwrap();
    assert_eq!(args(&config.servers[0]), ["1", "b"]);
}

/// Proves S3-FR-010: a literal `${X}` can be written, and other dollars are left alone.
#[test]
fn two_dollars_make_a_literal_reference() {
    let text = server(
        "command: x\nargs: ['$${A}', 'a$${A}b${A}', '$A', '$', 'cost: 5$', '$(A)', '$${B:-${C}}']",
    );
    let config = native(&text, &[("A", "1")]).unwrap();
    let expected = ["${A}", "a${A}b1", "$A", "$", "cost: 5$", "$(A)", "${B:-${C}}"];
    assert_eq!(args(&config.servers[0]), expected);
}

/// Proves S3-FR-010, S3-Q-02, S3-EC-5: the message names the variable and where it is used.
#[test]
fn every_unset_variable_is_an_error_that_says_which_and_where() {
    let text = "servers:
  one:
    command: x
    args: ['--key', '${MISSING_KEY}']
    env: {TOKEN: '${MISSING_TOKEN}'}
  two:
    url: https://${MISSING_HOST}/mcp
    headers: {Authorization: 'Bearer ${env:MISSING_TOKEN}'}
";
    insta::assert_snapshot!(errors(native(text, &[])));
}

/// Proves S3-FR-010: the same in each of the formats that know references.
#[test]
fn other_formats_report_unset_variables_alike() {
    let workspace = Workspace::with(&[
        (
            "agent.yaml",
            "name: a\ntools:\n  - {name: s, type: mcp, command: x, env: {K: '${GONE}'}}\n",
        ),
        (".mcp.json", r#"{"mcpServers": {"s": {"command": "x", "env": {"K": "${GONE}"}}}}"#),
        (
            "tools/tools.json",
            r#"{"tools": [{"name": "t", "description": "d", "type": "local", "input_schema": {"type": "object"}, "config": {"command": ["x"], "args": ["${GONE}"]}}]}"#,
        ),
        ("tools/mcp.json", r#"{"mcp_servers": {"r": {"command": "${GONE}"}}}"#),
        (
            "box.yaml",
            "myai:\n  toolbox:\n    mcps:\n      - {name: s, transport: http, mode: strict, url: '${GONE}'}\n",
        ),
    ]);
    let mut all = String::new();
    for file in ["agent.yaml", ".mcp.json", "tools", "box.yaml"] {
        all += &errors(load(&workspace, &[file], &[]));
    }
    insta::assert_snapshot!(all);
}

/// Proves S3-FR-010: a malformed reference names the correct syntax.
#[test]
fn malformed_references_are_errors() {
    let text = server("command: x\nargs: ['${}', '${A', '${A B}', '${1}', '${A:+x}']");
    insta::assert_snapshot!(errors(native(&text, &[("A", "1")])));
}

/// Proves X-11.
#[test]
fn with_unresolved_env_warn_the_reference_stays_and_a_warning_names_it() {
    let text = format!(
        "defaults: {{unresolved_env: warn}}\n{}",
        server("command: x\nargs: ['a${GONE}b', '${env:GONE_TOO}', '${GONE:-set}']")
    );
    let config = native(&text, &[]).unwrap();
    assert_eq!(args(&config.servers[0]), ["a${GONE}b", "${env:GONE_TOO}", "set"]);
    insta::assert_snapshot!(warnings(&config));
    assert!(matches!(config.defaults.unresolved_env.origin, Origin::Explicit(_)));

    let by_variable =
        native(&server("command: '${GONE}'"), &[("HAFT__DEFAULTS__UNRESOLVED_ENV", "warn")]);
    assert_eq!(stdio(&by_variable.unwrap().servers[0]).command.expose(), "${GONE}");
}

/// Proves S3-FR-010, S2-Q-07: what reaches the model is never rewritten.
#[test]
fn descriptions_and_schemas_of_tools_keep_their_dollars() {
    let tools = r#"{"tools": [{"name": "t", "description": "Costs ${PRICE}", "type": "local",
        "input_schema": {"type": "object", "description": "${A}"}, "config": {"script_path": "t.py"}}]}"#;
    let workspace = Workspace::with(&[("tools.json", tools)]);
    let config = load(&workspace, &["tools.json"], &[]).unwrap();
    let definition = &config.local[0].definition;
    assert_eq!(definition.description, "Costs ${PRICE}");
    assert_eq!(definition.input_schema["description"], "${A}");
}

/// Proves X-15: what a client keeps beside its servers is its own business.
#[test]
fn references_outside_the_parts_that_are_read_do_not_matter() {
    let workspace = Workspace::with(&[
        (
            ".claude.json",
            r#"{"mcpServers": {}, "history": ["echo ${UNSET}"], "projects": {
                "/elsewhere": {"history": [{"display": "use ${"}], "mcpServers": {"e": {"command": "${UNSET}"}}}}}"#,
        ),
        ("agent.yaml", "name: a\ninstructions: 'Say ${UNSET}'\ntools: []\n"),
        ("bot.yaml", "llm: {key: '${UNSET}'}\ntools: {shell: '${UNSET}', mcp_servers: {}}\n"),
        (
            "box.yaml",
            "myai:\n  model: {key: '${UNSET}'}\n  toolbox: {tools: []}\nserver: {key: '${UNSET}'}\n",
        ),
    ]);
    for file in [".claude.json", "agent.yaml", "bot.yaml", "box.yaml"] {
        let loaded = load(&workspace, &[file], &[]);
        assert!(loaded.is_ok(), "{file}: {}", loaded.unwrap_err());
    }
}
