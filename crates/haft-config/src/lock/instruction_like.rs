//! Strings that address the model instead of describing a tool, and characters that a reviewer cannot see.

use std::collections::BTreeSet;

use haft_text::is_deceptive;
use serde_json::Value;

/// Phrases of published attacks on descriptions, in lower case, with single spaces.
const PHRASES: [&str; 36] = [
    "<important>",
    "<system>",
    "[system]",
    "system prompt",
    "ignore previous",
    "ignore all",
    "ignore any",
    "ignore the above",
    "disregard",
    "override your",
    "forget your",
    "do not tell",
    "don't tell",
    "do not mention",
    "don't mention",
    "do not inform",
    "without telling",
    "without asking",
    "do not ask",
    "keep this secret",
    "hide this",
    "you must",
    "you should always",
    "always call",
    "always use this tool",
    "before using any",
    "before using this tool",
    "before calling",
    "instead of the",
    "send the contents",
    "read the file",
    "pass its content",
    ".ssh",
    "id_rsa",
    "api key",
    "credentials",
];

/// The first phrase of a string that addresses the model.
pub(super) fn phrase(text: &str) -> Option<&'static str> {
    let words: Vec<String> = text
        .split(|c: char| c.is_whitespace() || is_deceptive(c))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let text = words.join(" ").replace('\u{2019}', "'");
    PHRASES.into_iter().find(|phrase| text.contains(phrase))
}

/// The hidden and bidirectional characters of a string, such as `U+202E`.
pub(super) fn hidden(text: &str) -> BTreeSet<String> {
    let is_hidden = |c: &char| is_deceptive(*c) && !matches!(c, '\n' | '\r' | '\t');
    text.chars().filter(is_hidden).map(|c| format!("U+{:04X}", u32::from(c))).collect()
}

/// Every string inside a value, keys included, with its path.
pub(super) fn strings<'v>(value: &'v Value, path: &str, found: &mut Vec<(String, &'v str)>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => found.push((path.to_owned(), text)),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                strings(item, &format!("{path}.{at}"), found);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                found.push((path.to_owned(), key));
                strings(value, &format!("{path}.{key}"), found);
            }
        }
    }
}
