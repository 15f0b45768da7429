//! Adds or removes one entry in a section of a file; the rest stays unmodified.
//!
//! The files belong to people and to other programs. The result of every edit is parsed again and
//! must equal the old content with that one change; otherwise the edit fails.

mod append;
mod json;
mod toml;
mod yaml;
mod yaml_text;

use serde_json::{Map, Value};

use crate::config::node::{Mark, Node, NodeValue};
use crate::config::parse::{FOREIGN_NODES_MAX, SyntaxError, parse};

pub use crate::config::parse::Syntax;
pub use append::AppendError;

/// A file's text, read.
#[derive(Debug)]
pub struct Document<'a> {
    text: &'a str,
    syntax: Syntax,
    tree: Node,
}

/// Reasons why a file cannot be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text is not what its name promises.
    #[error("line {line}, column {column}: {problem}")]
    Syntax {
        /// The line, counted from 1.
        line: u32,
        /// The column, counted from 1.
        column: u32,
        /// The problem.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// The file holds something else where a map is needed.
    #[error("{place} holds {found} where a map is needed")]
    NotAMap {
        /// The section, or the file as a whole.
        place: String,
        /// The value found there.
        found: &'static str,
    },
    /// The text is laid out in a way that the edit does not master.
    #[error("the file is laid out in a way that Haft cannot change safely")]
    Unsure,
}

impl EditError {
    /// The remedy.
    pub fn remedy(&self) -> String {
        match self {
            Self::Syntax { remedy, .. } => remedy.clone(),
            Self::NotAMap { .. } => "fix the file by hand".to_owned(),
            Self::Unsure => "make the change by hand".to_owned(),
        }
    }
}

impl<'a> Document<'a> {
    /// Parses a document. An empty one is an empty map.
    pub fn read(text: &'a str, syntax: Syntax) -> Result<Self, EditError> {
        let tree = parse(text, syntax, FOREIGN_NODES_MAX).map_err(|error| {
            let SyntaxError { mark: Mark { line, column }, problem, remedy } = error;
            EditError::Syntax { line, column, problem, remedy: remedy.to_string() }
        })?;
        match tree.value {
            NodeValue::Map(_) | NodeValue::Null => Ok(Self { text, syntax, tree }),
            _ => Err(EditError::NotAMap { place: "the file".to_owned(), found: tree.kind() }),
        }
    }

    /// The entries of a section; none if the section is missing.
    pub fn entries(&self, section: &str) -> Result<Map<String, Value>, EditError> {
        let Some(node) = self.tree.get(section) else {
            return Ok(Map::new());
        };
        match node.to_json() {
            Value::Object(entries) => Ok(entries),
            Value::Null => Ok(Map::new()),
            _ => Err(EditError::NotAMap { place: format!("`{section}`"), found: node.kind() }),
        }
    }

    /// The text with an entry in the section, in place of one that has its name.
    pub fn put(&self, section: &str, name: &str, value: &Value) -> Result<String, EditError> {
        let mut entries = self.entries(section)?;
        let is_new = entries.insert(name.to_owned(), value.clone()).is_none();
        let text = match self.syntax {
            Syntax::Json => json::put(self.text, section, name, value),
            Syntax::Toml => toml::put(self.text, section, name, value),
            Syntax::Yaml if is_new => yaml::insert(self.text, &self.tree, section, name, value),
            Syntax::Yaml => {
                let without = self.remove(section, name)?;
                return Document::read(&without, self.syntax)?.put(section, name, value);
            }
        };
        self.verified(text, section, entries)
    }

    /// The text without an entry of the section.
    pub fn remove(&self, section: &str, name: &str) -> Result<String, EditError> {
        let mut entries = self.entries(section)?;
        if entries.remove(name).is_none() {
            return Ok(self.text.to_owned());
        }
        let text = match self.syntax {
            Syntax::Json => json::remove(self.text, section, name),
            Syntax::Toml => toml::remove(self.text, section, name),
            Syntax::Yaml => yaml::remove(self.text, &self.tree, section, name),
        };
        self.verified(text, section, entries)
    }

    /// The items of a list; none if it is missing.
    pub fn items(&self, section: &str) -> Result<Vec<Value>, EditError> {
        match self.tree.get(section).map(Node::to_json) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(EditError::Unsure),
        }
    }

    /// The text with items at an end of a list, which need not be there yet.
    pub fn append(&self, section: &str, items: &[Value]) -> Result<String, EditError> {
        let mut all = match self.tree.get(section).map(Node::to_json) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(known)) => known,
            Some(_) => return Err(EditError::Unsure),
        };
        all.extend(items.iter().cloned());
        let text = match self.syntax {
            Syntax::Json => json::append(self.text, section, items),
            Syntax::Yaml => yaml::append(self.text, &self.tree, section, items),
            Syntax::Toml => None,
        };
        let text = text.ok_or(EditError::Unsure)?;
        let mut expected = self.root();
        expected.insert(section.to_owned(), Value::Array(all));
        let Ok(Value::Object(root)) =
            parse(&text, self.syntax, FOREIGN_NODES_MAX).map(|tree| tree.to_json())
        else {
            return Err(EditError::Unsure);
        };
        if root == expected { Ok(text) } else { Err(EditError::Unsure) }
    }

    fn root(&self) -> Map<String, Value> {
        match self.tree.to_json() {
            Value::Object(root) => root,
            _ => Map::new(),
        }
    }

    /// Returns the new document if its content is as expected.
    fn verified(
        &self,
        text: Option<String>,
        section: &str,
        entries: Map<String, Value>,
    ) -> Result<String, EditError> {
        let text = text.ok_or(EditError::Unsure)?;
        let mut expected = self.root();
        let is_empty = entries.is_empty();
        expected.insert(section.to_owned(), Value::Object(entries));
        let Ok(Value::Object(root)) =
            parse(&text, self.syntax, FOREIGN_NODES_MAX).map(|tree| tree.to_json())
        else {
            return Err(EditError::Unsure);
        };
        // A table of TOML that lost its last entry is gone with it.
        let is_gone = is_empty && self.syntax == Syntax::Toml && !root.contains_key(section);
        if is_gone {
            expected.remove(section);
        }
        if root == expected { Ok(text) } else { Err(EditError::Unsure) }
    }
}
