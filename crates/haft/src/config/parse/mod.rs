//! From bytes to the one tree, with budgets: a hostile file costs an error, not the memory.

mod json;
mod toml;
mod yaml;

use std::cell::Cell;

use super::node::{Mark, Node};

/// Largest configuration file that is read.
pub const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Deepest nesting of maps and lists.
pub const DEPTH_MAX: usize = 64;
/// Most values in one file, aliases expanded. JSON and TOML are counted before they are parsed.
pub const NODES_MAX: usize = 1_000_000;

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

/// Why a text could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where.
    pub mark: Mark,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

/// Parses a whole document.
pub fn parse(text: &str, syntax: Syntax) -> Result<Node, SyntaxError> {
    match syntax {
        Syntax::Yaml => yaml::parse(text),
        Syntax::Json => check_size(text).and_then(|()| json::parse(text)),
        Syntax::Toml => check_size(text).and_then(|()| toml::parse(text)),
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

/// Refuses a text that can hold more values than fit the budget, before it is parsed. Counts what
/// separates values, in texts too: a file of that size is no configuration either way.
fn check_size(text: &str) -> Result<(), SyntaxError> {
    let separators = text.bytes().filter(|byte| b",[{=".contains(byte)).count();
    if separators <= NODES_MAX {
        return Ok(());
    }
    Err(SyntaxError {
        mark: Mark::default(),
        problem: format!("the document has more than {NODES_MAX} values"),
        remedy: "split it".into(),
    })
}

/// Lines and columns of byte offsets, for parsers that only know offsets.
struct LineIndex<'a> {
    text: &'a str,
    starts: Vec<usize>,
    /// An offset and its column, because offsets are asked for in order: a file on one long line
    /// would otherwise be counted from its start each time.
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
