//! OpenAI's strict mode: every property is required, optional ones may be null, and objects are closed.
//! The nulls are taken out of the arguments again.

use haft_bounds::json::{Budget, NODES_MAX};
use serde_json::{Map, Value, json};

use super::refs;

/// Keywords that rule out strict mode: their meaning would change, or the provider rejects them.
const IMPOSSIBLE: [&str; 14] = [
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "unevaluatedProperties",
    "prefixItems",
    "contains",
    "$dynamicRef",
];

/// The strict form, if possible.
pub(super) fn adapt(schema: &Value) -> Option<Value> {
    let mut strict = strict(schema)?;
    for key in ["$schema", "$id"] {
        strict.as_object_mut()?.remove(key);
    }
    Some(strict)
}

/// The arguments without the nulls that strict mode makes a model write. `schema` is the original
/// one. Unchanged text stays unmodified.
pub(super) fn without_nulls(arguments: String, schema: &Value) -> String {
    // Oversized arguments are rejected later, when the call is parsed.
    if Budget::nodes(NODES_MAX).check(arguments.as_bytes()).is_err() {
        return arguments;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(&arguments) else { return arguments };
    if prune(&mut value, schema, schema) { value.to_string() } else { arguments }
}

fn strict(schema: &Value) -> Option<Value> {
    let schema = schema.as_object()?;
    if IMPOSSIBLE.iter().any(|key| schema.contains_key(*key)) {
        return None;
    }
    let mut strict_schema = schema.clone();
    for key in ["$defs", "definitions"] {
        if let Some(Value::Object(definitions)) = schema.get(key) {
            let definitions = each(definitions)?;
            strict_schema.insert(key.to_owned(), Value::Object(definitions));
        }
    }
    if let Some(items) = schema.get("items") {
        strict_schema.insert("items".to_owned(), strict(items)?);
    }
    if let Some(Value::Array(branches)) = schema.get("anyOf") {
        let branches: Option<Vec<Value>> = branches.iter().map(strict).collect();
        strict_schema.insert("anyOf".to_owned(), Value::Array(branches?));
    }
    if let Some(reference) = schema.get("$ref") {
        return reference.as_str()?.starts_with('#').then_some(Value::Object(strict_schema));
    }
    if is_object(schema) {
        // An object that takes any name cannot be closed.
        let is_open = schema.get("additionalProperties").is_some_and(|more| *more != json!(false));
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.filter(|_| !is_open)?;
        let required = required(schema);
        let mut closed = each(properties)?;
        for (name, property) in &mut closed {
            if !required.contains(&name.as_str()) {
                make_nullable(property);
            }
        }
        let names: Vec<&String> = closed.keys().collect();
        strict_schema.insert("required".to_owned(), json!(names));
        strict_schema.insert("additionalProperties".to_owned(), json!(false));
        strict_schema.insert("properties".to_owned(), Value::Object(closed));
    } else if !["type", "anyOf", "enum", "const"].iter().any(|key| schema.contains_key(*key)) {
        // Anything at all: that has no strict form.
        return None;
    }
    Some(Value::Object(strict_schema))
}

fn each(schemas: &Map<String, Value>) -> Option<Map<String, Value>> {
    schemas.iter().map(|(name, schema)| Some((name.clone(), strict(schema)?))).collect()
}

fn is_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => schema.contains_key("properties"),
    }
}

fn required(schema: &Map<String, Value>) -> Vec<&str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The description stays at the top, where the model looks for it.
fn make_nullable(schema: &mut Value) {
    if accepts_null(schema) {
        return;
    }
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(branches)) = object.get_mut("anyOf") {
        branches.push(json!({"type": "null"}));
        return;
    }
    if object.contains_key("$ref") || object.contains_key("const") {
        let description = object.remove("description");
        let inner = std::mem::take(object);
        object.insert("anyOf".to_owned(), json!([inner, {"type": "null"}]));
        object.extend(description.map(|text| ("description".to_owned(), text)));
        return;
    }
    match object.get_mut("type") {
        Some(Value::String(kind)) => {
            let kinds = json!([kind.as_str(), "null"]);
            object.insert("type".to_owned(), kinds);
        }
        Some(Value::Array(kinds)) => kinds.push(json!("null")),
        _ => {}
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.push(Value::Null);
    }
}

fn accepts_null(schema: &Value) -> bool {
    let kind = match &schema["type"] {
        Value::String(kind) => kind == "null",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "null"),
        _ => schema.as_object().is_some_and(Map::is_empty),
    };
    let branches = schema["anyOf"].as_array();
    kind || branches.is_some_and(|branches| branches.iter().any(accepts_null))
}

/// Returns true if anything was removed.
fn prune(value: &mut Value, schema: &Value, root: &Value) -> bool {
    let reference = schema["$ref"].as_str();
    let schema = reference.and_then(|it| refs::find(root, it)).unwrap_or(schema);
    let mut changed = false;
    match value {
        Value::Object(object) => {
            let empty = Map::new();
            let own = schema.as_object().unwrap_or(&empty);
            let required = required(own);
            let properties = schema["properties"].as_object().unwrap_or(&empty);
            object.retain(|name, value| {
                let is_filled = !value.is_null()
                    || required.contains(&name.as_str())
                    || properties.get(name).is_none_or(accepts_null);
                changed |= !is_filled;
                is_filled
            });
            for (name, value) in object.iter_mut() {
                if let Some(schema) = properties.get(name) {
                    changed |= prune(value, schema, root);
                }
            }
            for branch in schema["anyOf"].as_array().into_iter().flatten() {
                changed |= prune(value, branch, root);
            }
        }
        Value::Array(items) => {
            for item in items {
                changed |= prune(item, &schema["items"], root);
            }
        }
        _ => {}
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Where."},
                "unit": {"type": "string", "enum": ["C", "F"], "description": "Which."},
                "at": {"$ref": "#/$defs/at", "description": "When."},
                "note": {"type": ["string", "null"]},
                "list": {"type": "array", "items": {"type": "object",
                         "properties": {"x": {"type": "integer"}}}},
            },
            "required": ["city"],
            "$defs": {"at": {"type": "object", "properties": {"day": {"type": "string"}}}},
        })
    }

    #[test]
    fn everything_is_required_and_what_was_optional_may_be_null() {
        let at = json!({"type": "object", "properties": {"day": {"type": ["string", "null"]}},
                        "required": ["day"], "additionalProperties": false});
        let x = json!({"type": "object", "properties": {"x": {"type": ["integer", "null"]}},
                       "required": ["x"], "additionalProperties": false});
        assert_eq!(
            adapt(&schema()).unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Where."},
                    "unit": {"type": ["string", "null"], "enum": ["C", "F", null],
                             "description": "Which."},
                    "at": {"anyOf": [{"$ref": "#/$defs/at"}, {"type": "null"}],
                           "description": "When."},
                    "note": {"type": ["string", "null"]},
                    "list": {"type": ["array", "null"], "items": x},
                },
                "required": ["city", "unit", "at", "note", "list"],
                "$defs": {"at": at},
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn nulls_are_taken_out_where_they_stand_for_nothing() {
        let written = json!({"city": "Bern", "unit": null, "at": {"day": null}, "note": null,
                             "list": [{"x": null}, {"x": 1}]});
        let pruned = without_nulls(written.to_string(), &schema());
        let meant = json!({"city": "Bern", "at": {}, "note": null, "list": [{}, {"x": 1}]});
        assert_eq!(serde_json::from_str::<Value>(&pruned).unwrap(), meant);
        let untouched = r#"{ "city":"Bern" , "big": 12345678901234567890123 }"#;
        assert_eq!(without_nulls(untouched.to_owned(), &schema()), untouched);
        assert_eq!(without_nulls("{no".to_owned(), &schema()), "{no");
    }

    #[test]
    fn what_cannot_be_strict_is_not() {
        for property in [
            json!({}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}, "additionalProperties": true}),
            json!({"oneOf": [{"type": "string"}]}),
            json!({"$ref": "https://example.com/x"}),
        ] {
            let schema = json!({"type": "object", "properties": {"a": property}});
            assert_eq!(adapt(&schema), None, "{schema}");
        }
    }
}
