//! The resolved view: effective values and their origins.

use std::fmt::Write as _;

use haft::config::Config;
use haft::config::show::rows;
use haft::registry::{Discovered, register};
use haft::{Runtime, ToolDefinition};
use serde_json::json;
use testkit::Workspace;

use crate::config_support::{load, native, row, value};

fn shown(config: &Config, workspace: &Workspace) -> String {
    let mut text = String::new();
    for row in rows(config) {
        writeln!(text, "{} = {} ({}: {})", row.path, row.value, row.origin, row.from).unwrap();
    }
    workspace.stable(&text)
}

/// Proves S0-6, S0-9, S0-10, X-6: section 2.1 of the seed, every value with its origin.
#[test]
fn the_seeds_toolbox_resolves_to_three_tools_and_two_servers() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/good/toolbox");
    let text = std::fs::read_to_string(format!("{corpus}/seed-0-section-2-1.yaml")).unwrap();
    let workspace = Workspace::with(&[("toolbox.yaml", &text)]);
    let config = load(&workspace, &["toolbox.yaml"], &[]).unwrap();
    assert_eq!((config.tools.len(), config.servers.len()), (3, 2));
    assert_eq!(value(&config, "servers.customers.mode"), json!("dynamic"));
    assert_eq!(value(&config, "servers.internal-tools.mode"), json!("strict"));
    assert_eq!(value(&config, "servers.customers.transport"), json!("http"));
    assert_eq!(value(&config, "defaults.max_concurrent"), json!(10));
    let default = "servers.customers.default_tool_config";
    assert_eq!(value(&config, &format!("{default}.max_instances")), json!(10));
    assert_eq!(value(&config, &format!("{default}.timeout")), json!("30s"));
    insta::assert_snapshot!(shown(&config, &workspace));
}

/// Proves S0-9, X-5: ISO-8601 durations in the resolved view.
#[test]
fn iso_durations_are_shown_as_seconds() {
    let config =
        native("tools: [{name: a, timeout: P0DT0H0M30S}, {name: b, timeout: P0DT0H1M0S}]", &[])
            .unwrap();
    assert_eq!(value(&config, "tools.a.timeout"), json!("30s"));
    assert_eq!(value(&config, "tools.b.timeout"), json!("60s"));
}

/// Proves S0-18: a default needs no name, and one that has a name is warned about.
#[test]
fn a_name_in_a_default_is_ignored_with_a_warning() {
    let text = "servers: {s: {command: x, default_tool_config: {name: n, max_instances: 2}}}";
    let config = native(text, &[]).unwrap();
    assert_eq!(value(&config, "servers.s.default_tool_config.max_instances"), json!(2));
    assert_eq!(config.warnings.len(), 1);
    assert!(config.warnings[0].problem.contains("ignored"));
}

/// Proves S0-4: a strict server may carry a default.
#[test]
fn a_strict_server_may_have_a_default() {
    let text = "servers: {s: {command: x, mode: strict, default_tool_config: {max_instances: 2}}}";
    assert!(native(text, &[]).unwrap().warnings.is_empty());
}

fn effective(config: &Config, tool: &str) -> (u32, u64, String) {
    let definition = ToolDefinition {
        name: tool.to_owned(),
        title: None,
        description: String::new(),
        input_schema: json!({"type": "object"}),
        output_schema: None,
        annotations: None,
        icons: None,
    };
    let found = Discovered { local: Vec::new(), servers: vec![("s".to_owned(), vec![definition])] };
    let registration = register(config, &found, None);
    let settings = &registration.tools[0].effective;
    let timeout = &settings.timeout;
    (settings.max_instances.value, timeout.value.as_secs(), timeout.origin.to_string())
}

/// Proves X-6, S0-19, S0-20: explicit, then the server's default, then `request_timeout`.
#[test]
fn a_tools_timeout_comes_from_the_most_specific_place() {
    let file = |tool: &str, default: &str, server: &str| {
        format!("servers:\n  s: {{command: x{server}{default}}}\ntools: [{tool}]\n")
    };
    let default = ", default_tool_config: {timeout: 20s, max_instances: 7}";
    let of = |text: String| effective(&native(&text, &[]).unwrap(), "t");
    assert_eq!(
        of(file("{name: t, timeout: 10s}", default, ", request_timeout: 40s")),
        (7, 10, "haft.yaml:3:28".into())
    );
    assert_eq!(
        of(file("", default, ", request_timeout: 40s")),
        (7, 20, "default_tool_config of `s`, haft.yaml:2:72".into())
    );
    assert_eq!(of(file("", "", ", request_timeout: 40s")), (5, 40, "haft.yaml:2:36".into()));
    assert_eq!(of(file("", "", "")), (5, 60, "default of native files".into()));
    let toolbox = "myai: {toolbox: {mcps: [{name: s, transport: http, url: 'http://h/', mode: strict}], tools: [{name: t}]}}";
    let workspace = Workspace::with(&[("box.yaml", toolbox)]);
    let config = load(&workspace, &["box.yaml"], &[]).unwrap();
    assert_eq!(effective(&config, "t"), (5, 30, "default of toolbox files".into()));
}

/// Proves X-6, S0-19, S0-20, S2-FR-014: a local tool falls back to `defaults.tool_timeout`.
#[tokio::test]
async fn a_local_tools_timeout_falls_back_to_the_toolbox_default() {
    let tools = r#"{"tools": [
        {"name": "plain", "description": "d", "type": "local", "input_schema": {"type": "object"}, "parallel_capable": true, "config": {"script_path": "t.py"}},
        {"name": "own", "description": "d", "type": "local", "input_schema": {"type": "object"}, "timeout": 3, "config": {"script_path": "t.py"}}]}"#;
    let workspace = Workspace::with(&[
        ("tools.json", tools),
        ("haft.yaml", "defaults: {tool_timeout: 11s}\ntools: [{name: own, timeout: 2s}]\n"),
    ]);
    for (files, plain, own) in [
        (&["tools.json"][..], ("30s", "default"), ("3s", "tools.json:3:109")),
        (&["haft.yaml", "tools.json"], ("11s", "haft.yaml:1:26"), ("2s", "haft.yaml:2:30")),
    ] {
        let config = load(&workspace, files, &[]).unwrap();
        let runtime = Runtime::builder(config).dry_run().start().await.unwrap();
        for (tool, (timeout, from)) in [("plain", plain), ("own", own)] {
            let info = runtime.tool(tool).unwrap();
            let setting = info.config.iter().find(|it| it.key == "timeout").unwrap();
            assert_eq!((&setting.value, setting.from.as_str()), (&json!(timeout), from), "{tool}");
        }
        assert_eq!(runtime.tool("plain").unwrap().setting("max_instances"), Some(&json!(5)));
    }
}

/// Proves X-6: each kind of origin has its own words.
#[test]
fn a_value_says_whether_a_file_a_variable_or_a_default_set_it() {
    let text = "servers:\n  s:\n    command: x\n    start: lazy\n    required: true\n";
    let config = native(text, &[("HAFT__SERVERS__s__SAMPLING", "ask")]).unwrap();
    let from = |key: &str| {
        let row = row(&config, &format!("servers.s.{key}"));
        (row.origin, row.from)
    };
    assert_eq!(from("start"), ("explicit", "haft.yaml:4:12".into()));
    assert_eq!(from("on_connect_failure"), ("explicit", "haft.yaml:5:15".into()));
    assert_eq!(from("sampling"), ("explicit", "$HAFT__SERVERS__s__SAMPLING".into()));
    assert_eq!(from("request_timeout"), ("default", "default of native files".into()));
    assert_eq!(from("protocol"), ("default", "default".into()));
}
