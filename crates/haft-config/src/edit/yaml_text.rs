//! Values as YAML text.

use serde_json::Value;

/// Maximum width of a list on one line.
const FLOW_CHARS_MAX: usize = 90;

/// Words that some version of YAML does not read as a string.
const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// An entry in block style, `name: ...` with a line for each of its values.
pub(super) fn block(name: &str, value: &Value, indent: usize) -> String {
    let mut lines = Vec::new();
    add(&mut lines, name, value, indent);
    lines.join("\n") + "\n"
}

fn add(lines: &mut Vec<String>, key: &str, value: &Value, indent: usize) {
    let head = format!("{}{}:", pad(indent), scalar(key));
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            lines.push(head);
            for (key, value) in entries {
                add(lines, key, value, indent + 2);
            }
        }
        Value::Array(items) if flow(value).len() > FLOW_CHARS_MAX => {
            lines.push(head);
            lines.extend(items.iter().map(|item| format!("{}- {}", pad(indent + 2), flow(item))));
        }
        other => lines.push(format!("{head} {}", flow(other))),
    }
}

pub(super) fn pad(indent: usize) -> String {
    " ".repeat(indent)
}

/// A value on one line.
pub(super) fn flow(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => scalar(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::Object(entries) => {
            let entry =
                |(key, value): (&String, &Value)| format!("{}: {}", scalar(key), flow(value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Renders a string, quoted unless every parser reads it as a string without quotes.
pub(super) fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_duration = unit.len() < text.len() && ["ms", "s"].contains(&unit);
    if is_plain || is_duration {
        return text.to_owned();
    }
    let escaped: String = text.chars().map(escaped).collect();
    format!("\"{escaped}\"")
}

fn escaped(c: char) -> String {
    match c {
        '"' | '\\' => format!("\\{c}"),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        // Line ends of any kind and what does not print: YAML folds some of them and forbids others.
        c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
            format!("\\u{:04x}", u32::from(c))
        }
        c => c.to_string(),
    }
}
