//! Assembles the calls of an answer in OpenAI's format from the pieces of the stream.
//!
//! Services with this format differ in what they omit: the index of a call, its id, or both; some
//! give every call the first index. Genai drops calls without an index and joins those of one id.

use genai::chat::ToolCall;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Maximum combined size of the arguments of all calls.
const ARGUMENTS_BYTES_MAX: usize = 16 << 20;

/// Maximum number of calls in one answer.
pub(super) const CALLS_MAX: usize = 1000;

/// The reason why an answer is abandoned.
pub(super) fn too_many() -> String {
    format!("it calls more than {CALLS_MAX} tools at once")
}

/// The calls so far.
#[derive(Default)]
pub(super) struct ToolCallAccumulator {
    calls: Vec<Call>,
    bytes: usize,
}

#[derive(Default)]
struct Call {
    number: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl ToolCallAccumulator {
    /// Adds a piece of a call.
    pub(super) fn push(&mut self, piece: &Value) -> Result<(), String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let function = &piece["function"];
        let (id, name) = (text(&piece["id"]), text(&function["name"]));
        let number = piece["index"].as_u64();
        let at = match self.calls.iter().rposition(|call| call.goes_on(number, &id, &name)) {
            Some(at) => at,
            // Such as `{}`, which is not a call.
            None if name.is_empty() => return Ok(()),
            None if self.calls.len() >= CALLS_MAX => return Err(too_many()),
            None => {
                self.calls.push(Call { number, ..Call::default() });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        let before = call.arguments.len();
        match &function["arguments"] {
            Value::String(more) => call.arguments.push_str(more),
            Value::Null => {}
            // A value in place of a string with that value.
            whole => call.arguments = whole.to_string(),
        }
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = name;
        }
        self.bytes += call.arguments.len().saturating_sub(before);
        if self.bytes > ARGUMENTS_BYTES_MAX {
            return Err("it has no end".to_owned());
        }
        Ok(())
    }

    /// The calls in genai's form; a missing id is empty.
    pub(super) fn take(&mut self) -> Vec<ToolCall> {
        let calls = std::mem::take(&mut self.calls).into_iter();
        calls
            .map(|call| ToolCall {
                call_id: call.id,
                fn_name: call.name,
                fn_arguments: Value::String(call.arguments),
                thought_signatures: None,
            })
            .collect()
    }
}

impl Call {
    /// Returns true if a piece with these belongs to this call.
    fn goes_on(&self, number: Option<u64>, id: &str, name: &str) -> bool {
        if self.number != number {
            return false;
        }
        if !id.is_empty() && !self.id.is_empty() && id != self.id {
            return false;
        }
        // Some repeat the name with each piece; a whole call that is named again is another one.
        name.is_empty() || !self.is_whole()
    }

    fn is_whole(&self) -> bool {
        serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chunk(pieces: &[Value]) -> Vec<(String, String, String)> {
        let mut calls = ToolCallAccumulator::default();
        for piece in pieces {
            calls.push(piece).unwrap();
        }
        let told = |call: ToolCall| {
            (call.call_id, call.fn_name, call.fn_arguments.as_str().unwrap().to_owned())
        };
        calls.take().into_iter().map(told).collect()
    }

    fn call(id: &str, arguments: &str) -> (String, String, String) {
        (id.to_owned(), "f".to_owned(), arguments.to_owned())
    }

    #[test]
    fn pieces_find_their_call_whatever_is_left_out() {
        let begin = |mut more: Value| {
            more["function"] = json!({"name": "f", "arguments": ""});
            more
        };
        let rest = |mut more: Value, arguments: &str| {
            more["function"] = json!({"arguments": arguments});
            more
        };
        let whole = |mut more: Value, arguments: &str| {
            more["function"] = json!({"name": "f", "arguments": arguments});
            more
        };
        // As OpenAI sends it, two at a time.
        let told = chunk(&[
            begin(json!({"index": 0, "id": "a"})),
            begin(json!({"index": 1, "id": "b"})),
            rest(json!({"index": 0}), "[1"),
            rest(json!({"index": 1}), "[2]"),
            rest(json!({"index": 0}), "]"),
        ]);
        assert_eq!(told, [call("a", "[1]"), call("b", "[2]")]);
        // Without numbers, or with such that are none.
        for number in [json!({}), json!({"index": null}), json!({"index": -1})] {
            let told = chunk(&[
                whole(number.clone(), "[1]"),
                begin(number.clone()),
                rest(number.clone(), "[2"),
                rest(number, "]"),
            ]);
            assert_eq!(told, [call("", "[1]"), call("", "[2]")]);
        }
        // One id or none for all, and every call the first.
        for id in ["same", ""] {
            for second in [0, 1] {
                let told = chunk(&[
                    whole(json!({"index": 0, "id": id}), "[1]"),
                    whole(json!({"index": second, "id": id}), "[2]"),
                ]);
                assert_eq!(told, [call(id, "[1]"), call(id, "[2]")]);
            }
        }
        let told = chunk(&[
            begin(json!({"index": 0, "id": "a"})),
            begin(json!({"index": 0, "id": "b"})),
            rest(json!({"index": 0, "id": "b"}), "{}"),
        ]);
        assert_eq!(told, [call("a", ""), call("b", "{}")]);
        // The name again with each piece.
        let told = chunk(&[
            whole(json!({"index": 0, "id": "a"}), "[1"),
            whole(json!({"index": 0, "id": "a"}), "]"),
        ]);
        assert_eq!(told, [call("a", "[1]")]);
        // A value instead of a string, and a piece that is not a call.
        let told = chunk(&[
            json!({"index": 0, "function": {"name": "f", "arguments": {"a": 1}}}),
            json!({}),
            json!(3),
        ]);
        assert_eq!(told, [call("", r#"{"a":1}"#)]);
    }

    #[test]
    fn arguments_have_a_limit() {
        let mut calls = ToolCallAccumulator::default();
        let piece = json!({"function": {"name": "f", "arguments": "x".repeat(1 << 20)}});
        let ended = (0..100).find_map(|_| calls.push(&piece).err());
        assert_eq!(ended.as_deref(), Some("it has no end"));
    }
}
