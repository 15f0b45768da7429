//! TOML, for the files of Codex.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{DEPTH_MAX, LineIndex, SyntaxError, too_deep};
use crate::config::node::{Entry, Node, NodeValue, Text};

pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let lines = LineIndex::new(text);
    let table = DeTable::parse(text).map_err(|error| SyntaxError {
        mark: error.span().map(|span| lines.mark(span.start)).unwrap_or_default(),
        problem: format!("this is not valid TOML: {}", error.message()),
        remedy: "fix the TOML there".into(),
    })?;
    let mark = lines.mark(table.span().start);
    Ok(Node::new(map(table.into_inner(), &lines, 0)?, mark))
}

fn map(table: DeTable<'_>, lines: &LineIndex<'_>, depth: usize) -> Result<NodeValue, SyntaxError> {
    let mut entries = table
        .into_iter()
        .map(|(key, value)| {
            let mark = lines.mark(key.span().start);
            let value = node(value, lines, depth + 1)?;
            Ok(Entry { key: key.into_inner().into_owned(), mark, value })
        })
        .collect::<Result<Vec<_>, SyntaxError>>()?;
    // The parser hands tables over sorted by key; the order of the file is the one users know.
    entries.sort_by_key(|entry| (entry.mark.line, entry.mark.column));
    Ok(NodeValue::Map(entries))
}

fn node(
    value: Spanned<DeValue<'_>>,
    lines: &LineIndex<'_>,
    depth: usize,
) -> Result<Node, SyntaxError> {
    let mark = lines.mark(value.span().start);
    if depth > DEPTH_MAX {
        return Err(too_deep(mark));
    }
    let value = match value.into_inner() {
        DeValue::String(text) => NodeValue::Text(Text { text: text.into_owned(), shown: None }),
        DeValue::Integer(number) => NodeValue::Number(number.to_string()),
        DeValue::Float(number) => NodeValue::Number(number.to_string()),
        DeValue::Boolean(yes) => NodeValue::Bool(yes),
        DeValue::Datetime(time) => NodeValue::Text(Text { text: time.to_string(), shown: None }),
        DeValue::Array(items) => NodeValue::List(
            items.into_iter().map(|item| node(item, lines, depth + 1)).collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => map(table, lines, depth)?,
    };
    Ok(Node::new(value, mark))
}
