//! The top of a schema: every provider wants an object there, with properties, and nothing to choose from.

use serde_json::{Map, Value, json};

use super::refs;

/// Keywords that providers reject beside `type: object` at the top.
const CHOICES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Returns the schema with an object at its top. The rest stays unmodified.
pub(super) fn object(schema: &Value) -> Value {
    let mut top = match schema {
        Value::Object(top) => top.clone(),
        // `true` accepts anything.
        _ => Map::new(),
    };
    if let Some(reference) = top.get("$ref").and_then(Value::as_str)
        && let Some(Value::Object(target)) = refs::find(schema, reference)
    {
        let target = target.clone();
        top.remove("$ref");
        for (key, value) in target {
            top.entry(key).or_insert(value);
        }
    }
    for choice in CHOICES {
        if let Some(Value::Array(branches)) = top.remove(choice) {
            merge(&mut top, schema, &branches, choice == "allOf");
        }
    }
    top.insert("type".to_owned(), json!("object"));
    if !top.get("properties").is_some_and(Value::is_object) {
        top.insert("properties".to_owned(), json!({}));
    }
    Value::Object(top)
}

/// Combines the properties of all branches. A property is required if every branch requires it, or
/// any of them if all must hold. Haft validates the arguments against the whole schema, so a schema
/// that is too permissive costs a round at worst.
fn merge(top: &mut Map<String, Value>, root: &Value, branches: &[Value], all_hold: bool) {
    let mut properties = match top.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let mut required = names(top.get("required"));
    let mut common: Option<Vec<String>> = None;
    for branch in branches {
        let reference = branch["$ref"].as_str();
        let branch = reference.and_then(|it| refs::find(root, it)).unwrap_or(branch);
        if let Some(more) = branch["properties"].as_object() {
            for (name, schema) in more {
                properties.entry(name.clone()).or_insert_with(|| schema.clone());
            }
        }
        let wanted = names(branch.get("required"));
        common = Some(match common {
            None => wanted,
            Some(common) if all_hold => common.into_iter().chain(wanted).collect(),
            Some(common) => common.into_iter().filter(|name| wanted.contains(name)).collect(),
        });
    }
    for name in common.unwrap_or_default() {
        if !required.contains(&name) {
            required.push(name);
        }
    }
    top.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        top.insert("required".to_owned(), json!(required));
    }
}

fn names(required: Option<&Value>) -> Vec<String> {
    let names = required.and_then(Value::as_array).into_iter().flatten();
    names.filter_map(|name| name.as_str().map(ToOwned::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_is_an_object() {
        let empty = json!({"type": "object", "properties": {}});
        for schema in [json!(true), json!({}), json!(null), json!({"type": "object"})] {
            assert_eq!(object(&schema), empty);
        }
        let usual = json!({"type": "object", "properties": {"a": {"oneOf": [{}, {}]}}});
        assert_eq!(object(&usual), usual);
    }

    #[test]
    fn a_choice_at_the_top_becomes_all_its_properties() {
        let schema = json!({"oneOf": [
            {"properties": {"id": {"type": "integer"}, "x": {}}, "required": ["id", "x"]},
            {"properties": {"name": {"type": "string"}, "x": {}}, "required": ["name", "x"]},
        ]});
        assert_eq!(
            object(&schema),
            json!({"properties": {"id": {"type": "integer"}, "x": {}, "name": {"type": "string"}},
                   "required": ["x"], "type": "object"})
        );
        let all = json!({"allOf": [{"$ref": "#/$defs/a"}, {"required": ["b"]}],
                         "$defs": {"a": {"properties": {"a": {}}, "required": ["a"]}}});
        assert_eq!(object(&all)["required"], json!(["a", "b"]));
    }
}
