//! YAML, edited as text: the positions of its parts are known, and the caller parses the result
//! again before using it.

use serde_json::{Map, Value};

use super::yaml_text::{block, flow, pad, scalar};
use crate::config::node::{Entry, Mark, Node, NodeValue};

pub(super) fn insert(
    text: &str,
    root: &Node,
    section: &str,
    name: &str,
    value: &Value,
) -> Option<String> {
    let found = root.entries().iter().find(|entry| entry.key == section);
    let Some(found) = found else {
        let indent = root.entries().first().map_or(0, |entry| column(entry.mark));
        let mut whole = Map::new();
        whole.insert(name.to_owned(), value.clone());
        let lines = block(section, &Value::Object(whole), indent);
        return Some(spliced(text, end_of_text(text), &lines));
    };
    match &found.value.value {
        NodeValue::Null => Some(first_entry(text, found, name, value)),
        NodeValue::Map(entries) => {
            let at = offset(text, found.value.mark)?;
            if let Some(after) = text[at..].strip_prefix("{}") {
                let text = format!("{}{after}", text[..at].trim_end_matches(' '));
                return Some(first_entry(&text, found, name, value));
            }
            if text[at..].starts_with('{') {
                let comma = if entries.is_empty() { "" } else { "," };
                let space = if text[at + 1..].starts_with(['\r', '\n', ' ']) { "" } else { " " };
                let entry = format!("{}: {}{comma}{space}", scalar(name), flow(value));
                return Some(format!("{}{entry}{}", &text[..=at], &text[at + 1..]));
            }
            let lines = block(name, value, column(entries.first()?.mark));
            Some(spliced(text, end(text, root, found), &lines))
        }
        _ => None,
    }
}

/// An entry below a section that has none.
fn first_entry(text: &str, section: &Entry, name: &str, value: &Value) -> String {
    let lines = block(name, value, column(section.mark) + 2);
    spliced(text, line_start(text, section.mark.line + 1), &lines)
}

pub(super) fn remove(text: &str, root: &Node, section: &str, name: &str) -> Option<String> {
    let found = root.entries().iter().find(|entry| entry.key == section)?;
    let entries = found.value.entries();
    let entry = entries.iter().find(|entry| entry.key == name)?;
    if text[offset(text, found.value.mark)?..].starts_with('{') {
        return without_flow_entry(text, entries, entry);
    }
    let begin = line_start(text, entry.mark.line);
    let next = entries.iter().map(|entry| entry.mark.line).filter(|line| *line > entry.mark.line);
    let stop = match next.min() {
        Some(line) => before_comments(text, begin, line_start(text, line), |_| true),
        None => end(text, root, found),
    };
    let rest = format!("{}{}", &text[..begin], text.get(stop..)?);
    if entries.len() > 1 {
        return Some(rest);
    }
    // A section without entries would otherwise become null, which is not a map.
    let key = offset(&rest, found.mark)?;
    let colon = key + rest[key..].find(':')?;
    Some(format!("{}: {{}}{}", &rest[..colon], &rest[colon + 1..]))
}

/// Takes an entry out of braces, with the comma behind it. Where the last one ends is not known.
fn without_flow_entry(text: &str, entries: &[Entry], entry: &Entry) -> Option<String> {
    let begin = offset(text, entry.mark)?;
    let after = entries.iter().filter_map(|entry| offset(text, entry.mark));
    let next = after.filter(|at| *at > begin).min()?;
    let stop = begin + text[begin..next].trim_end().strip_suffix(',')?.len() + 1;
    Some(format!("{}{}", &text[..begin], text[stop..].trim_start_matches(' ')))
}

pub(super) fn append(text: &str, root: &Node, section: &str, items: &[Value]) -> Option<String> {
    let lines = |indent: usize| -> String {
        let lines =
            items.iter().flat_map(|item| [pad(indent), "- ".into(), flow(item), "\n".into()]);
        lines.collect()
    };
    let Some(found) = root.entries().iter().find(|entry| entry.key == section) else {
        let lines = format!("{}:\n{}", scalar(section), lines(2));
        return Some(spliced(text, end_of_text(text), &lines));
    };
    let NodeValue::List(known) = &found.value.value else { return None };
    // The item's own line shows the indentation of lists; the list may begin anywhere before it.
    if let Some(item) = known.first().map(|item| &text[line_start(text, item.mark.line)..])
        && item.trim_start_matches(' ').starts_with('-')
    {
        let indent = item.len() - item.trim_start_matches(' ').len();
        return Some(spliced(text, end(text, root, found), &lines(indent)));
    }
    let at = offset(text, found.value.mark)?;
    // The end of a list in brackets is unknown; an empty one ends at once.
    let close = at + text[at..].find(']').filter(|_| known.is_empty())?;
    let items = items.iter().map(flow).collect::<Vec<_>>().join(", ");
    Some(format!("{}{items}{}", &text[..close], &text[close..]))
}

/// The end of a section of the root: before the blank lines and comments that lead to the next one.
fn end(text: &str, root: &Node, section: &Entry) -> usize {
    let after = root.entries().iter().map(|entry| entry.mark.line);
    let next = after.filter(|line| *line > section.mark.line).min();
    let stop = next.map_or(text.len(), |line| line_start(text, line));
    let begin = line_start(text, section.mark.line + 1);
    // An indented comment may belong to the section's last entry, or be part of a block string.
    before_comments(text, begin, stop, |line| line.starts_with('#'))
}

/// Goes back from `stop` over blank lines and comments, but not before `begin`.
fn before_comments(text: &str, begin: usize, stop: usize, takes: impl Fn(&str) -> bool) -> usize {
    let mut at = stop;
    for line in text[begin.min(stop)..stop].split_inclusive('\n').rev() {
        let is_comment = line.trim_start().starts_with('#') && takes(line);
        if !line.trim().is_empty() && !is_comment {
            break;
        }
        at -= line.len();
    }
    at
}

/// The end of the text, before blank lines.
fn end_of_text(text: &str) -> usize {
    text.trim_end().len() + text[text.trim_end().len()..].find('\n').map_or(0, |at| at + 1)
}

/// Puts whole lines at an offset, with the line ends of the text.
fn spliced(text: &str, at: usize, lines: &str) -> String {
    let (before, after) = text.split_at(at);
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { end };
    format!("{before}{gap}{}{after}", lines.replace('\n', end))
}

fn column(mark: Mark) -> usize {
    (mark.column as usize).saturating_sub(1)
}

fn line_start(text: &str, line: u32) -> usize {
    let lines = text.split_inclusive('\n').take((line as usize).saturating_sub(1));
    lines.map(str::len).sum()
}

fn offset(text: &str, mark: Mark) -> Option<usize> {
    let start = line_start(text, mark.line);
    let (at, _) = text.get(start..)?.char_indices().nth(column(mark))?;
    Some(start + at)
}
