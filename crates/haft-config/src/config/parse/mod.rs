//! Parses bytes to one tree, within limits: a hostile file costs an error, not the memory.

mod json;
mod strict;
mod toml;
mod yaml;

use std::cell::Cell;

use haft_bounds::json::Budget;

use super::node::{Mark, Node};
use crate::remedy::Remedy;
pub(super) use strict::{NextEntry, Span, ToolList};

/// Largest configuration file that is read.
pub const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Deepest nesting of maps and lists.
pub const DEPTH_MAX: usize = 64;
/// Default maximum number of values and keys in one file, aliases expanded. JSON and TOML are
/// counted before they are parsed.
pub use haft_bounds::json::NODES_MAX;
/// Most values and keys in a file of another program, which may keep more there than configuration.
pub const FOREIGN_NODES_MAX: usize = 1_000_000;

/// The syntax of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// YAML 1.2.
    Yaml,
    /// JSON; comments and trailing commas as VS Code's files have them.
    Json,
    /// TOML.
    Toml,
}

impl Syntax {
    /// The syntax that a file's name promises. Anything unknown is read as YAML, which holds JSON.
    pub fn of(file_name: &str) -> Self {
        let extension = file_name.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension.to_ascii_lowercase().as_str() {
            "json" | "jsonc" => Self::Json,
            "toml" => Self::Toml,
            _ => Self::Yaml,
        }
    }
}

/// A syntax error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Its position.
    pub mark: Mark,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: Remedy,
}

/// Parses a whole document that has at most `nodes_max` values and keys.
pub fn parse(text: &str, syntax: Syntax, nodes_max: usize) -> Result<Node, SyntaxError> {
    match syntax {
        Syntax::Yaml => yaml::parse(text, nodes_max),
        Syntax::Json => check_json(text, nodes_max).and_then(|()| json::parse(text)),
        Syntax::Toml => check_toml(text, nodes_max).and_then(|()| toml::parse(text)),
    }
}

/// Checks that a JSON text has no comments and no trailing commas: other programs write it too.
pub fn check_strict_json(text: &str) -> Result<(), SyntaxError> {
    json::check_strict(text)
}

fn too_deep(mark: Mark) -> SyntaxError {
    SyntaxError {
        mark,
        problem: format!("the document is nested deeper than {DEPTH_MAX} levels"),
        remedy: "flatten it".into(),
    }
}

fn duplicate_key(key: &str, mark: Mark, first: Mark) -> SyntaxError {
    SyntaxError {
        mark,
        problem: format!(
            "duplicate key: `{key}` stands here a second time (first in line {})",
            first.line
        ),
        remedy: "keep one of the two".into(),
    }
}

/// Refuses a JSON text with too many values before it is parsed.
fn check_json(text: &str, nodes_max: usize) -> Result<(), SyntaxError> {
    let budget = Budget::nodes(nodes_max);
    budget.check(text.as_bytes()).map_err(|_| too_many(Mark::default(), nodes_max))
}

/// Refuses a TOML text that can hold too many values before it is parsed. Counts what separates values, in strings
/// too: a file of that size is not a configuration either way.
fn check_toml(text: &str, nodes_max: usize) -> Result<(), SyntaxError> {
    let separators = text.bytes().filter(|byte| b",[{=".contains(byte)).count();
    if separators <= nodes_max { Ok(()) } else { Err(too_many(Mark::default(), nodes_max)) }
}

fn too_many(mark: Mark, nodes_max: usize) -> SyntaxError {
    SyntaxError {
        mark,
        problem: format!("the document has more than {nodes_max} values and keys"),
        remedy:
            "split it; for a registry file, `limits.message_nodes_max` in haft.yaml sets the limit"
                .into(),
    }
}

/// Lines and columns of byte offsets, for parsers that only know offsets.
struct LineIndex<'a> {
    text: &'a str,
    starts: Vec<usize>,
    /// The last offset and its column, because offsets are looked up in order: a file on one long
    /// line would otherwise be counted from its start each time.
    last: Cell<(usize, usize)>,
}

impl<'a> LineIndex<'a> {
    fn new(text: &'a str) -> Self {
        let starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts, last: Cell::new((0, 1)) }
    }

    fn mark(&self, offset: usize) -> Mark {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line.saturating_sub(1)];
        let (from, column) = match self.last.get() {
            (known, column) if (start..=offset).contains(&known) => (known, column),
            _ => (start, 1),
        };
        let column = column + self.text.get(from..offset).map_or(0, |text| text.chars().count());
        self.last.set((offset, column));
        Mark { line: count(line), column: count(column) }
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
