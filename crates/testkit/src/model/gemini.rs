//! Gemini's `generateContent`, as the service writes it.

use serde_json::{Value, json};

use super::step::{Answer, pieces};

/// The answer as lines of a stream, without the end of it where there is none.
pub(super) fn stream(answer: &Answer) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in answer.reasoning.as_deref().map(pieces).unwrap_or_default() {
        lines.push(line(&json!([{"text": piece, "thought": true}]), &json!({}), answer));
    }
    for piece in pieces(&answer.text) {
        lines.push(line(&json!([{"text": piece}]), &json!({}), answer));
    }
    if !answer.calls.is_empty() {
        lines.push(line(&json!(calls(answer)), &json!({}), answer));
    }
    if answer.end.is_said() {
        lines.push(line(&json!([{"text": ""}]), &json!({"finishReason": stop(answer)}), answer));
    }
    lines
}

/// The same in one piece.
pub(super) fn whole(answer: &Answer) -> Value {
    let mut parts = Vec::new();
    if let Some(reasoning) = &answer.reasoning {
        parts.push(json!({"text": reasoning, "thought": true}));
    }
    if !answer.text.is_empty() {
        parts.push(json!({"text": answer.text}));
    }
    parts.extend(calls(answer));
    response(&json!(parts), &json!({"finishReason": stop(answer)}), answer)
}

/// An error as the service writes it.
pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    };
    json!({"error": {"code": status, "message": message, "status": kind}})
}

/// Calls come whole, without ids, each with a signature. Arguments that are not JSON are sent as a string.
fn calls(answer: &Answer) -> Vec<Value> {
    let call = |call: &super::step::Call| {
        let args = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
        json!({"functionCall": {"name": call.name, "args": args}, "thoughtSignature": "c2lnbmVk"})
    };
    answer.calls.iter().map(call).collect()
}

fn line(parts: &Value, end: &Value, answer: &Answer) -> String {
    format!("data: {}\r\n\r\n", response(parts, end, answer))
}

fn response(parts: &Value, end: &Value, answer: &Answer) -> Value {
    let (input, output) = answer.usage;
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    for (key, value) in end.as_object().into_iter().flatten() {
        candidate[key] = value.clone();
    }
    json!({"candidates": [candidate], "modelVersion": "scripted", "responseId": "r1",
           "usageMetadata": {"promptTokenCount": input, "candidatesTokenCount": output,
                             "totalTokenCount": input + output}})
}

/// The format has `STOP` also for tool calls.
fn stop(answer: &Answer) -> &str {
    answer.stop.as_deref().unwrap_or("STOP")
}
