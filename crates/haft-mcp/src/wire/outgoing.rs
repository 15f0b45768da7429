//! Our messages. Payloads are JSON text already and are inserted unmodified.

use std::fmt::Write as _;

use serde_json::value::RawValue;

use crate::error::RpcError;

/// A request. `params` is JSON text.
pub fn request(id: u64, method: &str, params: &str) -> String {
    request_with(id, method, params.len(), |line| line.push_str(params))
}

/// A request whose parameters `push_params` appends, which take about `params_bytes`.
pub(crate) fn request_with(
    id: u64,
    method: &str,
    params_bytes: usize,
    push_params: impl FnOnce(&mut String),
) -> String {
    // Written by hand: the parts are JSON already, and this is on the path of every call.
    let mut line = String::with_capacity(params_bytes + method.len() + 64);
    line.push_str(r#"{"jsonrpc":"2.0","id":"#);
    // Writing to a string cannot fail.
    let _ = write!(line, "{id}");
    line.push_str(r#","method":"#);
    push_quoted(&mut line, method);
    line.push_str(r#","params":"#);
    push_params(&mut line);
    line.push('}');
    line
}

/// A notification. `params` is JSON text.
pub fn notification(method: &str, params: &str) -> String {
    let mut line = String::with_capacity(params.len() + method.len() + 48);
    line.push_str(r#"{"jsonrpc":"2.0","method":"#);
    push_quoted(&mut line, method);
    line.push_str(r#","params":"#);
    line.push_str(params);
    line.push('}');
    line
}

/// The answer to a request of the peer, under the peer's own id.
pub fn response(id: &RawValue, result: &RawValue) -> String {
    let (id, result) = (id.get(), result.get());
    let mut message = String::with_capacity(id.len() + result.len() + 40);
    message.push_str(r#"{"jsonrpc":"2.0","id":"#);
    message.push_str(id);
    message.push_str(r#","result":"#);
    message.push_str(result);
    message.push('}');
    message
}

/// As [`response`], with fields before the first one of the result. `added` is JSON text with its comma.
pub(crate) fn response_with(id: &RawValue, result: &RawValue, added: &str) -> String {
    if added.is_empty() {
        return response(id, result);
    }
    let (id, rest) = (id.get(), result.get().strip_prefix('{').unwrap_or_default());
    let mut message = String::with_capacity(id.len() + added.len() + rest.len() + 40);
    message.push_str(r#"{"jsonrpc":"2.0","id":"#);
    message.push_str(id);
    message.push_str(r#","result":{"#);
    message.push_str(added);
    message.push_str(rest);
    message.push('}');
    message
}

/// A result with fields before its first one.
#[cfg(test)]
pub(crate) fn result_with(result: &RawValue, added: &str) -> String {
    let message = response_with(RawValue::NULL, result, added);
    let result = message.strip_prefix(r#"{"jsonrpc":"2.0","id":null,"result":"#).unwrap();
    result.strip_suffix('}').unwrap().to_owned()
}

/// The empty success response.
pub fn empty_response(id: &RawValue) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

/// The refusal of a request of the peer, under the peer's own id.
pub fn error_response(id: &RawValue, error: &RpcError) -> String {
    // An error is two plain fields and valid JSON; serializing it cannot fail.
    let error = serde_json::to_string(error).unwrap_or_else(|_| "{\"code\":-32603}".to_owned());
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

/// A message on one line, for line-based transports. Payloads are forwarded unmodified and may have line ends between
/// their parts: their author could end our message there and begin another.
pub fn on_one_line(message: String) -> String {
    if memchr::memchr2(b'\n', b'\r', message.as_bytes()).is_none() {
        return message;
    }
    // Inside strings JSON has no line ends, so every one is between parts.
    message.replace(['\n', '\r'], " ")
}

/// Adds `text` as a JSON string.
pub(crate) fn push_quoted(line: &mut String, text: &str) {
    let must_escape = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    if text.bytes().any(must_escape) {
        line.push_str(&serde_json::Value::from(text).to_string());
        return;
    }
    line.push('"');
    line.push_str(text);
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_no_line_ends() {
        let params = "{\"a\":\n{\"id\":1,\"method\":\"evil\"}\r\n,\"b\":\"\\n\"}";
        let line = on_one_line(notification("x", params));
        assert!(!line.contains(['\n', '\r']));
        let (was, is): (serde_json::Value, serde_json::Value) =
            (serde_json::from_str(params).unwrap(), serde_json::from_str(&line).unwrap());
        assert_eq!(is["params"], was);
    }

    #[test]
    fn messages_are_json_rpc() {
        assert_eq!(
            request(7, "tools/call", r#"{"b":1,"a":2}"#),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"b":1,"a":2}}"#
        );
        assert_eq!(notification("a\"b", "{}"), r#"{"jsonrpc":"2.0","method":"a\"b","params":{}}"#);
        let id: Box<RawValue> = serde_json::from_str("\"x\"").unwrap();
        assert_eq!(response(&id, &id), r#"{"jsonrpc":"2.0","id":"x","result":"x"}"#);
        assert_eq!(
            error_response(&id, &RpcError::new(-32601, "no")),
            r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"no"}}"#
        );
    }
}
