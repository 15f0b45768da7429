//! `$ref` to a place in the same schema, replaced by what stands there.

use serde_json::{Map, Value};

/// Maximum depth of expanded references, because a recursive one has no end.
const DEPTH_MAX: usize = 8;
/// Maximum size of the expanded schema, in nodes.
const NODES_MAX: usize = 5_000;

/// The schema without references. Those that cannot be followed accept anything.
pub(super) fn inline(root: &Value) -> Value {
    let mut nodes = 0;
    let mut schema = follow(root, root, 0, &mut nodes);
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("$defs");
        schema.remove("definitions");
    }
    schema
}

/// The value at a pointer such as `#/$defs/name`.
pub(super) fn find<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    root.pointer(reference.strip_prefix('#')?)
}

fn follow(root: &Value, node: &Value, depth: usize, nodes: &mut usize) -> Value {
    *nodes += 1;
    match node {
        Value::Object(object) => {
            let Some(reference) = object.get("$ref").and_then(Value::as_str) else {
                let inside = object.iter().filter(|(key, _)| depth > 0 || !is_definitions(key));
                let inside =
                    inside.map(|(key, value)| (key.clone(), follow(root, value, depth, nodes)));
                return Value::Object(inside.collect());
            };
            let beside = object.iter().filter(|(key, _)| *key != "$ref");
            let mut found = match find(root, reference) {
                Some(target) if depth < DEPTH_MAX && *nodes < NODES_MAX => {
                    match follow(root, target, depth + 1, nodes) {
                        Value::Object(found) => found,
                        _ => Map::new(),
                    }
                }
                Some(_) | None => Map::new(),
            };
            // Keywords beside the reference have precedence.
            found.extend(beside.map(|(key, value)| (key.clone(), value.clone())));
            Value::Object(found)
        }
        Value::Array(items) => items.iter().map(|item| follow(root, item, depth, nodes)).collect(),
        other => other.clone(),
    }
}

fn is_definitions(key: &str) -> bool {
    matches!(key, "$defs" | "definitions")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_replaced_and_loops_end() {
        let schema = json!({
            "type": "object",
            "properties": {
                "at": {"$ref": "#/$defs/point", "description": "Where."},
                "tree": {"$ref": "#/$defs/tree"},
                "far": {"$ref": "https://example.com/x"},
            },
            "$defs": {
                "point": {"type": "array", "items": {"type": "number"}},
                "tree": {"type": "object", "properties": {"child": {"$ref": "#/$defs/tree"}}},
            },
        });
        let plain = inline(&schema);
        let at = json!({"type": "array", "items": {"type": "number"}, "description": "Where."});
        assert_eq!(plain["properties"]["at"], at);
        assert_eq!(plain["properties"]["far"], json!({}));
        assert!(!plain.to_string().contains("$ref") && plain.get("$defs").is_none());
    }
}
