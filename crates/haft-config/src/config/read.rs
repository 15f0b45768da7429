//! Reads the tree into typed records. Reading continues after a problem, so that one run reports
//! all.
//!
//! Records and choices are declared in `declare`; this module holds their building blocks.

use haft_text::{list, nearest};
use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use super::declare::{choice, record};
use super::node::{Entry, Node, NodeValue, Text};
use super::place::{At, Place, Problems};
use crate::remedy::Remedy;

/// Anything that can be read from a node.
pub trait FromNode: Sized {
    /// Reads the value, or notes what is wrong and gives nothing.
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self>;
    /// The JSON Schema an editor checks the value with.
    fn schema() -> Value;
    /// Lets `over` win: for a record field by field, for anything else as a whole.
    fn overlay(&mut self, over: Self) {
        *self = over;
    }
}

/// The handling of an unknown key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// Our own formats: a mistake.
    Reject,
    /// Another tool's file: a field that has no effect here.
    Warn,
}

/// The result of reading a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// It has a value, or was left out.
    Fine,
    /// The value was reported as invalid, so it must not be reported as missing too.
    Broken,
}

/// Keys of older formats, with the advice for their users.
const REMOVED: &[(&str, &str)] = &[(
    "instance_counts",
    "`instance_counts` was removed: it is state at run time, not configuration; delete it",
)];

/// Knows the file and the path while a tree is being read.
pub struct Reader<'a> {
    file: Arc<str>,
    path: Vec<String>,
    problems: &'a mut Problems,
}

impl<'a> Reader<'a> {
    /// Starts at the root of a file.
    pub fn new(file: Arc<str>, problems: &'a mut Problems) -> Self {
        Self { file, path: Vec::new(), problems }
    }

    /// The file being read.
    pub fn file(&self) -> &Arc<str> {
        &self.file
    }

    /// The keys that lead to the node being read.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    /// The place of a node at the current path.
    pub fn place(&self, node: &Node) -> Place {
        Place {
            file: node.variable.clone().unwrap_or_else(|| self.file.clone()),
            line: node.mark.line,
            column: node.mark.column,
            path: joined(&self.path),
        }
    }

    /// Notes an error at a node.
    pub fn error(&mut self, node: &Node, problem: impl Into<String>, remedy: impl Into<Remedy>) {
        let place = self.place(node);
        self.problems.error(&place, problem, remedy);
    }

    /// Records an error at a node whose value is unknown: further errors follow from it.
    pub fn unusable(&mut self, node: &Node, problem: impl Into<String>, remedy: impl Into<Remedy>) {
        let place = self.place(node);
        self.problems.error(&place, problem, remedy);
        self.problems.silence(place);
    }

    /// Notes a warning at a node.
    pub fn warn(&mut self, node: &Node, problem: impl Into<String>, remedy: impl Into<Remedy>) {
        let place = self.place(node);
        self.problems.warn(&place, problem, remedy);
    }

    /// Notes an error at a place that is already known.
    pub fn error_at(
        &mut self,
        place: &Place,
        problem: impl Into<String>,
        remedy: impl Into<Remedy>,
    ) {
        self.problems.error(place, problem, remedy);
    }

    /// Notes a warning at a place that is already known.
    pub fn warn_at(
        &mut self,
        place: &Place,
        problem: impl Into<String>,
        remedy: impl Into<Remedy>,
    ) {
        self.problems.warn(place, problem, remedy);
    }

    /// Reads something one step further down.
    pub fn inside<T>(&mut self, step: impl Into<String>, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step.into());
        let result = read(self);
        self.path.pop();
        result
    }

    /// Notes that a node is of the wrong kind.
    pub fn expected(&mut self, node: &Node, what: &str, example: &str) {
        let found = node.kind();
        self.error(node, format!("expected {what}, found {found}"), format!("write {example}"));
    }

    /// Reads one field of a record. `null` counts as left out.
    pub fn field<T: FromNode>(&mut self, entry: &Entry, slot: &mut Option<At<T>>) -> Read {
        if entry.value.value == NodeValue::Null {
            return Read::Fine;
        }
        self.inside(&entry.key, |reader| {
            if slot.is_some() {
                let problem =
                    format!("`{}` is given a second time under another spelling", entry.key);
                reader.error(&entry.value, problem, "keep one of the two");
            }
            *slot = At::read(&entry.value, reader);
        });
        if slot.is_some() { Read::Fine } else { Read::Broken }
    }

    /// Notes an unknown key, with the nearest known one.
    pub fn unknown(&mut self, entry: &Entry, what: &str, known: &[&str], unknown: Unknown) {
        let place =
            Place { line: entry.mark.line, column: entry.mark.column, ..self.place(&entry.value) };
        let key = &entry.key;
        // The suggestion would not be shown, and searching for one takes time.
        if unknown == Unknown::Reject && self.problems.has_many_errors() {
            self.problems.error(&place, String::new(), String::new());
            return;
        }
        if let Some((_, removed)) = REMOVED.iter().find(|(name, _)| name == key) {
            self.problems.error(&place, *removed, format!("delete `{key}`"));
            return;
        }
        let remedy = match nearest(key, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", list(known)),
        };
        match unknown {
            Unknown::Reject => {
                self.problems.error(&place, format!("{what} has no key `{key}`"), remedy);
            }
            Unknown::Warn => self.problems.warn(
                &place,
                format!("`{key}` is not supported and has no effect"),
                "Haft runs without it",
            ),
        }
    }
}

/// `servers.customers.args[0]`. Written at once: every value of every file has a place.
pub(super) fn joined(steps: &[String]) -> String {
    let mut path = String::with_capacity(steps.iter().map(|step| step.len() + 1).sum());
    for (at, step) in steps.iter().enumerate() {
        if at > 0 && !step.starts_with('[') {
            path.push('.');
        }
        path.push_str(step);
    }
    path
}

impl<T: FromNode> FromNode for At<T> {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let place = reader.place(node);
        T::read(node, reader).map(|value| Self { value, place })
    }
    fn schema() -> Value {
        T::schema()
    }
    fn overlay(&mut self, over: Self) {
        self.value.overlay(over.value);
        self.place = over.place;
    }
}

impl FromNode for Text {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        if let NodeValue::Text(text) = &node.value {
            Some(text.clone())
        } else {
            reader.expected(node, "a string", "it in quotes");
            None
        }
    }
    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

impl FromNode for String {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        Text::read(node, reader).map(|text| text.text)
    }
    fn schema() -> Value {
        Text::schema()
    }
}

impl FromNode for bool {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        if let NodeValue::Bool(yes) = node.value {
            Some(yes)
        } else {
            reader.expected(node, "true or false", "`true` or `false` without quotes");
            None
        }
    }
    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

impl FromNode for Value {
    fn read(node: &Node, _: &mut Reader<'_>) -> Option<Self> {
        Some(node.to_json())
    }
    fn schema() -> Value {
        json!({})
    }
}

impl<T: FromNode> FromNode for Vec<T> {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        let NodeValue::List(items) = &node.value else {
            reader.expected(node, "a list", "`[...]`, or one `- ` line for each");
            return None;
        };
        Some(
            items
                .iter()
                .enumerate()
                .filter_map(|(at, item)| {
                    reader.inside(format!("[{at}]"), |reader| T::read(item, reader))
                })
                .collect(),
        )
    }
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
}

/// A map from names to values, in the order of the file.
#[derive(Debug, Clone)]
pub struct Named<T>(pub Vec<(At<String>, T)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: FromNode> FromNode for Named<T> {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        if !node.is_map() {
            reader.expected(node, "a map from names to values", "`name: value` lines");
            return None;
        }
        let entries = node.entries().iter().filter_map(|entry| {
            reader.inside(&entry.key, |reader| {
                let place = Place {
                    line: entry.mark.line,
                    column: entry.mark.column,
                    ..reader.place(&entry.value)
                };
                let value = T::read(&entry.value, reader)?;
                Some((At { value: entry.key.clone(), place }, value))
            })
        });
        Some(Self(entries.collect()))
    }
    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
    fn overlay(&mut self, over: Self) {
        for (name, value) in over.0 {
            let same = |known: &String| is_same_name(known, &name.value);
            match self.0.iter_mut().find(|(known, _)| same(&known.value)) {
                Some((_, known)) => known.overlay(value),
                None => self.0.push((name, value)),
            }
        }
    }
}

/// Names as an environment variable can spell them: in any case, with `_` for `-`.
pub fn is_same_name(known: &str, spelled: &str) -> bool {
    let plain = |name: &str| name.replace('-', "_").to_lowercase();
    known == spelled || plain(known) == plain(spelled)
}

/// A record with a key `enabled`, or a boolean that stands for a record with that key alone.
#[derive(Debug, Clone)]
pub struct Switch<T>(pub T);

impl<T: FromNode> FromNode for Switch<T> {
    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Self> {
        if !matches!(node.value, NodeValue::Bool(_)) {
            return T::read(node, reader).map(Self);
        }
        let enabled = Entry { key: "enabled".to_owned(), mark: node.mark, value: node.clone() };
        T::read(&Node::new(NodeValue::Map(vec![enabled]), node.mark), reader).map(Self)
    }

    fn schema() -> Value {
        let mut schema = T::schema();
        schema["type"] = json!(["object", "boolean"]);
        schema
    }

    fn overlay(&mut self, over: Self) {
        self.0.overlay(over.0);
    }
}
