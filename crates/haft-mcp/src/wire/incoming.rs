//! Messages of a peer: a request, a notification, an answer. Payloads stay unmodified.

use haft_bounds::parse_error::describe;
use std::borrow::Cow;

use haft_bounds::effort;
use haft_bounds::json::Budget;
use serde::Deserialize;
use serde_json::value::RawValue;

/// One message, borrowed from its bytes.
#[derive(Debug, Clone)]
pub enum Incoming<'a> {
    /// The peer asks; `id` goes back untouched.
    Request {
        /// The peer's own id.
        id: &'a RawValue,
        /// The requested method.
        method: Cow<'a, str>,
        /// With what.
        params: Option<&'a RawValue>,
    },
    /// A notification of the peer.
    Notification {
        /// The notification's method.
        method: Cow<'a, str>,
        /// To what.
        params: Option<&'a RawValue>,
    },
    /// The peer answers with a result.
    Result {
        /// The id of our request.
        id: &'a RawValue,
        /// The answer.
        result: &'a RawValue,
    },
    /// The peer answers with an error.
    Error {
        /// The id of our request; a peer that could not read the request sends none.
        id: Option<&'a RawValue>,
        /// The error object.
        error: &'a RawValue,
    },
}

/// The reason why bytes are not a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(pub String);

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Reads one message. A key that occurs twice, or an answer that is both result and error, is
/// malformed: two readers could see two different messages in it.
pub fn parse(bytes: &[u8], budget: Budget) -> Result<Incoming<'_>, Malformed> {
    // Before anything else: a message beyond the budget costs no more than finding that out.
    budget.check(bytes).map_err(|excess| Malformed(excess.to_string()))?;
    parse_unchecked(bytes)
}

/// The id of a request that is refused for its size, so that the refusal reaches the waiting request.
pub(crate) fn request_id(bytes: &[u8]) -> Option<&RawValue> {
    match parse_unchecked(bytes) {
        Ok(Incoming::Request { id, .. }) => Some(id),
        Ok(Incoming::Notification { .. } | Incoming::Result { .. } | Incoming::Error { .. })
        | Err(_) => None,
    }
}

/// Reads one message that is within its budget.
pub(crate) fn parse_unchecked(bytes: &[u8]) -> Result<Incoming<'_>, Malformed> {
    effort::parsing(bytes);
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Malformed(format!("not UTF-8 (byte {})", error.valid_up_to())))?;
    let envelope: Envelope<'_> = serde_json::from_str(text)
        .map_err(|error| Malformed(format!("not a JSON-RPC message: {}", describe(&error))))?;
    let Envelope { id, method, params, result, error } = envelope;
    match (method, id, result, error) {
        (Some(method), Some(id), None, None) => Ok(Incoming::Request { id, method, params }),
        (Some(method), None, None, None) => Ok(Incoming::Notification { method, params }),
        (None, Some(id), Some(result), None) => Ok(Incoming::Result { id, result }),
        (None, id, None, Some(error)) => Ok(Incoming::Error { id, error }),
        (Some(_), _, _, _) => Err(Malformed("a request and an answer in one".into())),
        (None, _, Some(_), Some(_)) => Err(Malformed("a result and an error in one".into())),
        (None, None, Some(_), None) => Err(Malformed("an answer without an id".into())),
        (None, _, None, None) => Err(Malformed("neither a request nor an answer".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget { nodes_max: 100, depth_max: 64 };

    fn kind(json: &str) -> String {
        match parse(json.as_bytes(), BUDGET) {
            Ok(Incoming::Request { id, method, .. }) => format!("request {method} {id}"),
            Ok(Incoming::Notification { method, .. }) => format!("notification {method}"),
            Ok(Incoming::Result { id, result }) => format!("result {id} {result}"),
            Ok(Incoming::Error { id, .. }) => format!("error {:?}", id.map(RawValue::get)),
            Err(Malformed(why)) => format!("malformed: {why}"),
        }
    }

    #[test]
    fn messages_are_distinguished_and_payloads_kept() {
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#), r#"request ping "a""#);
        assert_eq!(kind(r#"{"method":"n\u0061me","params":{}}"#), "notification name");
        let result = r#"{"id":1,"result":{"b":12345678901234567890123,"a":1e400}}"#;
        assert_eq!(kind(result), r#"result 1 {"b":12345678901234567890123,"a":1e400}"#);
        assert_eq!(kind(r#"{"id":null,"error":{"code":1}}"#), "error None");
    }

    #[test]
    fn ambiguous_messages_are_refused() {
        for json in [
            r#"{"id":1,"id":2,"result":{}}"#,
            r#"{"id":1,"result":{},"error":{}}"#,
            r#"{"id":1,"result":{},"method":"x"}"#,
            r#"{"result":{}}"#,
            r#"{"id":1}"#,
            r"[]",
            r#"{"id":1,"result":{}} {}"#,
        ] {
            assert!(kind(json).starts_with("malformed"), "{json}: {}", kind(json));
        }
        let deep = format!(r#"{{"id":1,"result":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        assert_eq!(kind(&deep), "malformed: nested deeper than 64 levels");
        let wide = format!(r#"{{"id":1,"result":[{}0]}}"#, "0,".repeat(100));
        assert_eq!(kind(&wide), "malformed: more than 100 values and keys");
        assert!(
            matches!(parse(b"{\"id\":1,\"result\":\"\xff\"}", BUDGET), Err(Malformed(why)) if why.starts_with("not UTF-8"))
        );
    }
}
