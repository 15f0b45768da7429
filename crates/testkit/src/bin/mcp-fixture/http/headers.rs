//! The headers a modern request repeats its body in.

use axum::http::HeaderMap;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::modern;
use crate::server::Server;

/// Checks that headers and body agree.
pub fn check(server: &Server, headers: &HeaderMap, message: &Value) -> Result<(), String> {
    let params = &message["params"];
    let Some(method) = message["method"].as_str() else { return Ok(()) };
    if message.get("id").is_none() {
        return Ok(());
    }
    // A request without a revision is refused for that, later.
    if let Some(version) = params["_meta"][modern::PROTOCOL_VERSION].as_str() {
        same(headers, "mcp-protocol-version", version)?;
        same(headers, "mcp-method", method)?;
    }
    let name = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        "tasks/get" | "tasks/update" | "tasks/cancel" => params["taskId"].as_str(),
        _ => None,
    };
    if let Some(name) = name {
        same(headers, "mcp-name", name)?;
    }
    if method != "tools/call" {
        return Ok(());
    }
    let tools = server.tools.lock();
    let Some(tool) = tools.iter().find(|tool| tool.shown.get("name") == Some(&params["name"]))
    else {
        return Ok(());
    };
    let schema = tool.shown.get("inputSchema").unwrap_or(&Value::Null);
    same_arguments(headers, &schema["properties"], &params["arguments"])
}

fn same_arguments(headers: &HeaderMap, properties: &Value, args: &Value) -> Result<(), String> {
    let properties = properties.as_object().into_iter().flatten();
    for (name, schema) in properties {
        if let Some(header) = schema["x-mcp-header"].as_str() {
            let header = format!("mcp-param-{}", header.to_lowercase());
            match &args[name] {
                Value::Null if headers.contains_key(&header) => {
                    return Err(format!("`{header}` without `{name}`"));
                }
                Value::Null => {}
                Value::String(text) => same(headers, &header, text)?,
                other => same(headers, &header, &other.to_string())?,
            }
        }
        same_arguments(headers, &schema["properties"], &args[name])?;
    }
    Ok(())
}

fn same(headers: &HeaderMap, name: &str, wanted: &str) -> Result<(), String> {
    let value = headers.get(name).ok_or_else(|| format!("`{name}` is missing"))?;
    let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
    let wrapped = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let value = match wrapped {
        Some(wrapped) => {
            let bytes = BASE64_STANDARD.decode(wrapped).map_err(|error| error.to_string())?;
            String::from_utf8(bytes).map_err(|error| error.to_string())?
        }
        None => value,
    };
    if value == wanted {
        return Ok(());
    }
    Err(format!("`{name}` is `{value}`, the body has `{wanted}`"))
}
