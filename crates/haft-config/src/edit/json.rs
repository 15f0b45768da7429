//! JSON and JSON with comments, changed in its syntax tree.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

/// The byte order mark that Windows editors may add.
const BYTE_ORDER_MARK: char = '\u{feff}';

pub(super) fn put(text: &str, section: &str, name: &str, value: &Value) -> Option<String> {
    change(text, |root| {
        let section = match root.get(section) {
            Some(property) => property.object_value_or_set(),
            None => root.append(section, CstInputValue::Object(Vec::new())).object_value()?,
        };
        match section.get(name) {
            Some(property) => property.set_value(input(value)),
            None => {
                section.append(name, input(value));
            }
        }
        Some(())
    })
}

pub(super) fn remove(text: &str, section: &str, name: &str) -> Option<String> {
    change(text, |root| {
        root.object_value(section)?.get(name)?.remove();
        Some(())
    })
}

pub(super) fn append(text: &str, section: &str, items: &[Value]) -> Option<String> {
    change(text, |root| {
        let list = root.array_value_or_create(section)?;
        for item in items {
            list.append(input(item));
        }
        Some(())
    })
}

fn change(text: &str, edit: impl FnOnce(&CstObject) -> Option<()>) -> Option<String> {
    let bare = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let root = CstRootNode::parse(bare, &ParseOptions::default()).ok()?;
    edit(&root.object_value_or_set())?;
    let mut changed = root.to_string();
    if bare.trim().is_empty() {
        changed = format!("{}\n", changed.trim_end());
    }
    Some(if bare.len() < text.len() { format!("{BYTE_ORDER_MARK}{changed}") } else { changed })
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(yes) => CstInputValue::Bool(*yes),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(entries) => CstInputValue::Object(
            entries.iter().map(|(key, value)| (key.clone(), input(value))).collect(),
        ),
    }
}
