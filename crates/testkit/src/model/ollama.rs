//! Ollama's own `/api/chat`, as the service writes it.

use serde_json::{Value, json};

use super::step::{Answer, pieces};

/// The answer as lines of a stream, without the end of it where there is none.
pub(super) fn stream(model: &Value, answer: &Answer) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |message: Value| lines.push(line(model, &message, &json!({"done": false})));
    for piece in answer.reasoning.as_deref().map(pieces).unwrap_or_default() {
        say(json!({"role": "assistant", "content": "", "thinking": piece}));
    }
    for piece in pieces(&answer.text) {
        say(json!({"role": "assistant", "content": piece}));
    }
    if !answer.calls.is_empty() {
        say(json!({"role": "assistant", "content": "", "tool_calls": calls(answer)}));
    }
    if answer.end.is_said() {
        lines.push(line(model, &json!({"role": "assistant", "content": ""}), &end(answer)));
    }
    lines
}

/// The same in one piece.
pub(super) fn whole(model: &Value, answer: &Answer) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text});
    if let Some(reasoning) = &answer.reasoning {
        message["thinking"] = json!(reasoning);
    }
    if !answer.calls.is_empty() {
        message["tool_calls"] = json!(calls(answer));
    }
    response(model, &message, &end(answer))
}

/// An error as the service writes it.
pub(super) fn error(message: &str) -> Value {
    json!({ "error": message })
}

/// Calls come whole and without ids. Arguments that are not JSON are sent as a string.
fn calls(answer: &Answer) -> Vec<Value> {
    let call = |call: &super::step::Call| {
        let arguments =
            serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
        json!({"function": {"name": call.name, "arguments": arguments}})
    };
    answer.calls.iter().map(call).collect()
}

fn line(model: &Value, message: &Value, end: &Value) -> String {
    format!("{}\n", response(model, message, end))
}

fn response(model: &Value, message: &Value, end: &Value) -> Value {
    let mut response =
        json!({"model": model, "created_at": "2026-01-01T00:00:00Z", "message": message});
    for (key, value) in end.as_object().into_iter().flatten() {
        response[key] = value.clone();
    }
    response
}

fn end(answer: &Answer) -> Value {
    let (input, output) = answer.usage;
    json!({"done": true, "done_reason": answer.stop.as_deref().unwrap_or("stop"),
           "prompt_eval_count": input, "eval_count": output, "total_duration": 1})
}
