//! The three tools as models read them.

use haft::ToolDescription;
use serde_json::{Map, Value, json};

pub(super) const FIND: &str = "find_tools";
pub(super) const DESCRIBE: &str = "describe_tool";
pub(super) const CALL: &str = "call_tool";

/// Instructions for clients.
pub(in crate::gateway) const INSTRUCTIONS: &str = "\
The tools of this server are not listed. `find_tools` finds those that fit a task, `describe_tool` shows the \
arguments of one, `call_tool` runs it. Always search before you conclude that something cannot be done.";

/// Default and largest number of found tools.
pub(super) const LIMIT: usize = 8;
pub(super) const LIMIT_MAX: usize = 50;

/// The three.
pub(super) fn tools() -> Vec<ToolDescription> {
    vec![find_tools(), describe_tool(), call_tool()]
}

fn find_tools() -> ToolDescription {
    let input = json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What has to be done, in plain words, such as \"send an email to a customer\".",
            },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT,
                "description": "How many tools to show at most.",
            },
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    tool(
        FIND,
        "Finds the tools that fit a task. This server has many more tools than the three you see; begin here \
         whenever something has to be looked up or done. Gives names with one line each, best first, or a note that none fits: then try other words before you give up. Next: describe_tool for the \
         arguments of a tool, then call_tool to run it.",
        input,
        &json!({ "readOnlyHint": true, "openWorldHint": false }),
    )
}

fn describe_tool() -> ToolDescription {
    let input = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "A name that find_tools gave." },
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    tool(
        DESCRIBE,
        "Shows everything about one tool: what it does in full, and `inputSchema`, the JSON Schema of the \
         arguments that call_tool needs for it. Use it before the first call of a tool.",
        input,
        &json!({ "readOnlyHint": true, "openWorldHint": false }),
    )
}

fn call_tool() -> ToolDescription {
    let input = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "A name that find_tools gave." },
            "arguments": {
                "type": "object",
                "description": "The tool's own arguments, as its `inputSchema` from describe_tool wants them.",
            },
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    tool(
        CALL,
        "Runs a tool that find_tools found, with the arguments that describe_tool shows, and gives its result \
         as it is. If the result is an error, read it, fix the arguments and call again.",
        input,
        &json!({}),
    )
}

fn tool(
    name: &str,
    description: &str,
    input_schema: Value,
    annotations: &Value,
) -> ToolDescription {
    let mut rest = Map::new();
    if annotations.as_object().is_some_and(|annotations| !annotations.is_empty()) {
        rest.insert("annotations".to_owned(), annotations.clone());
    }
    ToolDescription {
        name: name.to_owned(),
        title: None,
        description: description.to_owned(),
        input_schema,
        output_schema: None,
        rest,
    }
}
