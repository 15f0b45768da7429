//! The values of a lock file: strings that show what they hold, and JSON laid out for line-by-line comparison.

use std::fmt::Write as _;

use haft_text::{is_deceptive, printable_json};
use serde_json::Value;
use toml_edit::Key;

use super::canonical::sorted;

/// Fields that are written as strings. All others are written as JSON.
const TEXT_FIELDS: [&str; 5] = ["title", "description", "text", "name", "mimeType"];
/// JSON up to this length stays on one line.
const LINE_CHARS_MAX: usize = 80;

/// Returns true if a field is written as a string.
pub(super) fn is_text(field: &str, value: &Value) -> bool {
    TEXT_FIELDS.contains(&field) && value.is_string()
}

/// Returns true if a field's text is a string and not JSON.
pub(super) fn reads_as_text(field: &str) -> bool {
    TEXT_FIELDS.contains(&field)
}

/// A string. Characters that a reviewer would not see are escaped, and so are lines that look like those of a merge
/// conflict.
pub(super) fn text(text: &str) -> toml_edit::Value {
    if !needs_escapes(text) {
        return text.into();
    }
    escaped(text).parse().unwrap_or_else(|_| text.into())
}

/// A key, escaped like a string.
pub(super) fn key(name: &str) -> Key {
    if !name.chars().any(is_deceptive) {
        return Key::new(name);
    }
    let parsed = Key::parse(&escaped(name)).unwrap_or_default();
    parsed.into_iter().next().unwrap_or_else(|| Key::new(name))
}

/// JSON, on several lines if it is long.
pub(super) fn json(value: &Value) -> toml_edit::Value {
    let value = sorted(value);
    let short = value.to_string();
    let json = if short.chars().count() <= LINE_CHARS_MAX {
        short
    } else {
        // A value can always be written.
        serde_json::to_string_pretty(&value).unwrap_or(short)
    };
    let json = printable_json(&json);
    let literal = match (json.contains('\''), json.contains('\n')) {
        (false, false) => Some(format!("'{json}'")),
        (_, true) if !json.contains("'''") => Some(format!("'''\n{json}'''")),
        (true, false) | (_, true) => None,
    };
    let literal = literal.and_then(|literal| literal.parse::<toml_edit::Value>().ok());
    literal.filter(|it| it.as_str() == Some(&*json)).unwrap_or_else(|| (&*json).into())
}

/// The value of a JSON string of the file.
pub(super) fn read_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| haft_bounds::parse_error::describe(&error))
}

fn needs_escapes(text: &str) -> bool {
    let hidden = |c: char| is_deceptive(c) && !matches!(c, '\n' | '\t');
    text.chars().any(hidden) || text.lines().any(super::parse::is_conflict_marker)
}

fn escaped(text: &str) -> String {
    let mut escaped = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            c if is_deceptive(c) => {
                // Writing to a `String` cannot fail.
                let _ = write!(escaped, "\\U{:08X}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped.push('"');
    escaped
}
