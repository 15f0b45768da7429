//! The difference of two JSON Schemas, in the terms of the parameters they describe.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::change::{Change, ChangeKind};

/// Deeper schemas are compared as a whole.
const DEPTH_MAX: usize = 16;
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];

/// Compares two schemas. `at` is the path of the parameter, empty for the arguments as a whole.
pub(super) fn schema_diff(
    at: &str,
    before: &Value,
    after: &Value,
    depth: usize,
    changes: &mut Vec<Change>,
) {
    if before == after {
        return;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        changes.push(Change::between(ChangeKind::SchemaChanged, at, Some(before), Some(after)));
        return;
    };
    if depth >= DEPTH_MAX {
        changes.push(Change::between(ChangeKind::SchemaChanged, at, Some(before), Some(after)));
        return;
    }
    parameters(at, old, new, depth, changes);
    types(at, old, new, changes);
    choices(at, old, new, changes);
    further(at, old, new, changes);
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys {
        let (before, after) = (old.get(key), new.get(key));
        match key.as_str() {
            "properties" | "required" | "type" | "enum" | "const" | "additionalProperties" => {}
            _ if before == after => {}
            "description" | "title" => {
                let path = if at.is_empty() { key.clone() } else { at.to_owned() };
                changes.push(Change::text(&path, before, after));
            }
            "items" => {
                let (null, path) = (Value::Null, format!("{at}[]"));
                schema_diff(
                    &path,
                    before.unwrap_or(&null),
                    after.unwrap_or(&null),
                    depth + 1,
                    changes,
                );
            }
            key => {
                let path = below(at, key);
                changes.push(Change::between(ChangeKind::SchemaChanged, &path, before, after));
            }
        }
    }
}

fn parameters(
    at: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    depth: usize,
    changes: &mut Vec<Change>,
) {
    let of = |schema: &Map<String, Value>| {
        schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let required = |schema: &Map<String, Value>| -> BTreeSet<String> {
        let names = schema.get("required").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
    };
    let (before, after) = (of(old), of(new));
    let (must_before, must_after) = (required(old), required(new));
    let names: BTreeSet<&String> =
        before.keys().chain(after.keys()).chain(&must_before).chain(&must_after).collect();
    for name in names {
        let path = below(at, name);
        let (was_required, is_required) = (must_before.contains(name), must_after.contains(name));
        match (before.get(name), after.get(name)) {
            (None, Some(schema)) => {
                let kind = if is_required {
                    ChangeKind::RequiredParameterAdded
                } else {
                    ChangeKind::ParameterAdded
                };
                changes.push(Change::between(kind, &path, None, Some(schema)));
                continue;
            }
            (Some(schema), None) => {
                changes.push(Change::between(
                    ChangeKind::ParameterRemoved,
                    &path,
                    Some(schema),
                    None,
                ));
                continue;
            }
            (Some(old), Some(new)) => schema_diff(&path, old, new, depth + 1, changes),
            (None, None) => {}
        }
        match (was_required, is_required) {
            (true, false) => changes.push(Change::plain(ChangeKind::MadeOptional, &path)),
            (false, true) => changes.push(Change::plain(ChangeKind::MadeRequired, &path)),
            (true, true) | (false, false) => {}
        }
    }
}

/// The types that a schema allows. Without `type`, all of them.
fn allowed(schema: &Map<String, Value>) -> BTreeSet<&str> {
    let mut types: BTreeSet<&str> = match schema.get("type") {
        Some(Value::String(one)) => [one.as_str()].into(),
        Some(Value::Array(some)) => some.iter().filter_map(Value::as_str).collect(),
        _ => TYPES.into(),
    };
    if types.contains("number") {
        types.insert("integer");
    }
    types
}

fn types(at: &str, old: &Map<String, Value>, new: &Map<String, Value>, changes: &mut Vec<Change>) {
    let (before, after) = (old.get("type"), new.get("type"));
    if before == after {
        return;
    }
    let kind = widening(&allowed(old), &allowed(new));
    changes.push(Change::between(kind, at, before, after));
}

fn choices(
    at: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    changes: &mut Vec<Change>,
) {
    let of = |schema: &Map<String, Value>| -> Option<BTreeSet<String>> {
        if let Some(one) = schema.get("const") {
            return Some([one.to_string()].into());
        }
        let some = schema.get("enum")?.as_array()?;
        Some(some.iter().map(ToString::to_string).collect())
    };
    let shown = |schema: &Map<String, Value>| {
        schema.get("enum").cloned().or_else(|| schema.get("const").map(|one| json!([one])))
    };
    let kind = match (of(old), of(new)) {
        (before, after) if before == after => return,
        (None, _) => ChangeKind::TypeNarrowed,
        (_, None) => ChangeKind::TypeWidened,
        (Some(before), Some(after)) => widening(&before, &after),
    };
    changes.push(Change::between(kind, at, shown(old).as_ref(), shown(new).as_ref()));
}

/// Further properties: allowed unless `additionalProperties` is false.
fn further(
    at: &str,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    changes: &mut Vec<Change>,
) {
    const KEY: &str = "additionalProperties";
    let (before, after) = (old.get(KEY), new.get(KEY));
    let is_closed = |value: Option<&Value>| value == Some(&Value::Bool(false));
    let is_open = |value: Option<&Value>| matches!(value, None | Some(Value::Bool(true)));
    if before == after || (is_open(before) && is_open(after)) {
        return;
    }
    let kind = if is_closed(before) || is_open(after) {
        ChangeKind::TypeWidened
    } else if is_closed(after) || is_open(before) {
        ChangeKind::TypeNarrowed
    } else {
        ChangeKind::SchemaChanged
    };
    changes.push(Change::between(kind, &below(at, KEY), before, after));
}

fn widening<T: Ord>(before: &BTreeSet<T>, after: &BTreeSet<T>) -> ChangeKind {
    if after.is_superset(before) {
        ChangeKind::TypeWidened
    } else if after.is_subset(before) {
        ChangeKind::TypeNarrowed
    } else {
        ChangeKind::TypeChanged
    }
}

fn below(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_parameter_is_named() {
        let before = json!({"type": "object", "required": ["a", "b"], "additionalProperties": false,
            "properties": {
                "a": {"type": "string"}, "b": {"type": ["string", "null"], "description": "Old."},
                "c": {"enum": [1, 2]}, "d": {"type": "integer"}, "e": {}, "f": {"type": "array",
                "items": {"type": "string"}}, "g": {"type": "string", "maxLength": 5}}});
        let after = json!({"type": "object", "required": ["b", "d", "h"], "properties": {
            "a": {"type": ["string", "number"]}, "b": {"type": "string", "description": "New."},
            "c": {"enum": [1, 2, 3]}, "d": {"type": "boolean"}, "f": {"type": "array",
            "items": {"type": "number"}}, "g": {"type": "string"}, "h": {}, "i": {}}});
        let mut changes = Vec::new();
        schema_diff("", &before, &after, 0, &mut changes);
        let found: Vec<_> = changes.iter().map(|it| (it.at.as_str(), it.kind)).collect();
        assert_eq!(
            found,
            [
                ("a", ChangeKind::TypeWidened),
                ("a", ChangeKind::MadeOptional),
                ("b", ChangeKind::TypeNarrowed),
                ("b", ChangeKind::TextChanged),
                ("c", ChangeKind::TypeWidened),
                ("d", ChangeKind::TypeChanged),
                ("d", ChangeKind::MadeRequired),
                ("e", ChangeKind::ParameterRemoved),
                ("f[]", ChangeKind::TypeChanged),
                ("g.maxLength", ChangeKind::SchemaChanged),
                ("h", ChangeKind::RequiredParameterAdded),
                ("i", ChangeKind::ParameterAdded),
                ("additionalProperties", ChangeKind::TypeWidened),
            ]
        );
    }

    #[test]
    fn a_schema_that_is_too_deep_is_compared_as_a_whole() {
        let nested =
            |end: Value| (0..200).fold(end, |inner, _| json!({"properties": {"a": inner}}));
        let mut changes = Vec::new();
        schema_diff("", &nested(json!({})), &nested(json!({"type": "string"})), 0, &mut changes);
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].kind, ChangeKind::SchemaChanged);
    }
}
