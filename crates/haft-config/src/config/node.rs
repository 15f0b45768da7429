//! One tree for every file format, each value with its position, so that a problem found late
//! can still name its line.

use std::sync::Arc;

use serde_json::Value;

/// A value in a configuration document.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its value.
    pub value: NodeValue,
    /// Its position.
    pub mark: Mark,
    /// The environment variable it came from, if it did not come from the file.
    pub variable: Option<Arc<str>>,
}

/// A position in a document, both counted from 1; zero if unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

/// The kinds of value that YAML, JSON and TOML share.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeValue {
    /// Null.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as written, so that `1.10` stays `1.10` if a string is expected.
    Number(String),
    /// A string.
    Text(Text),
    /// A list.
    List(Vec<Node>),
    /// Keys and values in the order of the file.
    Map(Vec<Entry>),
}

/// A string and its displayed form, in which values of variables show as their reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The text to use.
    pub text: String,
    /// The displayed form, if different.
    pub shown: Option<String>,
}

impl Text {
    /// The text to show.
    pub fn shown(&self) -> &str {
        self.shown.as_ref().unwrap_or(&self.text)
    }
}

/// One key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The position of the key.
    pub mark: Mark,
    /// Its value.
    pub value: Node,
}

impl Node {
    /// A value of a file.
    pub fn new(value: NodeValue, mark: Mark) -> Self {
        Self { value, mark, variable: None }
    }

    /// The value of `key`, where this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The entries of a map; none for anything else.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            NodeValue::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; none for anything else.
    pub fn items(&self) -> &[Node] {
        match &self.value {
            NodeValue::List(items) => items,
            _ => &[],
        }
    }

    /// The string of a string node.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// The displayed form of a string node; empty for anything else.
    pub fn shown_text(&self) -> &str {
        match &self.value {
            NodeValue::Text(text) => text.shown(),
            _ => "",
        }
    }

    /// Returns true for a map.
    pub fn is_map(&self) -> bool {
        matches!(self.value, NodeValue::Map(_))
    }

    /// The kind of value, for a message.
    pub fn kind(&self) -> &'static str {
        match self.value {
            NodeValue::Null => "nothing",
            NodeValue::Bool(_) => "true or false",
            NodeValue::Number(_) => "a number",
            NodeValue::Text(_) => "a string",
            NodeValue::List(_) => "a list",
            NodeValue::Map(_) => "a map",
        }
    }

    /// The same value as JSON, for schemas and for what is passed through to servers.
    pub fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Null => Value::Null,
            NodeValue::Bool(yes) => Value::Bool(*yes),
            NodeValue::Number(text) => serde_json::from_str(text)
                .or_else(|_| serde_json::to_value(text.parse::<f64>().unwrap_or_default()))
                .unwrap_or(Value::Null),
            NodeValue::Text(text) => Value::String(text.text.clone()),
            NodeValue::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            NodeValue::Map(entries) => Value::Object(
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect(),
            ),
        }
    }
}
