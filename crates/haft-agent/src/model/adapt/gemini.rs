//! Schemas for Gemini, which refuses a request for a keyword that it does not know.

use serde_json::{Map, Value, json};

use super::refs;

/// Supported keywords, apart from those handled by name.
const KNOWN: [&str; 14] = [
    "type",
    "title",
    "description",
    "enum",
    "required",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "nullable",
    "propertyOrdering",
];
/// The formats it takes.
const FORMATS: [&str; 7] = ["enum", "date-time", "float", "double", "int32", "int64", "duration"];

/// The schema without what Gemini does not know.
pub(super) fn adapt(schema: &Value) -> Value {
    clean(&refs::inline(schema))
}

fn clean(schema: &Value) -> Value {
    let Some(schema) = schema.as_object() else {
        // `true` and `false` are not schemas there.
        return json!({});
    };
    let mut cleaned = Map::new();
    for (key, value) in schema {
        match key.as_str() {
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                let properties = properties.map(|(name, schema)| (name.clone(), clean(schema)));
                cleaned.insert(key.clone(), Value::Object(properties.collect()));
            }
            "items" => drop(cleaned.insert(key.clone(), clean(value))),
            "anyOf" | "oneOf" => {
                let branches: Vec<Value> =
                    value.as_array().into_iter().flatten().map(clean).collect();
                cleaned.insert("anyOf".to_owned(), Value::Array(branches));
            }
            "allOf" => {
                for branch in value.as_array().into_iter().flatten() {
                    merge(&mut cleaned, clean(branch));
                }
            }
            "const" => drop(cleaned.insert("enum".to_owned(), json!([value]))),
            "exclusiveMinimum" => drop(cleaned.entry("minimum").or_insert_with(|| value.clone())),
            "exclusiveMaximum" => drop(cleaned.entry("maximum").or_insert_with(|| value.clone())),
            "format" if FORMATS.iter().any(|known| value == known) => {
                cleaned.insert(key.clone(), value.clone());
            }
            known if KNOWN.contains(&known) => {
                cleaned.insert(key.clone(), value.clone());
            }
            _ => {}
        }
    }
    only_known_required(&mut cleaned);
    // An array without items is refused.
    if cleaned.get("type") == Some(&json!("array")) && !cleaned.contains_key("items") {
        cleaned.insert("items".to_owned(), json!({}));
    }
    Value::Object(cleaned)
}

/// Merges two schemas that both apply: properties are combined, otherwise the first one wins.
fn merge(into: &mut Map<String, Value>, other: Value) {
    let Value::Object(other) = other else { return };
    for (key, value) in other {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(more)) => {
                for (name, schema) in more {
                    known.entry(name).or_insert(schema);
                }
            }
            (Some(Value::Array(known)), Value::Array(more)) if key == "required" => {
                let new: Vec<Value> = more.into_iter().filter(|it| !known.contains(it)).collect();
                known.extend(new);
            }
            (Some(_), _) => {}
            (None, value) => drop(into.insert(key, value)),
        }
    }
}

/// Gemini refuses to require what is not among the properties.
fn only_known_required(schema: &mut Map<String, Value>) {
    let names: Vec<String> = match schema.get("properties") {
        Some(Value::Object(properties)) => properties.keys().cloned().collect(),
        _ => Vec::new(),
    };
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| names.iter().any(|known| name == known));
        if required.is_empty() {
            schema.remove("required");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gemini_does_not_know_is_left_out_or_said_otherwise() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "kind": {"const": "a"},
                "when": {"type": "string", "format": "date-time"},
                "mail": {"type": "string", "format": "email", "examples": ["a@b"]},
                "value": {"oneOf": [{"type": "string"}, {"$ref": "#/$defs/n"}]},
                "list": {"type": "array"},
                "both": {"allOf": [{"type": "object", "properties": {"x": {}}},
                                   {"properties": {"y": true}, "required": ["y"]}]},
                "format": {"type": "string", "description": "A property of that name."},
            },
            "required": ["kind", "gone"],
            "$defs": {"n": {"type": "number", "exclusiveMinimum": 0}},
        });
        assert_eq!(
            adapt(&schema),
            json!({
                "type": "object",
                "properties": {
                    "kind": {"enum": ["a"]},
                    "when": {"type": "string", "format": "date-time"},
                    "mail": {"type": "string"},
                    "value": {"anyOf": [{"type": "string"}, {"type": "number", "minimum": 0}]},
                    "list": {"type": "array", "items": {}},
                    "both": {"type": "object", "properties": {"x": {}, "y": {}},
                             "required": ["y"]},
                    "format": {"type": "string", "description": "A property of that name."},
                },
                "required": ["kind"],
            })
        );
    }
}
