//! Walks a JSON text and redacts its strings in place. Nothing else is parsed or rewritten, so
//! numbers, order, repeated keys and spacing survive.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{MASK, Redactor, keys};

/// Redacts every string of `json`, which must be valid.
pub(super) fn redact<'t>(redactor: &Redactor, json: &'t str) -> Cow<'t, str> {
    let mut redacted = String::new();
    let mut copied = 0;
    let mut at = 0;
    let mut under_secret_key = false;
    while let Some(quote) = json[at..].find('"') {
        let between = &json[at..at + quote];
        let start = at + quote;
        at = start + string_len(&json[start..]);
        let string = &json[start..at];
        // The secret is the key's own value, so a bracket or a comma between them ends its reach.
        let is_secret = under_secret_key && between.trim() == ":";
        let is_key = json[at..].trim_start().starts_with(':');
        let text = unescape(string);
        under_secret_key = redactor.0.by_key && is_key && keys::is_secret(text.as_bytes());

        let replacement = if is_secret {
            Cow::Borrowed(MASK)
        } else {
            match redact_text(redactor, &text) {
                Cow::Borrowed(_) => continue,
                Cow::Owned(changed) => Cow::Owned(changed),
            }
        };
        redacted.push_str(&json[copied..start]);
        redacted.push_str(&serde_json::Value::from(replacement).to_string());
        copied = at;
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    redacted.push_str(&json[copied..]);
    Cow::Owned(redacted)
}

/// Redacts the text of one string. Tools often answer with JSON inside a string, and the keys in
/// there count as well; each level of escaping makes the text shorter, so this ends.
fn redact_text<'t>(redactor: &Redactor, text: &'t str) -> Cow<'t, str> {
    let looks_like_json = text.trim_start().starts_with(['{', '[']);
    if !looks_like_json || serde_json::from_str::<&RawValue>(text).is_err() {
        return redactor.text(text);
    }
    match redactor.json(text) {
        Cow::Borrowed(_) => redactor.text(text),
        Cow::Owned(inner) => Cow::Owned(redactor.text(&inner).into_owned()),
    }
}

/// The content of a quoted JSON string. An invalid string (a lone surrogate) is used as spelled,
/// which is still searched for secrets.
fn unescape(string: &str) -> Cow<'_, str> {
    let inside = string.trim_matches('"');
    if inside.contains('\\') {
        serde_json::from_str(string).map_or(Cow::Borrowed(inside), Cow::Owned)
    } else {
        Cow::Borrowed(inside)
    }
}

/// The length in bytes of the JSON string at the start of `json`, both quotes included.
pub fn string_len(json: &str) -> usize {
    let bytes = json.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}
