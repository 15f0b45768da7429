//! The MCP server behind Haft: one tool that returns its text, over stdin and stdout.

use std::io::{BufRead as _, Write as _};

use anyhow::Result;
use serde_json::{Value, json};

/// Answers until its input ends.
pub(crate) fn run() -> Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        if message["id"].is_null() {
            continue;
        }
        let answer = if let Some(result) = result(&message) {
            json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })
        } else {
            let error = json!({ "code": -32601, "message": "Method not found" });
            json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })
        };
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

fn result(message: &Value) -> Option<Value> {
    match message["method"].as_str()? {
        "initialize" => Some(json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "backend", "version": "0" },
        })),
        "ping" => Some(json!({})),
        "tools/list" => Some(json!({ "tools": [{
            "name": "echo",
            "description": "Return the text.",
            "inputSchema": {
                "type": "object",
                "properties": { "text": { "type": "string" } },
                "required": ["text"],
                "additionalProperties": false,
            },
        }]})),
        "tools/call" => {
            let text = &message["params"]["arguments"]["text"];
            Some(json!({ "content": [{ "type": "text", "text": text }] }))
        }
        _ => None,
    }
}
