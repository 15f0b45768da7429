//! JSON with comments and trailing commas, nothing looser than that.

use std::collections::HashMap;

use jsonc_parser::ast::{ObjectPropName, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::de::IgnoredAny;

use super::{DEPTH_MAX, LineIndex, SyntaxError, count, duplicate_key, strict, too_deep};
use crate::config::node::{Entry, Mark, Node, NodeValue, Text};

/// Up to how many keys an object is searched for repeated ones without an index.
const SCANNED_KEYS_MAX: usize = 16;

pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match strict::parse(text) {
        Some(node) => Ok(node),
        None => parse_loosely(text),
    }
}

/// Reads JSON that may have comments and trailing commas, or finds the place where it is broken.
pub(super) fn parse_loosely(text: &str) -> Result<Node, SyntaxError> {
    let lines = LineIndex::new(text);
    match document(text, true)? {
        Some(value) => node(value, &lines, 0),
        None => Ok(Node::new(NodeValue::Null, Mark { line: 1, column: 1 })),
    }
}

pub(super) fn check_strict(text: &str) -> Result<(), SyntaxError> {
    // Equally strict and several times as fast, but its errors use other words.
    if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return Ok(());
    }
    document(text, false).map(|_| ())
}

fn document(text: &str, is_loose: bool) -> Result<Option<Value<'_>>, SyntaxError> {
    let options = ParseOptions {
        allow_comments: is_loose,
        allow_trailing_commas: is_loose,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options);
    parsed.map(|document| document.value).map_err(|error| SyntaxError {
        mark: Mark { line: count(error.line_display()), column: count(error.column_display()) },
        problem: format!("this is not valid JSON: {}", lower_first(&error.kind().to_string())),
        remedy: "fix the JSON there".into(),
    })
}

fn node(value: Value<'_>, lines: &LineIndex<'_>, depth: usize) -> Result<Node, SyntaxError> {
    let mark = lines.mark(value.start());
    if depth > DEPTH_MAX {
        return Err(too_deep(mark));
    }
    let value = match value {
        Value::NullKeyword(_) => NodeValue::Null,
        Value::BooleanLit(literal) => NodeValue::Bool(literal.value),
        Value::NumberLit(literal) => NodeValue::Number(literal.value.to_owned()),
        Value::StringLit(literal) => {
            NodeValue::Text(Text { text: literal.value.into_owned(), shown: None })
        }
        Value::Array(array) => NodeValue::List(
            array
                .elements
                .into_iter()
                .map(|element| node(element, lines, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(object) => {
            let mut entries: Vec<Entry> = Vec::with_capacity(object.properties.len());
            // Nearly every object is small, and then looking through it is faster than hashing.
            let is_large = object.properties.len() > SCANNED_KEYS_MAX;
            let mut seen = HashMap::new();
            for property in object.properties {
                let mark = lines.mark(property.name.start());
                let key = match property.name {
                    ObjectPropName::String(name) => name.value.into_owned(),
                    ObjectPropName::Word(name) => name.value.to_owned(),
                };
                let first = if is_large {
                    seen.insert(key.clone(), mark)
                } else {
                    entries.iter().find(|entry| entry.key == key).map(|entry| entry.mark)
                };
                if let Some(first) = first {
                    return Err(duplicate_key(&key, mark, first));
                }
                entries.push(Entry { key, mark, value: node(property.value, lines, depth + 1)? });
            }
            NodeValue::Map(entries)
        }
    };
    Ok(Node::new(value, mark))
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(chars).collect::<String>().trim_end_matches('.').to_owned()
    })
}
