//! Tools that differ in what they return.

use serde_json::{Value, json};

use crate::call::{Call, Outcome};

/// A transparent pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
/// An empty audio file.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

/// A result with the same value as structured content and as text.
pub fn both(value: &Value) -> Outcome {
    Outcome::Result(json!({
        "content": [{ "type": "text", "text": value.to_string() }],
        "structuredContent": value,
    }))
}

/// The arguments.
pub fn echo(call: &Call) -> Outcome {
    match &call.params["arguments"] {
        Value::Null => both(&json!({})),
        arguments => both(arguments),
    }
}

/// Every kind of content, in the order of the specification.
pub fn every() -> Outcome {
    Outcome::Result(json!({ "content": [
        { "type": "text", "text": "a text" },
        { "type": "image", "data": PNG, "mimeType": "image/png" },
        { "type": "audio", "data": WAV, "mimeType": "audio/wav" },
        { "type": "resource_link", "uri": "test://static-text", "name": "static-text",
            "mimeType": "text/plain" },
        { "type": "resource", "resource": { "uri": "test://static-text",
            "mimeType": "text/plain", "text": "This is a text resource." } },
        { "type": "resource", "resource": { "uri": "test://static-binary",
            "mimeType": "application/octet-stream", "blob": "AAEC/w==" } },
    ] }))
}

/// An unknown kind of content between two text blocks.
pub fn unknown() -> Outcome {
    Outcome::Result(json!({ "content": [
        { "type": "text", "text": "before" },
        { "type": "hologram", "data": { "voxels": [1, 2, 3] } },
        { "type": "text", "text": "after" },
    ] }))
}

/// A failed tool.
pub fn fail() -> Outcome {
    Outcome::Result(json!({ "isError": true, "content": [
        { "type": "text", "text": "the first reason" },
        { "type": "text", "text": "the second reason" },
    ] }))
}

/// Structured content that breaks the schema of the tool.
pub fn bad_structured(is_error: bool) -> Outcome {
    let mut result = json!({
        "content": [{ "type": "text", "text": "count: many" }],
        "structuredContent": { "count": "many" },
    });
    if is_error {
        result["isError"] = json!(true);
    }
    Outcome::Result(result)
}

/// Numbers beyond 64 bits, an order of keys, and unknown fields.
pub fn big_numbers() -> Outcome {
    let structured = r#"{"b":12345678901234567890123,"a":0.1000000000000000055511151231257827}"#;
    Outcome::ResultText(format!(
        r#"{{"content":[{{"type":"text","text":"numbers","x-unknown":{{"b":1,"a":2}}}}],"structuredContent":{structured},"resultType":"complete","x-unknown":true}}"#
    ))
}

/// Objects in objects. As text, because a value of great depth overflows the stack.
pub fn deep(depth: usize) -> Outcome {
    let open = r#"{"n":"#.repeat(depth);
    let close = "}".repeat(depth);
    Outcome::ResultText(format!(
        r#"{{"content":[{{"type":"text","text":"deep"}}],"structuredContent":{open}1{close},"resultType":"complete"}}"#
    ))
}
