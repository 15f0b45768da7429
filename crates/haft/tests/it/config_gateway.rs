//! `gateway` and `profiles`: what they mean, and what is refused.

use haft::Config;
use haft::config::show;
use serde_json::json;
use testkit::Workspace;

use crate::config_support::{load, value};

fn shown(yaml: &str) -> String {
    let config = Config::from_yaml(yaml).unwrap_or_else(|error| panic!("{error}"));
    let is_gateway = |path: &str| path.starts_with("gateway.") || path.starts_with("profiles.");
    let rows = show::rows(&config).into_iter().filter(|row| is_gateway(&row.path));
    let rows = rows.map(|row| format!("{} = {} ({})\n", row.path, row.value, row.from));
    let warnings =
        config.warnings.iter().map(|it| format!("warning: {it}\n  help: {}\n", it.remedy));
    rows.chain(warnings).collect()
}

#[test]
fn everything_that_is_said_is_taken_over() {
    insta::assert_snapshot!(shown(
        "gateway: {surface: search, sessions_max: 5, session_idle: 90s}
servers: {files: {command: f}, mail: {command: m}}
profiles:
  reader: {servers: [fil*, local], tools: [read_*, greet], exclude_tools: ['*_secret'], surface: search}
  Whole-2: {}
"
    ));
}

#[test]
fn nothing_said_means_one_endpoint_with_every_tool() {
    insta::assert_snapshot!(shown("{}"), @r#"
    gateway.surface = "all" (default)
    gateway.output_bytes_max = 0 (default)
    gateway.sessions_max = 1000 (default)
    gateway.session_idle = "1800s" (default)
    gateway.first_list_timeout = "30s" (default)
    gateway.status_tool = true (default)
    "#);
}

#[test]
fn a_pattern_that_matches_no_server_is_a_warning() {
    let text = shown(
        "servers: {files: {command: f}, mail: {command: m, disabled: true}}
profiles:
  a: {servers: [flies, xyz, 'git*', mail, '*', local]}
",
    );
    let warnings: Vec<&str> =
        text.lines().skip_while(|line| !line.starts_with("warning")).collect();
    insta::assert_snapshot!(warnings.join("\n"));
}

#[test]
fn what_makes_no_sense_is_refused_with_a_remedy() {
    let error = Config::from_yaml(
        "gateway: {surface: some, sessions_max: 0, session_idle: 0s, port: 1}
profiles:
  'read only': {}
  empty: {servers: [], tools: []}
  gaps: {tools: ['read_?', '', '[ab]'], exclude_tools: ['{a,b}']}
  wrong: {tool: [a], surface: 3}
  text: reader
",
    );
    insta::assert_snapshot!(error.unwrap_err());
}

/// A profile of a later file replaces the earlier one, with a warning; variables change single
/// settings.
#[test]
fn a_later_file_replaces_a_profile_as_a_whole() {
    let workspace = Workspace::with(&[
        ("a.yaml", "profiles: {read-only: {tools: ['read_*']}, other: {}}\n"),
        ("b.yaml", "profiles: {read-only: {exclude_tools: [write]}}\n"),
    ]);
    let variables = [("HAFT__PROFILES__READ_ONLY__SURFACE", "search")];
    let config = load(&workspace, &["a.yaml", "b.yaml"], &variables).unwrap();
    let names: Vec<&str> = config.profiles.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["read-only", "other"]);
    assert!(config.profile("read-only").unwrap().tools.is_none());
    assert_eq!(value(&config, "profiles.read-only.surface"), json!("search"));
    let warning = &config.warnings[0].problem;
    assert!(warning.starts_with("the profile `read-only` replaces the one from"), "{warning}");
}

/// A file of nothing but servers may have one that is called like a section.
#[test]
fn a_server_may_be_called_like_a_section() {
    let servers = r#"{"gateway": {"command": "g", "args": [], "transport": "stdio"}}"#;
    let workspace = Workspace::with(&[("servers.json", servers)]);
    let config = load(&workspace, &["servers.json"], &[]).unwrap();
    assert_eq!(config.servers[0].name, "gateway");
}
