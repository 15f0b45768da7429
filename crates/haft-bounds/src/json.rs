//! Counts the values of a JSON text and their nesting depth, in one pass and without allocation.

use std::fmt;

use crate::effort;

/// Default maximum number of values and keys of one message.
pub const NODES_MAX: usize = 100_000;

/// Limits on what one JSON text may hold.
///
/// A parsed value takes up to 40 times the bytes of its text, so a limit on bytes alone does not bound memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Maximum number of values and keys. A container counts as one value in addition to its
    /// contents.
    pub nodes_max: usize,
    /// The most levels of objects and lists.
    pub depth_max: usize,
}

/// The exceeded limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// It has more values and keys than this.
    Nodes(usize),
    /// It nests deeper than this.
    Depth(usize),
}

/// The measured size of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// Values and keys.
    pub nodes: usize,
    /// Levels of objects and lists.
    pub depth: usize,
}

impl Budget {
    /// A budget for nodes alone, for readers that limit the depth themselves.
    pub const fn nodes(nodes_max: usize) -> Self {
        Self { nodes_max, depth_max: usize::MAX }
    }

    /// Checks that valid JSON stays within the budget. Accepts any bytes and does not validate: invalid JSON may
    /// pass and is left to the parser.
    pub fn check(&self, json: &[u8]) -> Result<(), Excess> {
        if self.cannot_exceed(json) {
            return Ok(());
        }
        scan(json, *self).map(drop)
    }

    /// Recognizes most ordinary messages without a scan. In valid JSON every node takes one byte and, except for the
    /// last, one more to separate it.
    fn cannot_exceed(&self, json: &[u8]) -> bool {
        json.len() / 2 < self.nodes_max
            && (self.depth_max >= json.len()
                || memchr::memchr2_iter(b'{', b'[', json).nth(self.depth_max).is_none())
    }
}

/// Measures JSON text.
pub fn measure(json: &[u8]) -> Shape {
    match scan(json, Budget { nodes_max: usize::MAX, depth_max: usize::MAX }) {
        Ok(shape) => shape,
        // No text has that many bytes.
        Err(Excess::Nodes(nodes)) => Shape { nodes, depth: 0 },
        Err(Excess::Depth(depth)) => Shape { nodes: 0, depth },
    }
}

/// Stops at the first excess, so a hostile text costs no more than an allowed one.
fn scan(json: &[u8], budget: Budget) -> Result<Shape, Excess> {
    effort::parsing(json);
    let mut shape = Shape::default();
    let mut depth = 0_usize;
    let mut in_scalar = false;
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        let mut next = at + 1;
        let is_node = match byte {
            // Strings are most of a large message, and are skipped by the fast search.
            b'"' => {
                next = end_of_string(json, at + 1);
                true
            }
            b'{' | b'[' => {
                depth += 1;
                shape.depth = shape.depth.max(depth);
                if depth > budget.depth_max {
                    return Err(Excess::Depth(budget.depth_max));
                }
                true
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                false
            }
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => false,
            // Configuration files may have comments. A strict parser rejects them later.
            b'/' if matches!(json.get(next), Some(b'/' | b'*')) => {
                next = end_of_comment(json, next);
                false
            }
            _ => {
                let starts = !in_scalar;
                in_scalar = true;
                at = next;
                if starts {
                    shape.nodes += 1;
                    if shape.nodes > budget.nodes_max {
                        return Err(Excess::Nodes(budget.nodes_max));
                    }
                }
                continue;
            }
        };
        in_scalar = false;
        at = next;
        if is_node {
            shape.nodes += 1;
            if shape.nodes > budget.nodes_max {
                return Err(Excess::Nodes(budget.nodes_max));
            }
        }
    }
    Ok(shape)
}

/// Returns the index behind the quote that ends the string whose content starts at `at`.
pub fn end_of_string(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = json.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        match json[at + found] {
            b'"' => return at + found + 1,
            // The byte after a backslash never ends the string.
            _ => at += found + 2,
        }
    }
    json.len()
}

/// Returns the index behind a comment; `at` is its second character.
fn end_of_comment(json: &[u8], at: usize) -> usize {
    let rest = &json[at + 1..];
    let length = match json[at] {
        b'/' => memchr::memchr(b'\n', rest),
        _ => memchr::memmem::find(rest, b"*/").map(|end| end + 2),
    };
    length.map_or(json.len(), |length| at + 1 + length)
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(max) => write!(f, "more than {max} values and keys"),
            Self::Depth(max) => write!(f, "nested deeper than {max} levels"),
        }
    }
}

impl std::error::Error for Excess {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    fn counted(value: &Value) -> Shape {
        let inner = |shapes: Vec<Shape>, keys: usize| Shape {
            nodes: 1 + keys + shapes.iter().map(|it| it.nodes).sum::<usize>(),
            depth: 1 + shapes.iter().map(|it| it.depth).max().unwrap_or(0),
        };
        match value {
            Value::Array(items) => inner(items.iter().map(counted).collect(), 0),
            Value::Object(members) => inner(members.values().map(counted).collect(), members.len()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Shape { nodes: 1, depth: 0 }
            }
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
            r#"["\\/*{}\[\],: ]{0,12}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::vec((".{0,6}", inner), 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_scan_agrees_with_a_parsed_value(value in any_json(), pretty in any::<bool>()) {
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let shape = counted(&value);
            prop_assert_eq!(measure(text.as_bytes()), shape);
            // The shortcut for short input decides as the scan does.
            let fits = |nodes_max, depth_max| Budget { nodes_max, depth_max }.check(text.as_bytes()).is_ok();
            prop_assert!(fits(shape.nodes, shape.depth));
            prop_assert!(!fits(shape.nodes - 1, shape.depth));
            prop_assert!(shape.depth == 0 || !fits(shape.nodes, shape.depth - 1));
        }

        #[test]
        fn any_bytes_are_measured_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            near in r#"["\\/*{}\[\],:0a \n]{0,60}"#,
        ) {
            for text in [bytes.as_slice(), near.as_bytes()] {
                prop_assert!(measure(text).nodes <= text.len());
                let _ = Budget { nodes_max: 5, depth_max: 2 }.check(text);
            }
        }
    }

    #[test]
    fn strings_and_comments_hold_no_values() {
        let shape = |text: &str| measure(text.as_bytes());
        assert_eq!(shape(r#"{"a": "[[,,{\" \\", "b": [1]}"#), Shape { nodes: 6, depth: 2 });
        assert_eq!(shape("{ // \"a\": [\n \"b\": 1 /* , 2 */ }"), Shape { nodes: 3, depth: 1 });
        assert_eq!(shape(r#""open \"#), Shape { nodes: 1, depth: 0 });
        assert_eq!(shape("[ /* never closed"), Shape { nodes: 1, depth: 1 });
    }

    #[test]
    fn the_first_excess_is_named() {
        let budget = Budget { nodes_max: 3, depth_max: 2 };
        assert_eq!(budget.check(b"[0,0]"), Ok(()));
        assert_eq!(budget.check(b"[0,0,0]"), Err(Excess::Nodes(3)));
        assert_eq!(budget.check(b"[[[]]]"), Err(Excess::Depth(2)));
        assert_eq!(Excess::Nodes(3).to_string(), "more than 3 values and keys");
        assert_eq!(Excess::Depth(2).to_string(), "nested deeper than 2 levels");
    }
}
