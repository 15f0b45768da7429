//! The Gemini CLI writes variables without braces, too: `$NAME`.

use super::super::expand::is_name;
use super::super::node::{Node, NodeValue};

/// Keys of servers that no other client with `mcpServers` has.
const OWN_KEYS: [&str; 4] = ["httpUrl", "includeTools", "excludeTools", "trust"];

/// Returns true if a file is the Gemini CLI's.
pub fn is_gemini(name: &str, root: &Node) -> bool {
    let Some(servers) = root.get("mcpServers").map(Node::entries) else {
        return false;
    };
    let has_own_key =
        || servers.iter().any(|server| OWN_KEYS.iter().any(|key| server.value.get(key).is_some()));
    name.contains(".gemini/") || has_own_key()
}

/// Writes `$NAME` as `${NAME}` in the servers, so that it is a reference here too.
pub fn brace_variables(root: &mut Node) {
    let NodeValue::Map(entries) = &mut root.value else {
        return;
    };
    for entry in entries.iter_mut().filter(|entry| entry.key == "mcpServers") {
        brace(&mut entry.value);
    }
}

fn brace(node: &mut Node) {
    match &mut node.value {
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {}
        NodeValue::Text(text) => text.text = braced(&text.text),
        NodeValue::List(items) => items.iter_mut().for_each(brace),
        NodeValue::Map(entries) => entries.iter_mut().for_each(|entry| brace(&mut entry.value)),
    }
}

fn braced(text: &str) -> String {
    let mut parts = text.split('$');
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = part.find(|c| !is_part(c)).unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        // The second half of `$$` is literal.
        if is_name(name) && !all.ends_with('$') {
            for text in ["${", name, "}", rest] {
                all.push_str(text);
            }
        } else {
            all.push('$');
            all.push_str(part);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::braced;

    #[test]
    fn variables_get_braces_and_the_rest_stays() {
        for (text, expected) in [
            ("Bearer $TOKEN", "Bearer ${TOKEN}"),
            ("$A/$B_2-x", "${A}/${B_2}-x"),
            ("${A} $$B 5$ $1", "${A} $$B 5$ $1"),
            ("plain", "plain"),
        ] {
            assert_eq!(braced(text), expected);
        }
    }
}
