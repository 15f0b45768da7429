//! Environment variables that override the files.

use haft::config::Config;
use serde_json::json;
use testkit::Workspace;

use crate::config_support::{args, env, errors, load, native, remote, row, stdio, value};

const FILE: &str = "
defaults: {max_concurrent: 10}
servers:
  customers: {url: 'http://h/mcp', mode: dynamic, reconnect: {attempts: 3, base: 1s}}
  my-files: {command: x, args: [a], env: {A: '1'}}
tools:
  - {name: get_customer, timeout: 60s, max_instances: 2}
log: {dir: logs}
";

fn with(variables: &[(&str, &str)]) -> Config {
    native(FILE, variables).unwrap()
}

/// Proves S0-94 (its native counterpart), X-6: every section can be overridden, and a value names
/// the variable it came from.
#[test]
fn variables_override_every_section_and_say_so() {
    let cases = [
        ("HAFT__SERVERS__customers__MODE", "strict", "servers.customers.mode", json!("strict")),
        ("HAFT__SERVERS__CUSTOMERS__MODE", "strict", "servers.customers.mode", json!("strict")),
        (
            "HAFT__SERVERS__customers__REQUEST_TIMEOUT",
            "7",
            "servers.customers.request_timeout",
            json!("7s"),
        ),
        (
            "HAFT__SERVERS__customers__RECONNECT__ATTEMPTS",
            "0",
            "servers.customers.reconnect.attempts",
            json!(0),
        ),
        (
            "HAFT__SERVERS__customers__DEFAULT_TOOL_CONFIG__TIMEOUT",
            "PT9S",
            "servers.customers.default_tool_config.timeout",
            json!("9s"),
        ),
        (
            "HAFT__SERVERS__my_files__LOAD_TOOLS",
            "false",
            "servers.my-files.load_tools",
            json!(false),
        ),
        (
            "HAFT__SERVERS__my-files__TOOL_ALLOWLIST",
            "[a, b]",
            "servers.my-files.tool_allowlist",
            json!(["a", "b"]),
        ),
        ("HAFT__DEFAULTS__TOOL_TIMEOUT", "2m", "defaults.tool_timeout", json!("120s")),
        ("HAFT__DEFAULTS__MAX_CONCURRENT", "3", "defaults.max_concurrent", json!(3)),
        ("HAFT__TOOLS__get_customer__TIMEOUT", "5s", "tools.get_customer.timeout", json!("5s")),
        ("HAFT__TOOLS__another__MAX_INSTANCES", "4", "tools.another.max_instances", json!(4)),
        ("HAFT__LOG__RETAIN_DAYS", "7", "log.retain_days", json!(7)),
    ];
    for (variable, text, path, expected) in cases {
        let config = with(&[(variable, text)]);
        let row = row(&config, path);
        assert_eq!((row.value, row.origin), (expected, "explicit"), "{variable}");
        assert_eq!(row.from, format!("${variable}"), "{variable}");
    }
}

/// Proves S0-94: settings without a variable keep the value of the file.
#[test]
fn an_override_leaves_the_rest_alone() {
    let config = with(&[
        ("HAFT__SERVERS__customers__RECONNECT__ATTEMPTS", "1"),
        ("HAFT__TOOLS__get_customer__TIMEOUT", "5s"),
        ("HAFT__SERVERS__my-files__ENV__B", "two"),
        ("HAFT__SERVERS__customers__HEADERS__X-Key", "k"),
    ]);
    assert_eq!(value(&config, "servers.customers.reconnect.base"), json!("1s"));
    assert_eq!(value(&config, "tools.get_customer.max_instances"), json!(2));
    assert_eq!(config.tools.len(), 1);
    assert_eq!(env(&config.servers[1]), [("A", Some("1")), ("B", Some("two"))]);
    assert_eq!(args(&config.servers[1]), ["a"]);
    assert_eq!(remote(&config.servers[0]).headers[0].0, "X-Key");
}

/// Proves S0-94: a server that no file has can come from variables alone, also into a foreign file.
#[test]
fn servers_can_be_added_and_changed_in_any_format() {
    let config =
        with(&[("HAFT__SERVERS__extra__COMMAND", "y"), ("HAFT__SERVERS__extra__ARGS", "['-v']")]);
    assert_eq!(stdio(&config.servers[2]).command.expose(), "y");
    assert_eq!(args(&config.servers[2]), ["-v"]);

    let claude = r#"{"mcpServers": {"s": {"command": "x"}}}"#;
    let workspace = Workspace::with(&[(".mcp.json", claude)]);
    let variables = [("HAFT__SERVERS__s__ON_CONNECT_FAILURE", "exit")];
    let config = load(&workspace, &[".mcp.json"], &variables).unwrap();
    assert_eq!(value(&config, "servers.s.on_connect_failure"), json!("exit"));
}

/// Proves S0-94: the variable sets the registry's folder.
#[test]
fn the_registrys_folder_can_be_overridden() {
    let tool = |name: &str| {
        format!(
            r#"{{"tools": [{{"name": "{name}", "description": "d", "type": "local", "input_schema": {{"type": "object"}}, "config": {{"script_path": "t.py"}}}}]}}"#
        )
    };
    let workspace = Workspace::with(&[
        ("haft.yaml", "registry: {dir: a}"),
        ("a/tools.json", &tool("of_a")),
        ("a/mcp.json", r#"{"mcp_servers": {}}"#),
        ("b/tools.json", &tool("of_b")),
        ("b/mcp.json", r#"{"mcp_servers": {}}"#),
    ]);
    let config = load(&workspace, &["haft.yaml"], &[("HAFT__REGISTRY__DIR", "b")]).unwrap();
    let names: Vec<_> = config.local.iter().map(|it| it.definition.name.as_str()).collect();
    assert_eq!(names, ["of_b"]);
    assert_eq!(config.registry_dir.unwrap().value, workspace.path().join("b"));
}

/// Proves S0-94, S0-86: a variable that cannot be right is an error that names it.
#[test]
fn wrong_variables_are_errors_that_name_them() {
    let wrong = [
        ("HAFT__SERVERS__customers__MODE", "lenient"),
        ("HAFT__SERVERS__customers__MOED", "strict"),
        ("HAFT__SERVERS__nobody__MODE", "strict"),
        ("HAFT__SERVERS__customers", "strict"),
        ("HAFT__DEFAULTS__MAX_CONCURRENT", "many"),
        ("HAFT__DEFAULTS__MAX_CONCURRENT", "0"),
        ("HAFT__DEFUALTS__MAX_CONCURRENT", "1"),
        ("HAFT__TOOLS__get_customer__TIMEOUT", "soon"),
        ("HAFT__TOOLS__get_customer", "x"),
        ("HAFT__TOOLS__0__TIMEOUT__X", "1"),
        ("HAFT__TOOLS", "x"),
        ("HAFT__LOG__RETAIN_DAYS", "-1"),
        ("HAFT__SERVERS__customers__RECONNECT__FACTOR", "0.5"),
        ("HAFT__", "x"),
    ];
    let mut found = String::new();
    for (variable, text) in wrong {
        let text = errors(native(FILE, &[(variable, text)]));
        assert!(text.contains(&format!("${variable}")), "{variable}: {text}");
        found += &text;
    }
    insta::assert_snapshot!(found);
}

const TOOLBOX: &str = "
myai:
  toolbox:
    max_concurrent: 10
    tools: [{name: t, timeout: 5}]
    mcps:
      - {name: a, transport: http, url: 'http://h/', mode: strict}
      - {name: b, transport: http, url: 'http://h/', mode: strict}
";

fn toolbox(variables: &[(&str, &str)]) -> Result<Config, haft::config::ConfigError> {
    let workspace = Workspace::with(&[("box.yaml", TOOLBOX)]);
    load(&workspace, &["box.yaml"], variables)
}

/// Proves S0-94.
#[test]
fn toolbox_variables_address_entries_by_their_number() {
    let config = toolbox(&[
        ("APP_MYAI__TOOLBOX__MCPS__1__MODE", "dynamic"),
        ("APP_MYAI__TOOLBOX__MCPS__1__DEFAULT_TOOL_CONFIG__MAX_INSTANCES", "4"),
        ("APP_MYAI__TOOLBOX__MAX_CONCURRENT", "2"),
        ("APP_MYAI__TOOLBOX__TOOLS__0__TIMEOUT", "P0DT0H0M9S"),
    ])
    .unwrap();
    assert_eq!(value(&config, "servers.a.mode"), json!("strict"));
    let mode = row(&config, "servers.b.mode");
    assert_eq!(mode.value, json!("dynamic"));
    assert_eq!(mode.from, "$APP_MYAI__TOOLBOX__MCPS__1__MODE");
    assert_eq!(value(&config, "servers.b.default_tool_config.max_instances"), json!(4));
    assert_eq!(value(&config, "defaults.max_concurrent"), json!(2));
    assert_eq!(value(&config, "tools.t.timeout"), json!("9s"));
}

/// Proves S0-94, S0-16: an override is checked like the file, and a wrong one is named.
#[test]
fn wrong_toolbox_variables_are_errors_that_name_them() {
    let wrong = [
        ("APP_MYAI__TOOLBOX__MCPS__0__MODE", "dynamic"),
        ("APP_MYAI__TOOLBOX__MCPS__0__MODE", "lenient"),
        ("APP_MYAI__TOOLBOX__MCPS__7__MODE", "strict"),
        ("APP_MYAI__TOOLBOX__MCPS__a__MODE", "strict"),
        ("APP_MYAI__TOOLBOX__MAX_CONCURRENT__X", "1"),
        ("APP_MYAI__TOOLBOX__MAX_CONCURENT", "1"),
    ];
    let found: String = wrong
        .iter()
        .map(|(name, text)| format!("{name}={text}\n{}\n", errors(toolbox(&[(name, text)]))))
        .collect();
    insta::assert_snapshot!(found);
}
