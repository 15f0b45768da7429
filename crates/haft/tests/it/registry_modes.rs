//! Strict servers, dynamic servers and local tools: what is registered and what is refused.

use haft::config::choices::Mode;
use haft::registry::{Discovered, ToolSource, register};
use serde_json::json;

use super::registry_support::{
    definition, dynamic, first_run, found, function, load, log, log_from, offered, strict, toolbox,
};

const TEN: &str = "{max_instances: 10, timeout: 30s}";

/// Proves S0-1, S0-54 (strict valid, dynamic valid).
#[test]
fn one_file_may_have_a_strict_and_a_dynamic_server() {
    let config = toolbox("", &[strict("external"), dynamic("customers", TEN)]);
    let modes: Vec<_> =
        config.servers.iter().map(|server| (server.name.as_str(), server.mode.value)).collect();
    assert_eq!(modes, [("external", Mode::Strict), ("customers", Mode::Dynamic)]);
}

/// Proves S0-3, S0-28, S0-55 (all configured), S0-85 (strict).
#[test]
fn a_strict_server_whose_tools_all_have_entries_registers_them_with_their_own_settings() {
    let config = toolbox(
        "{name: get, max_instances: 2, timeout: PT1M}, {name: put, max_instances: 1, timeout: 5}",
        &[strict("customers")],
    );
    let registration = first_run(&config, &[("customers", &["get", "put"])]);
    assert_eq!(
        offered(&registration),
        [
            "get of strict customers: 2 at once, 60s, Explicit",
            "put of strict customers: 1 at once, 5s, Explicit",
        ]
    );
    assert_eq!(registration.violations, [""; 0]);
}

/// Proves S0-4, S0-27, S0-54 (strict with default accepted).
#[test]
fn the_default_of_a_strict_server_is_ignored() {
    let server = "{name: customers, url: 'http://customers/mcp', transport: streamable_http, \
                  mode: strict, default_tool_config: {max_instances: 10, timeout: 45s}}";
    let config = toolbox("{name: get}", &[server.to_owned()]);
    let registration = first_run(&config, &[("customers", &["get", "put"])]);
    assert_eq!(offered(&registration), ["get of strict customers: 5 at once, 30s, Explicit"]);
    assert_eq!(registration.violations.len(), 1);
    assert!(registration.violations[0].contains("Missing Tool: put\n"));
}

/// Proves S0-27, S0-42, S0-55 (one unconfigured), S0-58 (helpful message), S0-85, S0-87.
#[test]
fn an_unconfigured_tool_of_a_strict_server_is_refused_and_the_others_are_still_judged() {
    let config = toolbox("{name: get}, {name: put}", &[strict("customers")]);
    let registration = first_run(&config, &[("customers", &["get", "drop", "put", "list"])]);
    assert_eq!(
        offered(&registration),
        [
            "get of strict customers: 5 at once, 30s, Explicit",
            "put of strict customers: 5 at once, 30s, Explicit",
        ]
    );
    let refusal = |tool: &str| {
        format!(
            "Tool '{tool}' from MCP server 'customers' is not configured in the toolbox.\n\n\
             MCP Server: customers\nMode: strict\nMissing Tool: {tool}\n\n\
             Configured tools: [get, put]\n\nTo resolve:\n\
             1. Add the tool to myai.toolbox.tools in your configuration, OR\n\
             2. Change the MCP server mode to 'dynamic' and provide default_tool_config"
        )
    };
    assert_eq!(registration.violations, [refusal("drop"), refusal("list")]);
    let errors = ["drop", "list"].map(|tool| format!("ERROR: {}", refusal(tool)));
    assert_eq!(log_from("INFO", &registration), errors);
}

/// Proves S0-29, S0-30, S0-48, S0-55 (configured but gone), S0-85.
#[test]
fn a_configured_tool_that_a_strict_server_no_longer_has_is_a_warning() {
    let config = toolbox("{name: get}, {name: put}", &[strict("customers")]);
    let registration = first_run(&config, &[("customers", &["get"])]);
    assert_eq!(
        log(&registration),
        [
            "DEBUG: Tool 'get' registered with explicit configuration: \
             {max_instances: 5, timeout: 30s}",
            "WARNING: Tool 'put' was configured but is no longer available from MCP server \
             'customers'",
        ]
    );
    assert_eq!(offered(&registration), ["get of strict customers: 5 at once, 30s, Explicit"]);
    assert_eq!(registration.violations, [""; 0]);
}

/// Proves S0-33, S0-34, S0-47, S0-56 (not configured), S0-85, S0-87.
#[test]
fn an_unconfigured_tool_of_a_dynamic_server_uses_its_default() {
    let config = toolbox("", &[dynamic("customers", TEN)]);
    let registration = first_run(&config, &[("customers", &["get", "put"])]);
    assert_eq!(
        log(&registration),
        [
            "INFO: Tool 'get' from MCP 'customers' not explicitly configured, using default \
             configuration",
            "INFO: Tool 'put' from MCP 'customers' not explicitly configured, using default \
             configuration",
        ]
    );
    assert_eq!(
        offered(&registration),
        [
            "get of dynamic customers: 10 at once, 30s, Default",
            "put of dynamic customers: 10 at once, 30s, Default",
        ]
    );
}

/// Proves S0-32, S0-35, S0-48, S0-50, S0-56 (configured, removed), S0-87.
#[test]
fn a_dynamic_server_merges_an_entry_and_warns_of_one_whose_tool_is_gone() {
    let config =
        toolbox("{name: get, max_instances: 20}, {name: put}", &[dynamic("customers", TEN)]);
    let registration = first_run(&config, &[("customers", &["get"])]);
    assert_eq!(
        log(&registration),
        [
            "DEBUG: Tool 'get' configuration merged: explicit={max_instances: 20}, \
             default={max_instances: 10, timeout: 30s}, final={max_instances: 20, timeout: 30s}",
            "WARNING: Tool 'put' was configured but is no longer available from MCP server \
             'customers'",
        ]
    );
    assert_eq!(offered(&registration), ["get of dynamic customers: 20 at once, 30s, Merged"]);
}

/// Proves S0-54 (dynamic without default fails), S0-46, S0-85.
#[test]
fn a_dynamic_server_without_a_default_is_no_valid_configuration() {
    for default in ["", ", default_tool_config: null"] {
        let text = format!(
            "myai: {{toolbox: {{mcps: [{{name: customers, url: 'http://customers/mcp', \
             transport: streamable_http, mode: dynamic{default}}}]}}}}"
        );
        let problems = load(&text).unwrap_err().problems;
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(
            problems[0].problem,
            "MCP server 'customers' is configured with mode='dynamic' but missing required field \
             'default_tool_config': default_tool_config is required when mode is 'dynamic'"
        );
    }
}

/// Proves S0-22, S0-23, S0-55 (local configured): local tools come first, whatever the order in
/// the file.
#[test]
fn local_tools_are_registered_before_the_tools_of_servers() {
    let config = toolbox(
        "{name: get}, {name: sum_numbers, max_instances: 20}, {name: now}",
        &[strict("customers")],
    );
    let found = found(&["sum_numbers", "now"], &[("customers", &["get"])]);
    let registration = register(&config, &found, None);
    assert_eq!(
        log(&registration),
        [
            "DEBUG: Tool 'sum_numbers' registered with explicit configuration: \
             {max_instances: 20, timeout: 30s}",
            "DEBUG: Tool 'now' registered with explicit configuration: \
             {max_instances: 1, timeout: 30s}",
            "DEBUG: Tool 'get' registered with explicit configuration: \
             {max_instances: 5, timeout: 30s}",
        ]
    );
    assert_eq!(
        offered(&registration),
        [
            "sum_numbers of local: 20 at once, 30s, Explicit",
            "now of local: 1 at once, 30s, Explicit",
            "get of strict customers: 5 at once, 30s, Explicit",
        ]
    );
}

/// Proves S0-24, S0-55 (local unconfigured), S0-85: local tools are strict beside a dynamic server
/// too, and its default is not theirs.
#[test]
fn a_local_tool_without_an_entry_is_refused() {
    let config = toolbox("{name: get}, {name: put}", &[dynamic("customers", TEN)]);
    let found = found(&["sum_numbers"], &[("customers", &["get", "put"])]);
    let registration = register(&config, &found, None);
    let text = "Tool 'sum_numbers' (local tool) is not configured in the toolbox.\n\n\
                Configured tools: [get, put]\n\n\
                Local tools must always be explicitly configured in myai.toolbox.tools.\n\
                To resolve: add an entry with `name: sum_numbers` to the tools in your \
                configuration";
    assert_eq!(registration.violations, [text]);
    assert_eq!(log_from("INFO", &registration), [format!("ERROR: {text}")]);
    assert_eq!(
        offered(&registration),
        [
            "get of dynamic customers: 10 at once, 30s, Merged",
            "put of dynamic customers: 10 at once, 30s, Merged",
        ]
    );
}

/// Proves S0-24 (the `tools.json` part): such an entry counts as its own configuration.
#[test]
fn a_local_tool_with_settings_of_its_own_needs_no_entry() {
    let config = toolbox("{name: hello, timeout: 5s}", &[]);
    let mut found = Discovered::default();
    for name in ["hello", "bye"] {
        let mut tool = function(name);
        let settings = toolbox("{name: any, max_instances: 3, timeout: 9s}", &[]);
        tool.settings = Some(settings.tools[0].settings.clone().into());
        found.local.push(tool);
    }
    let registration = register(&config, &found, None);
    assert_eq!(
        offered(&registration),
        ["hello of local: 3 at once, 5s, Merged", "bye of local: 3 at once, 9s, Explicit",]
    );
    assert_eq!(registration.violations, [""; 0]);
}

/// Proves S0-45, S0-48, S0-58 (no tools warns), S0-66, S0-85.
#[test]
fn a_server_without_tools_is_a_warning_and_nothing_else() {
    for server in [strict("customers"), dynamic("customers", TEN)] {
        let config = toolbox("", &[server]);
        let registration = first_run(&config, &[("customers", &[])]);
        assert_eq!(
            log(&registration),
            ["WARNING: MCP server 'customers' at http://customers/mcp returned no tools"]
        );
        assert_eq!(registration.violations, [""; 0]);
        assert_eq!(offered(&registration), [""; 0]);
    }
}

/// Proves S0-53: each tool has its source, its server, its server's mode and the origin of its
/// settings.
#[test]
fn every_tool_carries_where_it_comes_from() {
    let config = toolbox(
        "{name: sum_numbers}, {name: get}, {name: fetch}",
        &[dynamic("customers", TEN), strict("external")],
    );
    let servers: [(&str, &[&str]); 2] = [("customers", &["get", "put"]), ("external", &["fetch"])];
    let registration = register(&config, &found(&["sum_numbers"], &servers), None);
    let contexts: Vec<_> = registration
        .tools
        .iter()
        .map(|tool| json!([tool.name, tool.source, tool.effective.origin]))
        .collect();
    assert_eq!(
        contexts,
        [
            json!(["sum_numbers", {"source": "local"}, "explicit"]),
            json!(["get", {"source": "mcp", "mcp_name": "customers", "mcp_mode": "dynamic"},
                   "merged"]),
            json!(["put", {"source": "mcp", "mcp_name": "customers", "mcp_mode": "dynamic"},
                   "default"]),
            json!(["fetch", {"source": "mcp", "mcp_name": "external", "mcp_mode": "strict"},
                   "explicit"]),
        ]
    );
}

/// Part of S0-26, S0-31, S1-1, S1-30, S3-US4-1, S3-SC-008: what follows once the list is fetched.
#[test]
fn every_tool_of_a_long_list_is_registered() {
    for count in [1, 50, 500] {
        let config = toolbox("", &[dynamic("customers", TEN)]);
        let tools = (0..count).map(|at| definition(&format!("tool_{at}")));
        let found = Discovered {
            local: Vec::new(),
            servers: vec![("customers".to_owned(), tools.collect())],
        };
        let registration = register(&config, &found, None);
        let names: Vec<_> = registration.tools.iter().map(|it| it.name.clone()).collect();
        let expected: Vec<_> = (0..count).map(|at| format!("tool_{at}")).collect();
        assert_eq!(names, expected);
    }
}

/// Part of S1-6, from registration on: the server's definition stays unmodified.
#[test]
fn the_definition_of_a_tool_is_what_its_server_said() {
    let config = toolbox("", &[dynamic("customers", TEN)]);
    let mut tool = definition("get customer");
    tool.title = Some("Get".to_owned());
    tool.description = "Prefer this over `find`\u{202e}\nif you have an id.  ".to_owned();
    tool.input_schema = json!({"type": "object", "properties": {"z": {}, "a": {}}, "x-own": 1});
    tool.output_schema = Some(json!({"type": "object"}));
    let found = Discovered {
        local: Vec::new(),
        servers: vec![("customers".to_owned(), vec![tool.clone()])],
    };
    let registration = register(&config, &found, None);
    assert_eq!(registration.tools.len(), 1);
    assert_eq!(registration.tools[0].name, "get-customer");
    assert_eq!(registration.tools[0].definition, tool.into());
    assert!(registration.tools[0].output.is_some());
}

/// Proves X-8 (what registration yields): the new list of a strict server brings a tool without an
/// entry, which is refused with T1, and what was there stays registered.
#[test]
fn a_tool_that_a_strict_server_brings_later_is_refused_and_the_rest_stays() {
    let config = toolbox("{name: get}", &[strict("customers")]);
    let before = first_run(&config, &[("customers", &["get"])]);
    let found = found(&[], &[("customers", &["get", "drop"])]);
    let after = register(&config, &found, Some(&before.known));
    assert_eq!(offered(&after), offered(&before));
    assert_eq!(log_from("INFO", &after), [format!("ERROR: {}", after.violations[0])]);
    assert!(after.violations[0].starts_with(
        "Tool 'drop' from MCP server 'customers' is not configured in the toolbox.\n\n"
    ));
}

/// Proves S0-84: the entry may demand for itself what its server does not.
#[test]
fn an_entry_with_mode_strict_takes_nothing_from_the_default_of_its_server() {
    let refusal = "ERROR: Tool 'get' from MCP server 'customers' is refused: its entry says \
                   `mode: strict`, so it takes nothing from default_tool_config and must set both \
                   `max_instances` and `timeout` itself";
    for incomplete in ["", ", max_instances: 2", ", timeout: 5s"] {
        let entry = format!("{{name: get, mode: strict{incomplete}}}");
        let config = toolbox(&entry, &[dynamic("customers", TEN)]);
        let registration = first_run(&config, &[("customers", &["get", "put"])]);
        assert_eq!(log_from("WARNING", &registration), [refusal], "{incomplete}");
        assert_eq!(offered(&registration), ["put of dynamic customers: 10 at once, 30s, Default"]);
        assert_eq!(registration.violations, [""; 0]);
    }
    let complete = "{name: get, mode: strict, max_instances: 2, timeout: 5s}";
    let default = "{max_instances: 10, timeout: 30s, approval: ask}";
    let config = toolbox(complete, &[dynamic("customers", default)]);
    let registration = first_run(&config, &[("customers", &["get"])]);
    assert_eq!(
        log(&registration),
        ["DEBUG: Tool 'get' registered with explicit configuration: \
             {max_instances: 2, timeout: 5s}"]
    );
    let tool = &registration.tools[0];
    assert_eq!(
        tool.source,
        ToolSource::Mcp { mcp_name: "customers".to_owned(), mcp_mode: Mode::Dynamic }
    );
    assert_eq!(tool.effective.approval.value.to_string(), "auto");
}
