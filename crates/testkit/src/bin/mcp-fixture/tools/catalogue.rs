//! The built-in tools as `tools/list` shows them.

use serde_json::{Value, json};

use crate::lists::{ToolEntry, object};

/// Names and one line each. Arguments and schemas of output are added below.
const TOOLS: [(&str, &str); 50] = [
    ("echo", "Returns its arguments."),
    ("text", "Returns text."),
    ("every_content", "Returns content of every kind."),
    ("unknown_content", "Returns content of an unknown kind."),
    ("empty", "Returns no content."),
    ("fail", "Fails as a tool."),
    ("rpc_error", "Fails as a request."),
    ("sleep", "Answers after a while."),
    ("stats", "Returns what the server saw."),
    ("big", "Returns a long text."),
    ("big_numbers", "Returns numbers and keys that must survive."),
    ("deep", "Returns deeply nested structured content."),
    ("bad_structured", "Returns structured content that breaks its schema."),
    ("bad_structured_error", "The same, as an error."),
    ("progress", "Reports progress, then answers."),
    ("drip", "Reports progress, or sends other notifications, for ever."),
    ("trickle", "Sends its answer byte by byte, for ever."),
    ("crash", "Ends the server in the middle of the call."),
    ("hang", "Never answers."),
    ("wrong_id", "Answers an unknown request id."),
    ("text_id", "Answers with the id as a string."),
    ("plain_text", "Answers with a line that is not a message."),
    ("wide", "Answers in UTF-16."),
    ("duplicate", "Answers twice."),
    ("stray", "Answers an unknown request id, then the actual request."),
    ("late", "Speaks of its call while `overtake` runs, after it has ended."),
    ("overtake", "Answers when `late` has spoken."),
    ("bad_utf8", "Answers with invalid UTF-8."),
    ("half_line", "Sends half an answer as a line."),
    ("long_line", "Sends a very long line before the answer."),
    ("flood", "Sends lines of noise before the answer."),
    ("stderr_flood", "Fills standard error before the answer."),
    ("tiny_items", "Returns as many tiny items as fit into the bytes given."),
    ("many", "Answers with very many tiny values."),
    ("notification_flood", "Sends many notifications before the answer."),
    ("log_all_levels", "Logs at all eight levels."),
    ("sample", "Asks the client's model."),
    ("elicit", "Asks the client's user."),
    ("roots", "Asks for the client's roots."),
    ("ping_client", "Pings the client."),
    ("add_tool", "Adds a tool."),
    ("remove_tool", "Removes a tool."),
    ("add_prompt", "Adds a prompt."),
    ("storm", "Notifies many times that the tools changed."),
    ("update_resource", "Notifies that a resource changed."),
    ("grandchild", "Starts a process that leaves the group."),
    ("annotated", "Has annotations and a title; returns its arguments."),
    ("no_schema", "Has no input schema; returns its arguments."),
    ("task", "Becomes a task and answers after a while."),
    ("header_param", "Has an argument that travels as a header; returns its arguments."),
];

/// Tools that a server only has where its scenario names them.
const ON_REQUEST: [&str; 9] = [
    "late",
    "many",
    "no_schema",
    "overtake",
    "stderr_flood",
    "stray",
    "task",
    "tiny_items",
    "trickle",
];

/// Every built-in tool that a healthy server may have.
pub fn all() -> Vec<ToolEntry> {
    let healthy = TOOLS.iter().filter(|(name, _)| !ON_REQUEST.contains(name));
    healthy.map(|(name, description)| entry(name, description)).collect()
}

/// A built-in tool by name.
pub fn one(name: &str) -> Option<ToolEntry> {
    let (name, description) = TOOLS.iter().find(|(known, _)| *known == name)?;
    Some(entry(name, description))
}

fn entry(name: &str, description: &str) -> ToolEntry {
    let mut shown = json!({
        "name": name,
        "description": description,
        "inputSchema": input(name),
    });
    match name {
        "bad_structured" | "bad_structured_error" => {
            shown["outputSchema"] = json!({ "type": "object", "required": ["count"],
                "properties": { "count": { "type": "integer" } } });
        }
        "annotated" => {
            shown["title"] = json!("Annotated");
            shown["annotations"] = json!({ "readOnlyHint": true, "idempotentHint": true,
                "destructiveHint": false, "openWorldHint": false });
        }
        "task" => shown["execution"] = json!({ "taskSupport": "required" }),
        _ => {}
    }
    let mut shown = object(shown);
    let behaves = match name {
        "annotated" | "no_schema" | "header_param" => "echo",
        other => other,
    };
    if name == "no_schema" {
        shown.shift_remove("inputSchema");
    }
    ToolEntry { shown, behaves: behaves.to_owned(), result: None }
}

fn input(name: &str) -> Value {
    let number = json!({ "type": "integer", "minimum": 0 });
    let text = json!({ "type": "string" });
    let properties = match name {
        "sleep" => json!({ "ms": number }),
        "task" => {
            json!({ "ms": number, "ask": { "type": "boolean" }, "fail": { "type": "boolean" } })
        }
        "big" | "long_line" | "flood" | "stderr_flood" => json!({ "bytes": number }),
        "tiny_items" => json!({ "bytes": number, "item": text }),
        "deep" => json!({ "depth": number }),
        "many" => json!({ "bytes": number, "kind": text }),
        "progress" => json!({ "steps": number, "every_ms": number }),
        "drip" | "trickle" => json!({ "every_ms": number }),
        "notification_flood" | "storm" => json!({ "count": number }),
        "add_tool" | "remove_tool" | "add_prompt" => json!({ "name": text }),
        "late" => json!({ "answers": { "type": "boolean" }, "asks": { "type": "boolean" } }),
        "update_resource" => json!({ "uri": text }),
        "sample" | "elicit" => json!({ "message": text }),
        "header_param" => json!({ "region": { "type": "string", "x-mcp-header": "Region" } }),
        _ => json!({}),
    };
    json!({ "type": "object", "properties": properties })
}
