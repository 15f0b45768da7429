//! The server behind every gateway: a few tools over stdin and stdout, as fast as pipes allow.

use std::io::{BufRead as _, BufReader, Write as _};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Failure;

/// The words a large answer is made of.
const PATTERN: &str = "The quick brown fox jumps over the lazy dog 0123456789. ";
const BUFFER_BYTES: usize = 256 * 1024;
/// JSON-RPC: the method does not exist.
const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the parameters are wrong.
const INVALID_PARAMS: i64 = -32602;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
}

/// Answers until its input ends.
pub(crate) fn run() -> Result<(), Failure> {
    let mut input = BufReader::with_capacity(BUFFER_BYTES, std::io::stdin().lock());
    let mut output = std::io::stdout().lock();
    let (mut line, mut answers) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let message: Message<'_> = serde_json::from_slice(&line)?;
        if let (Some(id), Some(method)) = (message.id, &message.method) {
            answer(&mut answers, id, method, &message.params)?;
        }
        // Requests that came together are answered together.
        if input.buffer().is_empty() {
            output.write_all(&answers)?;
            output.flush()?;
            answers.clear();
        }
    }
}

fn answer(
    out: &mut Vec<u8>,
    id: &RawValue,
    method: &str,
    params: &Value,
) -> Result<(), serde_json::Error> {
    let (key, value) = match result(method, params) {
        Ok(result) => ("result", result),
        Err((code, message)) => ("error", json!({ "code": code, "message": message })),
    };
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.get().as_bytes());
    out.extend_from_slice(format!(",\"{key}\":").as_bytes());
    serde_json::to_writer(&mut *out, &value)?;
    out.extend_from_slice(b"}\n");
    Ok(())
}

fn result(method: &str, params: &Value) -> Result<Value, (i64, String)> {
    match method {
        "initialize" => Ok(json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "bench-backend", "version": "0.1.0" },
        })),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": [
            tool("echo", "Echo the text back.", "text", "string"),
            tool("blob", "Return so many bytes of text.", "bytes", "integer"),
        ]})),
        "tools/call" => {
            let text = call(params)?;
            Ok(json!({ "content": [{ "type": "text", "text": text }] }))
        }
        _ => Err((METHOD_NOT_FOUND, format!("Method not found: {method}"))),
    }
}

fn call(params: &Value) -> Result<String, (i64, String)> {
    let arguments = &params["arguments"];
    match params["name"].as_str() {
        Some("echo") => Ok(arguments["text"].as_str().unwrap_or_default().to_owned()),
        Some("blob") => {
            let bytes = arguments["bytes"].as_u64().unwrap_or_default();
            let bytes = usize::try_from(bytes).unwrap_or_default();
            let mut text = PATTERN.repeat(bytes / PATTERN.len() + 1);
            text.truncate(bytes);
            Ok(text)
        }
        other => Err((INVALID_PARAMS, format!("Unknown tool: {}", other.unwrap_or("none")))),
    }
}

fn tool(name: &str, description: &str, argument: &str, kind: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": { argument: { "type": kind } },
            "required": [argument],
            "additionalProperties": false,
        },
    })
}
