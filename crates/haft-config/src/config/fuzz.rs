//! Properties of the readers of files, for any bytes. The fuzz target and the test of its seeds call the same
//! function: it returns what was read and panics if a promise is broken.

use serde::de::IgnoredAny;

use super::node::{Node, NodeValue};
use super::parse::{DEPTH_MAX, NODES_MAX, Syntax, parse};

/// Reads a configuration file in YAML. Checks the limits of the tree that comes out, and that JSON means
/// the same to both readers.
pub fn yaml(bytes: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else { return "not UTF-8".to_owned() };
    let root = match parse(text, Syntax::Yaml, NODES_MAX) {
        Ok(root) => root,
        Err(error) => return format!("line {}: {}", error.mark.line, error.problem),
    };
    let (nodes, depth) = measure(&root);
    assert!(nodes <= NODES_MAX, "a tree of {nodes} nodes");
    // The root is at depth zero.
    assert!(depth <= DEPTH_MAX, "a tree of depth {depth}");
    if let Ok(json) = parse(text, Syntax::Json, NODES_MAX)
        && is_plain_json(text, &json)
    {
        assert_eq!(root.to_json(), json.to_json(), "JSON that YAML reads differently");
    }
    root.to_json().to_string()
}

/// Returns true if YAML must read this as JSON does: no comments, no merge keys, no number beyond
/// `f64`.
fn is_plain_json(text: &str, root: &Node) -> bool {
    fn is_plain(node: &Node) -> bool {
        match &node.value {
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Text(_) => true,
            NodeValue::Number(number) => number.parse::<f64>().is_ok_and(f64::is_finite),
            NodeValue::List(items) => items.iter().all(is_plain),
            NodeValue::Map(entries) => {
                entries.iter().all(|entry| entry.key != "<<" && is_plain(&entry.value))
            }
        }
    }
    serde_json::from_str::<IgnoredAny>(text).is_ok() && is_plain(root)
}

/// The number of values and the depth of the deepest. Without recursion, because the depth is what is in
/// doubt.
fn measure(root: &Node) -> (usize, usize) {
    let (mut nodes, mut deepest) = (0, 0);
    let mut left = vec![(root, 0)];
    while let Some((node, depth)) = left.pop() {
        nodes += 1;
        deepest = deepest.max(depth);
        left.extend(node.items().iter().map(|item| (item, depth + 1)));
        left.extend(node.entries().iter().map(|entry| (&entry.value, depth + 1)));
    }
    (nodes, deepest)
}
