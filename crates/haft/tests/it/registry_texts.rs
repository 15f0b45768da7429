//! The exact messages of the toolbox and their log levels.

use haft::registry::{Level, Record, connect_failure, no_tools, register};
use testkit::LogCapture;

use super::registry_support::{
    dynamic, first_run, found, load, log, native, next_run, strict, toolbox,
};

const TEN: &str = "{max_instances: 10, timeout: 30s}";

/// Proves S0-27, S0-42, S0-52: T1.
#[test]
fn t1_an_unconfigured_tool_of_a_strict_server() {
    let config = toolbox("{name: a}, {name: b}", &[strict("customers")]);
    let registration = first_run(&config, &[("customers", &["a", "b", "get_customer"])]);
    let expected = "ERROR: \
Tool 'get_customer' from MCP server 'customers' is not configured in the toolbox.

MCP Server: customers
Mode: strict
Missing Tool: get_customer

Configured tools: [a, b]

To resolve:
1. Add the tool to myai.toolbox.tools in your configuration, OR
2. Change the MCP server mode to 'dynamic' and provide default_tool_config";
    assert_eq!(log(&registration)[2..], [expected]);
}

/// Part of S0-43, S0-58: T2, for a url and for a command line.
#[test]
fn t2_a_server_that_cannot_be_connected() {
    let config = native(
        "servers:\n  customers: {url: 'http://localhost:8180/mcp/http/mcp'}\n  \
         files: {command: npx, args: ['-y', pkg]}\n",
    );
    let text = |at: usize| {
        let server = &config.servers[at];
        connect_failure(&server.name, &server.endpoint, "connection refused")
    };
    assert_eq!(
        text(0),
        "\
Failed to connect to MCP server 'customers' at http://localhost:8180/mcp/http/mcp
Error: connection refused

The application cannot start without connecting to all configured MCP servers."
    );
    assert_eq!(
        text(1),
        "\
Failed to connect to MCP server 'files' at npx -y pkg
Error: connection refused

The application cannot start without connecting to all configured MCP servers."
    );
}

/// Proves S0-45, S0-48: T3, for a url (its secrets masked) and for a command line.
#[test]
fn t3_a_server_without_tools() {
    let config = native(
        "servers:\n  customers: {url: 'http://me:pass@localhost:8180/mcp?key=abc'}\n  \
         files: {command: npx, args: ['-y', pkg]}\n",
    );
    let registration = first_run(&config, &[("customers", &[]), ("files", &[])]);
    assert_eq!(
        log(&registration),
        [
            "WARNING: MCP server 'customers' at http://me:***@localhost:8180/mcp?key=*** returned \
             no tools",
            "WARNING: MCP server 'files' at npx -y pkg returned no tools",
        ]
    );
    assert_eq!(no_tools("a", &"http://a/mcp"), "MCP server 'a' at http://a/mcp returned no tools");
}

/// Proves S0-46: T4 and T10.
#[test]
fn t4_and_t10_a_dynamic_server_without_a_default() {
    let text = "myai: {toolbox: {mcps: [{name: customers, url: 'http://a/mcp', \
                transport: streamable_http, mode: dynamic}]}}";
    let shown = load(text).unwrap_err().to_string();
    let t4 = "MCP server 'customers' is configured with mode='dynamic' but missing required field \
              'default_tool_config'";
    let t10 = "default_tool_config is required when mode is 'dynamic'";
    assert!(shown.contains(t4), "{shown}");
    assert!(shown.contains(t10), "{shown}");
}

/// Proves S0-34, S0-36, S0-47: T5 and T7.
#[test]
fn t5_and_t7_a_tool_without_an_entry_and_a_new_one() {
    let config = toolbox("", &[dynamic("customers", TEN)]);
    let known = first_run(&config, &[("customers", &["get"])]).known;
    let registration = next_run(&config, &[("customers", &["get", "put"])], &known);
    assert_eq!(
        log(&registration),
        [
            "INFO: Tool 'get' from MCP 'customers' not explicitly configured, using default configuration",
            "INFO: New tool 'put' discovered from MCP server 'customers', registering with default configuration",
            "INFO: Tool 'put' from MCP 'customers' not explicitly configured, using default configuration",
        ]
    );
}

/// Proves S0-29, S0-35, S0-48: T6.
#[test]
fn t6_a_configured_tool_that_is_gone() {
    for server in [strict("customers"), dynamic("customers", TEN)] {
        let config = toolbox("{name: get}", &[server]);
        let registration = first_run(&config, &[("customers", &[])]);
        assert_eq!(
            log(&registration)[1..],
            [
                "WARNING: Tool 'get' was configured but is no longer available from MCP server 'customers'"
            ]
        );
    }
}

/// Proves S0-49: T8, for a strict server's tool and for a local one.
#[test]
fn t8_a_tool_with_settings_of_its_own() {
    let config = toolbox(
        "{name: get, max_instances: 20, timeout: P0DT0H1M0S}, {name: sum, timeout: 1500ms}",
        &[strict("customers")],
    );
    let found = found(&["sum"], &[("customers", &["get"])]);
    assert_eq!(
        log(&register(&config, &found, None)),
        [
            "DEBUG: Tool 'sum' registered with explicit configuration: {max_instances: 1, timeout: 1.5s}",
            "DEBUG: Tool 'get' registered with explicit configuration: {max_instances: 20, timeout: 60s}",
        ]
    );
}

/// Proves S0-50: T9, with all that can be set.
#[test]
fn t9_settings_that_are_merged() {
    let config = toolbox(
        "{name: get, max_instances: 20, timeout: 60s, approval: ask}, {name: put}",
        &[dynamic(
            "customers",
            "{max_instances: 10, timeout: 30s, parallel_capable: true, on_limit: reject}",
        )],
    );
    assert_eq!(
        log(&first_run(&config, &[("customers", &["get", "put"])])),
        [
            "DEBUG: Tool 'get' configuration merged: \
             explicit={max_instances: 20, timeout: 60s, approval: ask}, \
             default={max_instances: 10, timeout: 30s, parallel_capable: true, on_limit: reject}, \
             final={max_instances: 20, timeout: 60s}",
            "DEBUG: Tool 'put' configuration merged: explicit={}, \
             default={max_instances: 10, timeout: 30s, parallel_capable: true, on_limit: reject}, \
             final={max_instances: 10, timeout: 30s}",
        ]
    );
}

/// Proves S0-47, S0-48, S0-49, S0-51, S0-52: each record reaches the log as one event at its own
/// level, so that DEBUG is not seen at the default level.
#[test]
fn each_record_is_one_event_at_its_level() {
    let (heard, _guard) = LogCapture::start();
    let text = "Mode: strict\n\nMissing {tool}";
    for level in [Level::Debug, Level::Info, Level::Warning, Level::Error] {
        Record { level, text: text.to_owned() }.emit();
    }
    let expected = ["DEBUG", "INFO", "WARNING", "ERROR"].map(|level| format!("{level}: {text}"));
    assert_eq!(heard.lines(), expected);
}
