//! OpenAI's chat completions, as the service writes them.

use serde_json::{Value, json};

use super::step::{Answer, End, Ids, pieces};

/// The answer as lines of a stream, without the end of it where there is none.
pub(super) fn stream(model: &Value, answer: &Answer, first_call: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        lines.push(chunk(model, &json!([choice]), &Value::Null));
    };
    say(json!({"role": "assistant", "content": "", "refusal": null}), Value::Null);
    for piece in answer.reasoning.as_deref().map(pieces).unwrap_or_default() {
        say(json!({"reasoning_content": piece}), Value::Null);
    }
    for piece in pieces(&answer.text) {
        say(json!({"content": piece}), Value::Null);
    }
    for (at, call) in answer.calls.iter().enumerate() {
        let index = if answer.ids == Ids::AllFirst { 0 } else { at };
        let mut begin = json!({"index": index, "id": id(first_call + at), "type": "function",
                               "function": {"name": call.name, "arguments": ""}});
        if answer.ids == Ids::Missing {
            begin.as_object_mut().expect("an object").remove("id");
        }
        say(json!({"tool_calls": [begin]}), Value::Null);
        for piece in pieces(&call.arguments) {
            let more = json!({"index": index, "function": {"arguments": piece}});
            say(json!({"tool_calls": [more]}), Value::Null);
        }
    }
    if !answer.end.is_said() {
        return lines;
    }
    say(json!({}), json!(stop(answer)));
    lines.push(chunk(model, &json!([]), &usage(answer)));
    if answer.end == End::Proper {
        lines.push("data: [DONE]\n\n".to_owned());
    }
    lines
}

/// The same in one piece.
pub(super) fn whole(model: &Value, answer: &Answer, first_call: usize) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text, "refusal": null});
    if !answer.calls.is_empty() {
        let call = |(at, call): (usize, &super::step::Call)| {
            json!({"id": id(first_call + at), "type": "function",
                   "function": {"name": call.name, "arguments": call.arguments}})
        };
        message["tool_calls"] = answer.calls.iter().enumerate().map(call).collect();
    }
    if let Some(reasoning) = &answer.reasoning {
        message["reasoning_content"] = json!(reasoning);
    }
    json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": model,
           "choices": [{"index": 0, "message": message, "logprobs": null,
                        "finish_reason": stop(answer)}],
           "usage": usage(answer)})
}

/// An error as the service writes it.
pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 | 403 => "authentication_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}

fn chunk(model: &Value, choices: &Value, usage: &Value) -> String {
    let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk",
                       "created": 1_700_000_000, "model": model, "system_fingerprint": "fp_1",
                       "choices": choices, "usage": usage});
    format!("data: {chunk}\n\n")
}

fn id(number: usize) -> String {
    format!("call_scripted{number}")
}

fn stop(answer: &Answer) -> &str {
    let usual = if answer.calls.is_empty() { "stop" } else { "tool_calls" };
    answer.stop.as_deref().unwrap_or(usual)
}

fn usage(answer: &Answer) -> Value {
    let (input, output) = answer.usage;
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}
