//! TOML, changed without touching the layout of the rest.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table};

pub(super) fn put(text: &str, section: &str, name: &str, value: &Value) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let is_first = document.is_empty();
    let mut parent = Table::new();
    // Only the entry gets its own header.
    parent.set_implicit(true);
    let section = document.entry(section).or_insert(Item::Table(parent)).as_table_like_mut()?;
    let mut entry = Table::new();
    for (key, value) in value.as_object()? {
        entry.insert(key, Item::Value(inline(value)?));
    }
    if !is_first {
        entry.decor_mut().set_prefix("\n");
    }
    match section.get_mut(name) {
        // The comments before its header stay.
        Some(Item::Table(known)) => {
            let (position, decor) = (known.position(), known.decor().clone());
            entry.set_position(position);
            *entry.decor_mut() = decor;
            *known = entry;
        }
        _ => {
            section.insert(name, Item::Table(entry));
        }
    }
    Some(document.to_string())
}

pub(super) fn remove(text: &str, section: &str, name: &str) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    document.get_mut(section)?.as_table_like_mut()?.remove(name)?;
    Some(document.to_string())
}

fn inline(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        // TOML has no word for nothing.
        Value::Null => return None,
        Value::Bool(yes) => (*yes).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.into(),
        Value::Array(items) => {
            items.iter().map(inline).collect::<Option<Array>>().map(Into::into)?
        }
        Value::Object(entries) => {
            let mut table = InlineTable::new();
            for (key, value) in entries {
                table.insert(key, inline(value)?);
            }
            table.into()
        }
    })
}
