//! Bounds the work of a schema: a recursive one may branch at every level of a value.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Approximate worst-case number of steps of a check: seconds, not hours.
const STEPS_MAX: f64 = 1e9;

/// Maximum number of subschemas reachable through references, counted once per path.
const PARTS_MAX: u64 = 10_000;

/// Maximum depth of references and nesting: the validator recurses on a bounded stack.
const DEPTH_MAX: usize = 1000;

/// Maximum number of reference targets. In a cycle, a path through them can be as long as their
/// number.
const TARGETS_MAX: usize = 1500;

/// The references of each target.
type References = BTreeMap<String, Vec<Reference>>;

struct Reference {
    target: String,
    /// Nesting depth of the reference within its subschema.
    level: usize,
}

/// Returns true if the references expand to more subschemas than a check can visit, or too deep. A
/// few kilobytes that double at each step, or a chain of some thousand references, suffice, even
/// without recursion.
pub(super) fn explodes(schema: &Value) -> bool {
    let references = references(schema);
    if references.len() > TARGETS_MAX {
        return true;
    }
    let Extent { parts, depth } = extent(&references);
    parts > PARTS_MAX || depth > DEPTH_MAX
}

/// The expanded size of a subschema.
#[derive(Debug, Clone, Copy)]
struct Extent {
    parts: u64,
    depth: usize,
}

/// Returns the expanded size of the whole schema. Iterative, because its depth is unknown.
fn extent(references: &References) -> Extent {
    // Stands for a subschema during its own expansion: recursive schemas are bounded by depth.
    const ITSELF: Extent = Extent { parts: 1, depth: 0 };
    let mut known: BTreeMap<&str, Extent> = BTreeMap::from([("#", ITSELF)]);
    let mut open: Vec<(&str, usize, Extent)> = vec![("#", 0, ITSELF)];
    while let Some((target, at, extent)) = open.last_mut() {
        let Some(next) = references.get(*target).and_then(|found| found.get(*at)) else {
            known.insert(target, *extent);
            open.pop();
            continue;
        };
        if let Some(behind) = known.get(next.target.as_str()) {
            extent.parts = extent.parts.saturating_add(behind.parts);
            extent.depth = extent.depth.max(next.level + 1 + behind.depth);
            *at += 1;
        } else {
            known.insert(&next.target, ITSELF);
            open.push((&next.target, 0, ITSELF));
        }
    }
    known.get("#").copied().unwrap_or(ITSELF)
}

/// Returns the nesting depth up to which a check terminates in time. `None` for a schema without
/// recursion, whose work the size of the value bounds.
pub(super) fn depth_max(schema: &Value) -> Option<usize> {
    let references = references(schema);
    let branches = references
        .iter()
        .filter(|(target, _)| reaches(&references, target, target))
        .map(|(target, found)| {
            let back = |next: &&Reference| reaches(&references, &next.target, target);
            found.iter().filter(back).count().max(2)
        })
        .max()?;
    let branches = u32::try_from(branches).map_or(f64::MAX, f64::from);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 30")]
    let depth = (STEPS_MAX.ln() / branches.ln()).clamp(1.0, 30.0) as usize;
    Some(depth)
}

/// Collects the references of each subschema that is a reference target.
fn references(schema: &Value) -> References {
    let mut references = References::new();
    let mut waiting = vec![String::from("#")];
    while let Some(target) = waiting.pop() {
        if references.contains_key(&target) {
            continue;
        }
        let mut found = Vec::new();
        match resolve(schema, &target) {
            Some(part) => collect(part, 0, &mut found),
            // An anchor counts as a reference to the whole schema.
            None => found.push(Reference { target: "#".to_owned(), level: 0 }),
        }
        waiting.extend(found.iter().map(|reference| reference.target.clone()));
        references.insert(target, found);
    }
    references
}

/// Returns the nesting depth of a value.
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

fn collect(schema: &Value, level: usize, found: &mut Vec<Reference>) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(target)) => {
                        found.push(Reference { target: target.clone(), level });
                    }
                    // Definitions cost nothing until they are referenced.
                    ("$defs" | "definitions" | "const" | "enum" | "default" | "examples", _) => {}
                    (_, value) => collect(value, level + 1, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, level + 1, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn reaches(references: &References, from: &str, to: &str) -> bool {
    let behind = |part: &str| {
        references.get(part).into_iter().flatten().map(|reference| reference.target.as_str())
    };
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<&str> = behind(from).collect();
    while let Some(next) = waiting.pop() {
        if next == to {
            return true;
        }
        if seen.insert(next) {
            waiting.extend(behind(next));
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
    fn a_chain_without_end_explodes() {
        let chain = |links: usize, wrap: fn(Value) -> Value| {
            let link =
                |n: usize| (format!("d{n}"), wrap(json!({"$ref": format!("#/$defs/d{}", n - 1)})));
            let mut defs: serde_json::Map<String, Value> = (1..=links).map(link).collect();
            defs.insert("d0".into(), json!({"type": "string"}));
            json!({"$ref": format!("#/$defs/d{links}"), "$defs": defs})
        };
        for links in [3_000, 50_000] {
            assert!(explodes(&chain(links, |link| link)));
        }
        // Levels between the links count too.
        let nested = |link| json!({"items": {"not": {"items": {"not": {"items": link}}}}});
        assert!(explodes(&chain(200, nested)));
        for (links, wrap) in [(900, (|link| link) as fn(Value) -> Value), (100, nested)] {
            let schema = chain(links, wrap);
            assert!(!explodes(&schema));
            crate::schema::Schema::compile(&schema).unwrap().check(&json!([])).ok();
        }
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
