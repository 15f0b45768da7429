//! The edges: many tools, none, gone ones, lists of what is let in.

use haft::config::Severity;
use haft::registry::register;

use super::registry_support::{
    dynamic, first_run, found, load, log, log_from, names, native, offered, pairs, strict, toolbox,
};

const TEN: &str = "{max_instances: 10, timeout: 30s}";

/// Proves S0-65.
#[test]
fn of_a_hundred_tools_the_five_with_entries_are_merged_and_the_others_use_the_default() {
    let entries: Vec<_> =
        (0..5).map(|at| format!("{{name: tool_{at}, max_instances: 20}}")).collect();
    let config = toolbox(&entries.join(", "), &[dynamic("customers", TEN)]);
    let tools: Vec<_> = (0..100).map(|at| format!("tool_{at}")).collect();
    let tools: Vec<_> = tools.iter().map(String::as_str).collect();
    let registration = first_run(&config, &[("customers", &tools)]);
    let expected_tools: Vec<_> = (0..100)
        .map(|at| match at {
            0..5 => format!("tool_{at} of dynamic customers: 20 at once, 30s, Merged"),
            _ => format!("tool_{at} of dynamic customers: 10 at once, 30s, Default"),
        })
        .collect();
    assert_eq!(offered(&registration), expected_tools);
    let expected_lines: Vec<_> = (5..100)
        .map(|at| {
            format!(
                "INFO: Tool 'tool_{at}' from MCP 'customers' not explicitly configured, using \
                 default configuration"
            )
        })
        .collect();
    assert_eq!(log_from("INFO", &registration), expected_lines);
    assert_eq!(log(&registration).len(), 100);
}

/// Proves S0-67, S0-93: no server ever had the tool, so none lost it; the only server there is can be meant alone.
#[test]
fn a_configured_tool_that_no_server_ever_had_is_one_warning() {
    let config = toolbox("{name: ghost}", &[dynamic("a", TEN), dynamic("b", TEN)]);
    let registration = first_run(&config, &[("a", &["get"]), ("b", &["put"])]);
    assert_eq!(
        log_from("WARNING", &registration),
        [
            "WARNING: Tool 'ghost' is configured but nothing provides it: no server and no local tool has that name"
        ]
    );
    let config = toolbox("{name: ghost}", &[dynamic("a", TEN)]);
    let registration = first_run(&config, &[("a", &["get"])]);
    assert_eq!(
        log_from("WARNING", &registration),
        ["WARNING: Tool 'ghost' was configured but is no longer available from MCP server 'a'"]
    );
}

/// Proves S0-67, S0-93: if the file or an earlier run knows the tool's server, only that server is
/// named.
#[test]
fn a_gone_tool_is_reported_for_the_server_that_had_it() {
    let gone = "WARNING: Tool 'ghost' was configured but is no longer available from MCP server \
                'b'";
    let servers = [dynamic("a", TEN), dynamic("b", TEN)];
    let named = toolbox("{name: ghost, mcp: b}", &servers);
    let registration = first_run(&named, &[("a", &["get"]), ("b", &["put"])]);
    assert_eq!(log_from("WARNING", &registration), [gone]);

    let config = toolbox("{name: ghost}", &servers);
    let before = first_run(&config, &[("a", &["get"]), ("b", &["ghost"])]);
    let found = found(&[], &[("a", &["get"]), ("b", &["put"])]);
    let after = register(&config, &found, Some(&before.known));
    assert_eq!(log_from("WARNING", &after), [gone]);
}

/// Proves S0-93: without any server there is still a warning.
#[test]
fn a_configured_tool_that_nothing_can_provide_is_a_warning() {
    let warning = "WARNING: Tool 'ghost' is configured but nothing provides it: no server and no \
                   local tool has that name";
    let config = toolbox("{name: ghost}", &[]);
    assert_eq!(log(&first_run(&config, &[])), [warning]);
    let disabled = native(
        "tools: [{name: ghost}]\nservers: {a: {url: 'http://a/mcp', disabled: true}, \
         b: {url: 'http://b/mcp', load_tools: false}}",
    );
    assert_eq!(log(&first_run(&disabled, &[])), [warning]);
}

/// Proves S0-67 (its limit): a server that did not answer may still have the tool.
#[test]
fn a_tool_of_a_server_that_is_out_of_reach_is_not_called_gone() {
    let config = toolbox("{name: get}", &[dynamic("a", TEN), dynamic("b", TEN)]);
    let before = first_run(&config, &[("a", &["get"]), ("b", &["put"])]);
    let found = found(&[], &[("b", &["put"])]);
    let after = register(&config, &found, Some(&before.known));
    assert_eq!(log_from("WARNING", &after), [""; 0]);
    assert_eq!(after.known, before.known);
}

/// Proves S0-29, S0-35 (no false alarm): the general entry matches the same tool.
#[test]
fn an_entry_that_a_more_exact_one_overrules_is_not_called_gone() {
    let config = toolbox(
        "{name: get, max_instances: 2}, {name: get, mcp: a, max_instances: 3}",
        &[dynamic("a", TEN)],
    );
    let registration = first_run(&config, &[("a", &["get"])]);
    assert_eq!(offered(&registration), ["get of dynamic a: 3 at once, 30s, Merged"]);
    assert_eq!(log_from("INFO", &registration), [""; 0]);
}

/// Proves S0-28, S0-32 (`mcp`): an entry that names a server holds for that server's tool only.
#[test]
fn an_entry_may_name_the_server_it_speaks_of() {
    let config = toolbox("{name: get, mcp: a}", &[strict("a"), strict("b")]);
    let registration = first_run(&config, &[("a", &["get"]), ("b", &["get"])]);
    assert_eq!(offered(&registration), ["get of strict a: 5 at once, 30s, Explicit"]);
    assert_eq!(registration.violations.len(), 1);
    assert!(registration.violations[0].contains("MCP Server: b\n"));
}

/// Proves S0-81.
#[test]
fn only_the_tools_on_the_allow_list_are_registered() {
    let config = native("servers: {a: {url: 'http://a/mcp', tool_allowlist: [get, put]}}");
    let registration = first_run(&config, &[("a", &["get", "drop", "put"])]);
    assert_eq!(names(&registration), pairs(&[("get", "a"), ("put", "a")]));
    assert_eq!(
        log(&registration)[1],
        "DEBUG: Tool 'drop' from MCP server 'a' is left out by its allow or deny list"
    );
}

/// Proves S0-82.
#[test]
fn all_but_the_tools_on_the_deny_list_are_registered() {
    let config = native("servers: {a: {url: 'http://a/mcp', tool_denylist: [drop]}}");
    let registration = first_run(&config, &[("a", &["get", "drop", "put"])]);
    assert_eq!(names(&registration), pairs(&[("get", "a"), ("put", "a")]));
    assert_eq!(
        log(&registration)[1],
        "DEBUG: Tool 'drop' from MCP server 'a' is left out by its allow or deny list"
    );
}

/// Proves S0-82 (both given).
#[test]
fn an_allow_list_beside_a_deny_list_is_no_valid_configuration() {
    let error = load(
        "myai: {toolbox: {mcps: [{name: a, url: 'http://a/mcp', transport: http, mode: strict, \
         tool_allowlist: [get], tool_denylist: [drop]}]}}",
    )
    .unwrap_err();
    let problems: Vec<_> =
        error.problems.iter().map(|problem| (problem.severity, problem.problem.as_str())).collect();
    assert_eq!(
        problems,
        [(Severity::Error, "`tool_allowlist` and `tool_denylist` are both given")]
    );
}

/// Proves S0-81, S0-82: a strict server does not fail over a tool that is left out anyway.
#[test]
fn a_tool_that_is_left_out_needs_no_entry() {
    let config = native(
        "servers: {a: {url: 'http://a/mcp', mode: strict, tool_denylist: [drop]}}\n\
         tools: [{name: get}]",
    );
    let registration = first_run(&config, &[("a", &["get", "drop"])]);
    assert_eq!(registration.violations, [""; 0]);
    assert_eq!(names(&registration), pairs(&[("get", "a")]));
}

/// Proves S0-82, S0-87: its server still has the tool, so it is not called gone.
#[test]
fn a_tool_that_is_left_out_is_not_called_gone() {
    let config =
        native("servers: {a: {url: 'http://a/mcp', tool_denylist: [drop]}}\ntools: [{name: drop}]");
    let registration = first_run(&config, &[("a", &["drop"])]);
    assert_eq!(
        log(&registration),
        ["DEBUG: Tool 'drop' from MCP server 'a' is left out by its allow or deny list"]
    );
}
