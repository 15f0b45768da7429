//! YAML 1.2 with the core schema, one document, budgets on depth and on expanded aliases.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::{DEPTH_MAX, SyntaxError, check_json, count, duplicate_key, too_deep};
use crate::config::node::{Entry, Mark, Node, NodeValue, Text};
use crate::remedy::Remedy;

pub(super) fn parse(text: &str, nodes_max: usize) -> Result<Node, SyntaxError> {
    let events = Parser::new_from_str(text);
    let mut builder = Builder { text, events, anchors: HashMap::new(), nodes: 0, nodes_max };
    builder.document().or_else(|error| {
        // Documentation prints JSON sections without the braces around them.
        let is_json_section = text.trim_start().starts_with('"');
        let fits = is_json_section && check_json(text, nodes_max).is_ok();
        let wrapped = fits.then(|| super::json::parse(&format!("{{{text}}}")));
        wrapped.and_then(Result::ok).ok_or(error)
    })
}

struct Builder<'a> {
    text: &'a str,
    events: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Anchored>,
    nodes: usize,
    nodes_max: usize,
}

/// A value that aliases refer to. Each use costs its size again and nests as deep as it does.
struct Anchored {
    node: Node,
    size: usize,
    height: usize,
}

impl<'a> Builder<'a> {
    fn document(&mut self) -> Result<Node, SyntaxError> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::DocumentStart(_) if root.is_some() => {
                    return Err(SyntaxError {
                        mark: mark(span),
                        problem: "a second YAML document starts here".into(),
                        remedy: Remedy::SplitFile,
                    });
                }
                Event::StreamStart
                | Event::DocumentStart(_)
                | Event::DocumentEnd
                | Event::Nothing => {}
                other => root = Some(self.value(other, span, 0)?),
            }
        }
        Ok(root.unwrap_or(Node::new(NodeValue::Null, Mark { line: 1, column: 1 })))
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), SyntaxError> {
        match self.events.next() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(self.syntax_error(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn value(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, SyntaxError> {
        if depth > DEPTH_MAX {
            return Err(too_deep(mark(span)));
        }
        self.spend(1, span)?;
        let before = self.nodes;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && tag.is_none();
                (if plain { scalar(&text) } else { quoted(&text) }, anchor)
            }
            Event::SequenceStart(anchor, _) => (self.list(depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.map(depth)?, anchor),
            Event::Alias(anchor) => {
                let Some(anchored) = self.anchors.get(&anchor) else {
                    return Err(SyntaxError {
                        mark: mark(span),
                        problem: "this alias refers to a value that contains it".into(),
                        remedy: "write the value out".into(),
                    });
                };
                if depth + anchored.height > DEPTH_MAX {
                    return Err(too_deep(mark(span)));
                }
                // Paid for before it is copied.
                let size = anchored.size;
                self.spend(size, span)?;
                let value = self.anchors[&anchor].node.value.clone();
                return Ok(Node::new(value, mark(span)));
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => (NodeValue::Null, 0),
        };
        let node = Node::new(value, mark(span));
        if anchor > 0 {
            let (size, height) = (self.nodes - before + 1, height(&node));
            self.anchors.insert(anchor, Anchored { node: node.clone(), size, height });
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<NodeValue, SyntaxError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(NodeValue::List(items)),
                (event, span) => items.push(self.value(event, span, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<NodeValue, SyntaxError> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen: HashMap<String, Mark> = HashMap::new();
        let mut merged: Vec<Entry> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let key_mark = mark(span);
            let key = match self.value(event, span, depth + 1)?.value {
                NodeValue::Text(Text { text, .. }) | NodeValue::Number(text) => text,
                NodeValue::Bool(yes) => yes.to_string(),
                NodeValue::Null => "null".into(),
                NodeValue::List(_) | NodeValue::Map(_) => {
                    return Err(SyntaxError {
                        mark: key_mark,
                        problem: "a key has to be a string, this one is a list or a map".into(),
                        remedy: "quote the key; `{...}` in a plain value needs quotes too".into(),
                    });
                }
            };
            let (event, span) = self.next()?;
            let value = self.value(event, span, depth + 1)?;
            if key == "<<" {
                let sources =
                    if value.is_map() { std::slice::from_ref(&value) } else { value.items() };
                merged.extend(sources.iter().flat_map(Node::entries).cloned());
                continue;
            }
            if let Some(first) = seen.insert(key.clone(), key_mark) {
                return Err(duplicate_key(&key, key_mark, first));
            }
            entries.push(Entry { key, mark: key_mark, value });
        }
        for entry in merged {
            if seen.insert(entry.key.clone(), entry.mark).is_none() {
                entries.push(entry);
            }
        }
        Ok(NodeValue::Map(entries))
    }

    fn spend(&mut self, nodes: usize, span: Span) -> Result<(), SyntaxError> {
        self.nodes += nodes;
        let nodes_max = self.nodes_max;
        if self.nodes <= nodes_max {
            return Ok(());
        }
        Err(SyntaxError {
            mark: mark(span),
            problem: format!(
                "the document grows beyond {nodes_max} values and keys, aliases expanded"
            ),
            remedy: "use fewer aliases, or split it".into(),
        })
    }

    fn syntax_error(&self, error: &ScanError) -> SyntaxError {
        let at =
            Mark { line: count(error.marker().line()), column: count(error.marker().col() + 1) };
        let line = self.text.lines().nth(at.line.saturating_sub(1) as usize).unwrap_or_default();
        let remedy = if line.contains(": @")
            || line.contains("- @")
            || line.contains(", @")
            || line.contains("[@")
        {
            "a plain value cannot start with `@` in YAML: quote it, such as \"@scope/package\""
        } else if line.contains(": `") {
            "a plain value cannot start with a backtick in YAML: quote it"
        } else if error.info().contains("anchor") {
            "an alias `*name` needs an anchor `&name` before it; quote a string that starts with `*`"
        } else if line.contains('\t') {
            "YAML does not allow tabs for indentation: use spaces"
        } else {
            "fix the YAML there; a string with `: `, `#` or `{` in it needs quotes"
        };
        SyntaxError {
            mark: at,
            problem: format!("this is not valid YAML: {}", error.info()),
            remedy: remedy.into(),
        }
    }
}

/// The levels below a value.
fn height(node: &Node) -> usize {
    let values = node.entries().iter().map(|entry| &entry.value);
    node.items().iter().chain(values).map(|below| height(below) + 1).max().unwrap_or_default()
}

fn mark(span: Span) -> Mark {
    Mark { line: count(span.start.line()), column: count(span.start.col() + 1) }
}

fn quoted(text: &str) -> NodeValue {
    NodeValue::Text(Text { text: text.to_owned(), shown: None })
}

/// The core schema of YAML 1.2, in which `yes`, `no`, `on`, `off` are strings.
pub(super) fn scalar(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => NodeValue::Null,
        "true" | "True" | "TRUE" => NodeValue::Bool(true),
        "false" | "False" | "FALSE" => NodeValue::Bool(false),
        _ if is_number(text) => NodeValue::Number(text.to_owned()),
        _ => quoted(text),
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}
