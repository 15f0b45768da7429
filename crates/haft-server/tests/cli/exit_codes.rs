//! Every exit code, each with a message that gives the reason.

use testkit::Workspace;

use crate::{run, toolbox, transcript};

/// No configuration: exit code 2, and where one could come from.
#[test]
fn without_a_configuration_the_remedy_names_the_flag() {
    let workspace = Workspace::new();
    for command in [&["servers", "list"][..], &["login", "x"], &["mcp"], &["check"]] {
        let finished = run(&workspace, command);
        assert_eq!(finished.code, 2, "{command:?}");
        assert!(finished.stderr.contains("name one with `-c PATH`"), "{}", finished.stderr);
    }
    let finished = run(&workspace, &["check"]);
    insta::assert_snapshot!(transcript(&workspace, &finished));
}

/// Proves S0-43, S0-52, S0-63: a server that must be reached and cannot be; exit code 3.
#[test]
fn an_unreachable_server_of_a_toolbox_ends_the_start() {
    let text = "myai:
  toolbox:
    mcps:
      - {name: customers, transport: http, url: 'http://127.0.0.1:1/mcp', mode: strict}
";
    let workspace = Workspace::with(&[("toolbox.yaml", text)]);
    let finished = run(&workspace, &["-c", "toolbox.yaml", "call", "x"]);
    assert_eq!(finished.code, 3);
    insta::assert_snapshot!(transcript(&workspace, &finished));
}

/// Proves S1-16: the same server, skipped; everything else works.
#[test]
fn an_unreachable_server_may_be_skipped() {
    let workspace = toolbox();
    let servers = r#"{"mcp_servers": {"far": {"url": "http://127.0.0.1:1/mcp"}}}"#;
    workspace.write("tools/mcp.json", servers);
    let finished = run(&workspace, &["tools", "list"]);
    assert_eq!(finished.code, 0);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    // A local tool starts no server.
    let called = run(&workspace, &["call", "greet", "name=Ada"]);
    assert_eq!((called.code, called.stderr.as_str()), (0, ""));
    assert!(called.stdout.contains("Hello, Ada!"), "{}", called.stdout);
}

/// Proves S0-52, S0-64, X-7: two names that become one where that is an error; exit code 4.
#[test]
fn colliding_names_end_the_start_if_the_switch_is_set() {
    let tool = |name: &str| {
        format!(
            r#"{{"name": "{name}", "description": "d", "type": "local", "input_schema": {{"type": "object"}}, "config": {{"script_path": "t.py"}}}}"#
        )
    };
    let tools = format!(r#"{{"tools": [{}, {}]}}"#, tool("a b"), tool("a-b"));
    let workspace = Workspace::with(&[
        ("haft.yaml", "defaults: {on_name_collision: error}\nregistry: {dir: t}\n"),
        ("t/tools.json", &tools),
        ("t/mcp.json", r#"{"mcp_servers": {}}"#),
    ]);
    let finished = run(&workspace, &["tools", "list"]);
    assert_eq!(finished.code, 4);
    insta::assert_snapshot!(transcript(&workspace, &finished));
}

/// A log that cannot be written: exit code 1, the path, the cause and the remedy.
#[test]
fn an_unwritable_log_ends_the_start() {
    let workspace = toolbox();
    workspace.write("haft.yaml", "registry: {dir: tools}\nlog: {dir: file/logs}\n");
    workspace.write("file", "not a folder");
    let finished = run(&workspace, &["call", "greet", "name=Ada"]);
    assert_eq!(finished.code, 1);
    insta::assert_snapshot!(transcript(&workspace, &finished));
    let reading = run(&workspace, &["log"]);
    assert_eq!(reading.code, 1);
    insta::assert_snapshot!(transcript(&workspace, &reading));
}
