//! `${VAR}` and its relatives, replaced in the tree before anything is read from it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::choices::UnresolvedEnv;
use super::node::{Node, NodeValue, Text};
use super::place::Place;
use super::read::{Reader, joined};
use crate::remedy::Remedy;

/// The variables that references may refer to.
pub struct Variables<'a> {
    /// The environment.
    pub environment: &'a HashMap<String, String>,
    /// The handling of an unset variable.
    pub unresolved: UnresolvedEnv,
    /// Variables that the format predefines, such as `workspaceFolder`.
    pub predefined: HashMap<&'static str, String>,
    /// The answers to `${input:id}`; `None` for a format that has no inputs.
    pub inputs: Option<&'a Answers<'a>>,
    /// Returns true if Haft reads the value at a path of the file. References elsewhere are
    /// ignored.
    pub reads: &'a dyn Fn(&[String]) -> bool,
    /// The handling of references.
    pub references: References,
    /// Every variable that a reference named so far.
    pub used: RefCell<Vec<VariableUse>>,
}

impl Variables<'_> {
    /// Records that the value at the reader's path refers to a variable.
    pub fn record(&self, variable: &str, reader: &Reader<'_>) {
        let (file, path) = (Arc::clone(reader.file()), reader.path().to_vec());
        self.used.borrow_mut().push(VariableUse { variable: variable.to_owned(), file, path });
    }
}

/// A reference to a variable of the environment. The registry policy decides on these records, so they
/// are made where references are resolved, and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableUse {
    /// The variable's name.
    pub variable: String,
    /// The file with the reference.
    pub file: Arc<str>,
    /// The keys that lead to it.
    pub path: Vec<String>,
}

impl VariableUse {
    /// Returns true if the reference lies inside the entry at `entry`. Names of entries may contain
    /// dots, so this may be true for a neighbour with the same path, and is never false for the
    /// entry itself.
    pub fn is_inside(&self, entry: &Place) -> bool {
        self.file == entry.file
            && (1..=self.path.len()).any(|steps| joined(&self.path[..steps]) == entry.path)
    }
}

/// The handling of references to variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum References {
    /// Its value takes its place.
    Resolve,
    /// It stays one, in the native spelling: the text goes into a native file.
    Keep,
}

/// Answers the input with an id.
pub type Answers<'a> = dyn Fn(&str) -> Result<String, Failure> + 'a;

/// The problem of a reference, and its remedy.
pub type Failure = (String, Remedy);

/// Replaces every reference below `node`.
pub fn expand(node: &mut Node, variables: &Variables<'_>, reader: &mut Reader<'_>) {
    match &mut node.value {
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {}
        NodeValue::Text(text) if !text.text.contains('$') => {}
        NodeValue::Text(text) => {
            let source = text.text.clone();
            let place = reader.place(node);
            let mut expansion =
                Expansion { variables, unset: Vec::new(), named: Vec::new(), place };
            let expanded = expansion.run(&source);
            for name in &expansion.named {
                variables.record(name, reader);
            }
            match expanded {
                Ok((text, shown)) => {
                    let shown = (shown != text).then_some(shown);
                    node.value = NodeValue::Text(Text { text, shown });
                    for name in expansion.unset {
                        reader.warn(
                            node,
                            format!(
                                "environment variable `{name}` is not set; the text stays as it is"
                            ),
                            format!("set {name}, or give a default: ${{{name}:-value}}"),
                        );
                    }
                }
                Err((problem, remedy)) => reader.unusable(node, problem, remedy),
            }
        }
        NodeValue::List(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                reader.inside(format!("[{at}]"), |reader| expand(item, variables, reader));
            }
        }
        NodeValue::Map(entries) => {
            for entry in entries {
                let key = entry.key.clone();
                reader.inside(key, |reader| {
                    if (variables.reads)(reader.path()) {
                        expand(&mut entry.value, variables, reader);
                    }
                });
            }
        }
    }
}

struct Expansion<'a> {
    variables: &'a Variables<'a>,
    /// Unset variables whose reference stays.
    unset: Vec<String>,
    /// Variables that references name, whether their values are used now or not.
    named: Vec<String>,
    place: Place,
}

impl Expansion<'_> {
    /// The text with values, and the text with references in their place.
    fn run(&mut self, source: &str) -> Result<(String, String), Failure> {
        let (mut text, mut shown) = (String::new(), String::new());
        let mut rest = source;
        while let Some(at) = rest.find("${") {
            let (before, reference) = rest.split_at(at);
            // `$${VAR}` is how a literal `${VAR}` is written.
            if let Some(literal) = before.strip_suffix('$') {
                let literal = match self.variables.references {
                    References::Resolve => literal,
                    References::Keep => before,
                };
                let end = closing(reference).map_or(reference.len(), |end| end + 1);
                for out in [&mut text, &mut shown] {
                    out.push_str(literal);
                    out.push_str(&reference[..end]);
                }
                rest = &reference[end..];
                continue;
            }
            let Some(end) = closing(reference) else {
                return Err((
                    "`${` is not closed".into(),
                    "close it with `}`, or write `$${` for a literal `${`".into(),
                ));
            };
            let (value, display) = self.resolve(&reference[2..end])?;
            text.push_str(before);
            text.push_str(&value);
            shown.push_str(before);
            shown.push_str(&display);
            rest = &reference[end + 1..];
        }
        text.push_str(rest);
        shown.push_str(rest);
        Ok((text, shown))
    }

    fn resolve(&mut self, reference: &str) -> Result<(String, String), Failure> {
        let keeps = self.variables.references == References::Keep;
        if let Some(value) = self.variables.predefined.get(reference) {
            let value = if keeps { literally(value) } else { value.clone() };
            return Ok((value.clone(), value));
        }
        if let (Some(id), Some(inputs)) = (reference.strip_prefix("input:"), self.variables.inputs)
        {
            return inputs(id).map(|value| (value, format!("${{input:{id}}}")));
        }
        let (name, default) = name_and_default(reference);
        if !is_name(name) {
            return Err((
                format!("`${{{reference}}}` cannot be read"),
                "write `${NAME}`, `${NAME:-default}` or `${env:NAME}`".into(),
            ));
        }
        self.named.push(name.to_owned());
        if keeps {
            let kept = match default {
                Some(default) => format!("${{{name}:-{}}}", self.run(default)?.0),
                None => format!("${{{name}}}"),
            };
            return Ok((kept.clone(), kept));
        }
        match (self.variables.environment.get(name), default) {
            (Some(value), None) => Ok((value.clone(), format!("${{{name}}}"))),
            (Some(value), Some(default)) if !value.is_empty() => {
                // The default is not used now. It is when the variable is not set at the next start.
                name_references(default, &mut self.named);
                Ok((value.clone(), format!("${{{name}}}")))
            }
            (_, Some(default)) => self.run(default),
            (None, None) => self.unset(name, reference),
        }
    }

    fn unset(&mut self, name: &str, reference: &str) -> Result<(String, String), Failure> {
        match self.variables.unresolved {
            UnresolvedEnv::Warn => {
                self.unset.push(name.to_owned());
                let literal = format!("${{{reference}}}");
                Ok((literal.clone(), literal))
            }
            UnresolvedEnv::Error => Err((
                format!("Environment variable '{name}' not found (used by `{}`)", self.place.path),
                format!("Please set it and try again, or give a default: ${{{name}:-value}}")
                    .into(),
            )),
        }
    }
}

/// The parts of `NAME`, `NAME:-default`, `env:NAME` or `env://NAME`.
fn name_and_default(reference: &str) -> (&str, Option<&str>) {
    let named = reference
        .strip_prefix("env://")
        .or_else(|| reference.strip_prefix("env:"))
        .unwrap_or(reference);
    match named.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (named, None),
    }
}

/// Collects the variables that `text` refers to, without resolving any. Literal references (`$${A}`) count
/// too: one name too many costs a refusal, one too few a secret.
pub fn name_references(text: &str, names: &mut Vec<String>) {
    for (at, _) in text.match_indices("${") {
        let reference = &text[at + 2..];
        let end = reference.find(['}', '$']).unwrap_or(reference.len());
        let (name, _) = name_and_default(&reference[..end]);
        if is_name(name) {
            names.push(name.to_owned());
        }
    }
}

/// Escapes a string for a native file, so that nothing in it is a reference.
pub fn literally(text: &str) -> String {
    text.replace("${", "$${")
}

/// The variable that may hold the answer to `${input:id}`.
pub fn input_variable(id: &str) -> String {
    let id: String = id
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("INPUT_{id}")
}

/// The index of the brace that closes the reference at the start of `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' if at > 0 && text.as_bytes()[at - 1] == b'$' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns true if a string can be the name of a variable.
pub fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
