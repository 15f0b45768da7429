//! Untrusted server data: names that forge log lines, schemas with remote references.

use std::sync::Arc;

use haft::registry::{Discovered, register};
use serde_json::{Value, json};

use super::registry_support::{
    definition, dynamic, first_run, found, log, names, native, next_run, pairs, strict, toolbox,
};

const TEN: &str = "{max_instances: 10, timeout: 30s}";
/// A line break, a colour, reversed text, and invisible characters.
const FORGED: &str =
    "get\nERROR: all is lost\r\u{1b}[31m\u{202e}\u{2066}\u{200b}\u{2028}\u{61c}\u{e0041}\u{85}";
const SHOWN: &str = "get\\u{a}ERROR: all is lost\\u{d}\\u{1b}[31m\\u{202e}\\u{2066}\\u{200b}\
                     \\u{2028}\\u{61c}\\u{e0041}\\u{85}";

/// Proves S0-42, S0-47, S0-86 (names from servers): in every text, a name stays on its line.
#[test]
fn a_name_cannot_forge_a_line_of_the_log() {
    let servers = [
        strict("a"),
        dynamic("b", TEN),
        dynamic("c", TEN).replace("mode:", "tool_denylist: [drop], mode:"),
    ];
    let config = toolbox("", &servers);
    let known = first_run(&config, &[("b", &[])]).known;
    let servers: [(&str, &[&str]); 2] = [("a", &[FORGED]), ("b", &[FORGED])];
    let registration = next_run(&config, &servers, &known);
    assert_eq!(
        log(&registration),
        [
            format!(
                "ERROR: Tool '{SHOWN}' from MCP server 'a' is not configured in the toolbox.\n\n\
                 MCP Server: a\nMode: strict\nMissing Tool: {SHOWN}\n\nConfigured tools: []\n\n\
                 To resolve:\n\
                 1. Add the tool to myai.toolbox.tools in your configuration, OR\n\
                 2. Change the MCP server mode to 'dynamic' and provide default_tool_config"
            ),
            format!(
                "INFO: New tool '{SHOWN}' discovered from MCP server 'b', registering with \
                 default configuration"
            ),
            format!(
                "INFO: Tool '{SHOWN}' from MCP 'b' not explicitly configured, using default \
                 configuration"
            ),
            format!(
                "WARNING: Tool '{SHOWN}' from MCP server 'b' has a name that may mislead: it has U+000A \
                 (invisible), U+000D (invisible), U+001B (invisible), U+0085 (invisible), U+061C \
                 (invisible), 5 more; if you do not trust it, leave it out with `tool_denylist` of 'b'"
            ),
        ]
    );
}

/// Proves S0-49, S0-50, S0-69, S0-82 (names from servers): the other messages.
#[test]
fn a_name_cannot_forge_a_line_where_it_is_merged_left_out_or_collides() {
    let quoted = json!(FORGED);
    let config = native(&format!(
        "servers:\n  a: {{url: 'http://a/mcp'}}\n  b: {{url: 'http://b/mcp', mode: strict}}\n  \
         c: {{url: 'http://c/mcp', tool_denylist: [{quoted}]}}\ntools: [{{name: {quoted}}}]\n"
    ));
    let servers: [(&str, &[&str]); 3] = [("a", &[FORGED]), ("b", &[FORGED]), ("c", &[FORGED])];
    let registration = first_run(&config, &servers);
    let lines = log(&registration);
    // Two are merged or explicit, one collides, one is left out, and two names mislead.
    assert_eq!(lines.len(), 6, "{lines:?}");
    for line in lines {
        let hidden = line.chars().find(|c| c.is_control() || FORGED_ONLY.contains(c));
        assert_eq!(hidden, None, "{line:?}");
    }
}

const FORGED_ONLY: [char; 7] =
    ['\u{1b}', '\u{202e}', '\u{2066}', '\u{200b}', '\u{2028}', '\u{61c}', '\u{e0041}'];

/// Proves S3-US4-3 (hostile names): what is offered to a model is plain ASCII.
#[test]
fn the_offered_name_carries_nothing_of_a_forged_one() {
    let config = toolbox("", &[dynamic("a", TEN)]);
    let registration = first_run(&config, &[("a", &[FORGED])]);
    assert_eq!(names(&registration), pairs(&[("get-ERROR--all-is-lost---31m-------", "a")]));
    assert_eq!(registration.tools[0].definition.name, FORGED);
}

/// Registers `get` of a dynamic server with these schemas and returns its log.
fn with_schemas(input: Value, output: Option<Value>) -> String {
    let config = toolbox("", &[dynamic("a", TEN)]);
    let mut tool = definition("get");
    (tool.input_schema, tool.output_schema) = (input, output);
    let found = Discovered {
        local: Vec::new(),
        servers: vec![("a".to_owned(), vec![tool, definition("put")])],
    };
    let registration = register(&config, &found, None);
    assert_eq!(names(&registration), pairs(&[("put", "a")]));
    let (last, lines) = log(&registration)
        .split_last()
        .map(|(last, lines)| (last.clone(), lines.to_vec()))
        .unwrap_or_default();
    assert!(last.starts_with("INFO: Tool 'put' from MCP 'a' not explicitly configured"));
    lines.join("\n")
}

/// Proves S0-87; part of S2-SC-004, S2-FR-005: what cannot be checked is not offered,
/// and the other tools are.
#[test]
fn a_tool_with_an_unusable_schema_is_not_registered_and_a_warning_says_why() {
    let object = json!({"type": "object"});
    let remote = json!({"properties": {"id": {"$ref": "https://evil.example/id.json"}}});
    let invalid = json!({"type": "object", "properties": {"id": {"type": "strnig"}}});
    let dangling = json!({"$ref": "#/$defs/nowhere"});
    let cases = [
        with_schemas(remote.clone(), None),
        with_schemas(invalid, None),
        with_schemas(dangling, None),
        with_schemas(json!("object"), None),
        with_schemas(object.clone(), Some(remote)),
        with_schemas(object, Some(json!(7))),
        with_schemas(json!({"$ref": "file:///etc/passwd\nERROR: x"}), None),
    ];
    insta::assert_snapshot!(cases.join("\n"), @r#"
    WARNING: Tool 'get' from MCP server 'a' is not registered: its input schema is not usable: a `$ref` leads to another document: `https://evil.example/id.json`
    WARNING: Tool 'get' from MCP server 'a' is not registered: its input schema is not usable: at `/properties/id/type`: "strnig" is not valid under any of the schemas listed in the 'anyOf' keyword
    WARNING: Tool 'get' from MCP server 'a' is not registered: its input schema is not usable: a `$ref` cannot be resolved: Pointer '/$defs/nowhere' does not exist
    WARNING: Tool 'get' from MCP server 'a' is not registered: its input schema is not usable: it is not an object
    WARNING: Tool 'get' from MCP server 'a' is not registered: its output schema is not usable: a `$ref` leads to another document: `https://evil.example/id.json`
    WARNING: Tool 'get' from MCP server 'a' is not registered: its output schema is not usable: it is not an object
    WARNING: Tool 'get' from MCP server 'a' is not registered: its input schema is not usable: a `$ref` leads to another document: `file:///etc/passwd\u{a}ERROR: x`
    "#);
}

/// Proves S0-87: a schema of megabytes is not compiled.
#[test]
fn a_schema_that_is_too_large_is_not_compiled() {
    let large = json!({"type": "object", "description": "x".repeat(1024 * 1024)});
    assert_eq!(
        with_schemas(large, None),
        "WARNING: Tool 'get' from MCP server 'a' is not registered: its input schema is not \
         usable: it has 1048610 bytes, more than 1048576"
    );
}

/// Proves S0-87, S0-86: the same for a local tool, which has no server to be named.
#[test]
fn a_local_tool_with_an_unusable_schema_is_not_registered_either() {
    let config = toolbox("{name: sum}", &[]);
    let mut found = found(&["sum"], &[]);
    Arc::make_mut(&mut found.local[0].definition).input_schema = json!([]);
    let registration = register(&config, &found, None);
    assert_eq!(
        log(&registration),
        ["WARNING: Tool 'sum' (local tool) is not registered: its input schema is not usable: \
             it is not an object"]
    );
    assert_eq!(names(&registration), pairs(&[]));
}
