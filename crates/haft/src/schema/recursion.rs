//! How much work a schema can make: one that refers to itself may branch at every level of a value.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// About how many steps a check may take in the worst case: seconds, not hours.
const STEPS_MAX: f64 = 1e9;

/// How many parts the references of a schema may lead to, each followed every time it is met.
const PARTS_MAX: u64 = 10_000;

/// Whether following every reference leads to more parts than a check can look at. A few kilobytes
/// that double at each step are enough for that, without any reference to itself.
pub(super) fn explodes(schema: &Value) -> bool {
    parts(&references(schema), "#", &mut BTreeMap::new()) > PARTS_MAX
}

fn parts(
    references: &BTreeMap<String, Vec<String>>,
    target: &str,
    counted: &mut BTreeMap<String, u64>,
) -> u64 {
    if let Some(count) = counted.get(target) {
        return *count;
    }
    // Counts for one while it is being counted: what refers to itself is bounded by depth.
    counted.insert(target.to_owned(), 1);
    let found = references.get(target).into_iter().flatten();
    let count = found.fold(1_u64, |sum, next| sum.saturating_add(parts(references, next, counted)));
    counted.insert(target.to_owned(), count);
    count
}

/// How deep a value may be nested so that its check ends: nothing for a schema that does not refer
/// to itself, whose work the value's own size bounds.
pub(super) fn depth_max(schema: &Value) -> Option<usize> {
    let references = references(schema);
    let branches = references
        .iter()
        .filter(|(target, _)| reaches(&references, target, target))
        .map(|(target, found)| {
            found.iter().filter(|next| reaches(&references, next, target)).count().max(2)
        })
        .max()?;
    let branches = u32::try_from(branches).map_or(f64::MAX, f64::from);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 30")]
    let depth = (STEPS_MAX.ln() / branches.ln()).clamp(1.0, 30.0) as usize;
    Some(depth)
}

/// What each part of a schema that something refers to refers to itself.
fn references(schema: &Value) -> BTreeMap<String, Vec<String>> {
    let mut references: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut waiting = vec![String::from("#")];
    while let Some(target) = waiting.pop() {
        if references.contains_key(&target) {
            continue;
        }
        let mut found = Vec::new();
        match resolve(schema, &target) {
            Some(part) => collect(part, &mut found),
            // An anchor: taken for a reference to the whole.
            None => found.push("#".to_owned()),
        }
        waiting.extend(found.iter().cloned());
        references.insert(target, found);
    }
    references
}

/// How deep a value is nested.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn resolve<'s>(schema: &'s Value, target: &str) -> Option<&'s Value> {
    schema.pointer(target.strip_prefix('#')?)
}

fn collect(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                        found.push(target.clone());
                    }
                    // Definitions do no work until something refers to them.
                    ("$defs" | "definitions" | "const" | "enum" | "default" | "examples", _) => {}
                    (_, value) => collect(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn reaches(references: &BTreeMap<String, Vec<String>>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<&str> =
        references.get(from).into_iter().flatten().map(String::as_str).collect();
    while let Some(next) = waiting.pop() {
        if next == to {
            return true;
        }
        if seen.insert(next) {
            waiting.extend(references.get(next).into_iter().flatten().map(String::as_str));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_that_doubles_at_each_step_explodes() {
        let doubling = |steps: usize| {
            let step = |n: usize| {
                let next = format!("#/$defs/d{}", n - 1);
                (format!("d{n}"), json!({"anyOf": [{"$ref": next}, {"$ref": next}]}))
            };
            let mut defs: serde_json::Map<String, Value> = (1..=steps).map(step).collect();
            defs.insert("d0".into(), json!({"type": "string"}));
            json!({"$ref": format!("#/$defs/d{steps}"), "$defs": defs})
        };
        assert!(!explodes(&doubling(10)));
        assert!(explodes(&doubling(16)));
        assert!(!explodes(&json!({"properties": {"next": {"$ref": "#"}}})));
    }

    #[test]
    fn only_a_schema_that_refers_to_itself_bounds_the_depth() {
        let plain =
            json!({"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a"}}});
        assert_eq!(depth_max(&plain), None);
        let list = json!({"properties": {"next": {"$ref": "#"}}});
        assert_eq!(depth_max(&list), Some(29));
        let tree = json!({"$ref": "#/$defs/e", "$defs": {"e": {"anyOf": [
            {"properties": {"and": {"items": {"$ref": "#/$defs/e"}}}},
            {"properties": {"or": {"items": {"$ref": "#/$defs/e"}}}},
            {"properties": {"not": {"$ref": "#/$defs/e"}}}
        ]}}});
        assert_eq!(depth_max(&tree), Some(18));
    }
}
