//! Anthropic's messages, as the service writes them.

use serde_json::{Value, json};

use super::step::{Answer, Call, pieces};

/// The answer as events of a stream, without the end of it where there is none.
pub(super) fn stream(model: &Value, answer: &Answer, first_call: usize) -> Vec<String> {
    let (input, output) = answer.usage;
    let mut events = vec![
        event(&json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [],
            "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": input, "output_tokens": 1}}})),
        event(&json!({"type": "ping"})),
    ];
    let mut blocks = Blocks { events: &mut events, index: 0 };
    if let Some(reasoning) = &answer.reasoning {
        let thinks = |piece: &str| json!({"type": "thinking_delta", "thinking": piece});
        let mut deltas: Vec<Value> = pieces(reasoning).into_iter().map(thinks).collect();
        deltas.push(json!({"type": "signature_delta", "signature": "c2lnbmVk"}));
        blocks.add(&json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
    }
    if !answer.text.is_empty() {
        let says = |piece: &str| json!({"type": "text_delta", "text": piece});
        let deltas = pieces(&answer.text).into_iter().map(says).collect();
        blocks.add(&json!({"type": "text", "text": ""}), deltas);
    }
    for (at, call) in answer.calls.iter().enumerate() {
        let writes = |piece: &str| json!({"type": "input_json_delta", "partial_json": piece});
        // The service begins with an empty piece.
        let written = std::iter::once("").chain(pieces(&call.arguments));
        let begun = json!({"type": "tool_use", "id": id(first_call + at), "name": call.name,
                           "input": {}});
        blocks.add(&begun, written.map(writes).collect());
    }
    if !answer.end.is_said() {
        return events;
    }
    events.push(event(&json!({"type": "message_delta",
                              "delta": {"stop_reason": stop(answer), "stop_sequence": null},
                              "usage": {"output_tokens": output}})));
    events.push(event(&json!({"type": "message_stop"})));
    events
}

/// The same in one piece. Arguments that are not JSON are sent as a string.
pub(super) fn whole(model: &Value, answer: &Answer, first_call: usize) -> Value {
    let mut content = Vec::new();
    if let Some(reasoning) = &answer.reasoning {
        content.push(json!({"type": "thinking", "thinking": reasoning, "signature": "c2lnbmVk"}));
    }
    if !answer.text.is_empty() {
        content.push(json!({"type": "text", "text": answer.text}));
    }
    content.extend(answer.calls.iter().enumerate().map(|(at, Call { name, arguments })| {
        let input = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
        json!({"type": "tool_use", "id": id(first_call + at), "name": name, "input": input})
    }));
    let (input, output) = answer.usage;
    json!({"id": "msg_1", "type": "message", "role": "assistant", "model": model,
           "content": content, "stop_reason": stop(answer), "stop_sequence": null,
           "usage": {"input_tokens": input, "output_tokens": output}})
}

/// An error as the service writes it.
pub(super) fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

struct Blocks<'e> {
    events: &'e mut Vec<String>,
    index: usize,
}

impl Blocks<'_> {
    fn add(&mut self, begin: &Value, deltas: Vec<Value>) {
        let index = self.index;
        let start = json!({"type": "content_block_start", "index": index, "content_block": begin});
        self.events.push(event(&start));
        for delta in deltas {
            let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
            self.events.push(event(&delta));
        }
        self.events.push(event(&json!({"type": "content_block_stop", "index": index})));
        self.index += 1;
    }
}

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().expect("a type"))
}

fn id(number: usize) -> String {
    format!("toolu_scripted{number}")
}

fn stop(answer: &Answer) -> &str {
    let usual = if answer.calls.is_empty() { "end_turn" } else { "tool_use" };
    answer.stop.as_deref().unwrap_or(usual)
}
