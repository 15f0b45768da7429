//! The kind of a result (2026-07-28): finished, a question to the client, or a task.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::declared;
use crate::error::RequestError;

const KEY: &[u8] = br#""resultType""#;
/// Largest part of an unknown type that an error shows.
const SHOWN_BYTES_MAX: usize = 64;

/// The kind of a server's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultKind {
    /// The result itself.
    Complete,
    /// Questions that the client has to answer first.
    InputRequired,
    /// A handle of work that ends later.
    Task,
}

/// Returns the kind of a result. A type that the protocol does not have is an error: its fields could mean anything.
pub(super) fn kind(result: &RawValue) -> Result<ResultKind, RequestError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed<'a> {
        #[serde(borrow, default)]
        result_type: Option<Cow<'a, str>>,
    }
    let text = result.get();
    if !text.starts_with('{') || is_plainly_complete(text.as_bytes()) {
        return Ok(ResultKind::Complete);
    }
    let typed: Typed<'_> = serde_json::from_str(text).map_err(|error| {
        RequestError::protocol(format!("the `resultType` of the result cannot be read: {error}"))
    })?;
    match typed.result_type.as_deref() {
        None | Some("complete") => Ok(ResultKind::Complete),
        Some("input_required") => Ok(ResultKind::InputRequired),
        Some("task") => Ok(ResultKind::Task),
        Some(other) => Err(RequestError::protocol(format!(
            "the result has the unknown `resultType` `{}`",
            declared::cut(other, SHOWN_BYTES_MAX)
        ))),
    }
}

/// Returns true if the text shows that the result is complete. A large result is not parsed to find that out: without
/// an escape, the key would stand there as it is.
fn is_plainly_complete(text: &[u8]) -> bool {
    if memmem::find(text, br"\u").is_some() {
        return false;
    }
    memmem::find_iter(text, KEY).all(|at| {
        let value = text[at + KEY.len()..].trim_ascii_start().strip_prefix(b":");
        value.is_some_and(|value| value.trim_ascii_start().starts_with(br#""complete""#))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Result<ResultKind, String> {
        let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
        kind(&raw).map_err(|error| error.to_string())
    }

    #[test]
    fn the_kind_of_a_result_is_read_from_its_top_level() {
        for complete in [
            "{}",
            "7",
            r#"["resultType"]"#,
            r#"{"resultType" : "complete"}"#,
            r#"{"content":[{"text":"\"resultType\":\"task\""}],"resultType":"complete"}"#,
            r#"{"structuredContent":{"resultType":"banana"}}"#,
            r#"{"content":[{"text":"\u00e4"}],"resultType":"complete"}"#,
        ] {
            assert_eq!(of(complete), Ok(ResultKind::Complete), "{complete}");
        }
        assert_eq!(of(r#"{"resultType":"input_required"}"#), Ok(ResultKind::InputRequired));
        assert_eq!(of(r#"{"result\u0054ype":"task"}"#), Ok(ResultKind::Task));
    }

    #[test]
    fn an_unknown_kind_is_an_error() {
        assert_eq!(
            of(r#"{"resultType":"banana"}"#),
            Err("the result has the unknown `resultType` `banana`".to_owned())
        );
        assert!(of(r#"{"resultType":7}"#).is_err());
        assert!(of(r#"{"resultType":"complete","resultType":"task"}"#).is_err());
    }
}
