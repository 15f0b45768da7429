//! JSON without comments, trailing commas or repeated keys, read in one pass. Registry files are such JSON
//! and may have thousands of entries; what this reader does not take is left to the one that can say why.

use std::collections::HashSet;

use super::{DEPTH_MAX, count};
use crate::config::node::{Entry, Mark, Node, NodeValue, Text};

/// Up to how many keys an object is searched for repeated ones without an index.
const SCANNED_KEYS_MAX: usize = 16;

/// The tree of a strict JSON text. None for any other text, be it looser JSON or broken.
pub(super) fn parse(text: &str) -> Option<Node> {
    let mut reader = Reader { text, at: 0, line: 1, known: (0, 1) };
    let node = reader.value(0)?;
    reader.skip_space();
    (reader.at == text.len()).then_some(node)
}

/// `{"tools": [...]}`, read one entry at a time.
pub(in crate::config) struct ToolList<'a> {
    reader: Reader<'a>,
    root: Mark,
    key: Mark,
    list: Mark,
    is_at_start: bool,
}

impl<'a> ToolList<'a> {
    /// Begins at the first entry. None for any other text.
    pub(in crate::config) fn open(text: &'a str) -> Option<Self> {
        let mut reader = Reader { text, at: 0, line: 1, known: (0, 1) };
        reader.skip_space();
        let root = reader.mark();
        let is_object = reader.take(b'{');
        reader.skip_space();
        let key = reader.mark();
        let is_tools = is_object && reader.string()? == "tools";
        reader.skip_space();
        let has_value = is_tools && reader.take(b':');
        reader.skip_space();
        let list = reader.mark();
        let is_list = has_value && reader.take(b'[');
        is_list.then_some(Self { reader, root, key, list, is_at_start: true })
    }

    /// Goes to the next entry. None where the list is not strict JSON.
    pub(in crate::config) fn next_entry(&mut self) -> Option<NextEntry> {
        self.reader.skip_space();
        if self.reader.take(b']') {
            return Some(NextEntry::End);
        }
        if !std::mem::take(&mut self.is_at_start) {
            if !self.reader.take(b',') {
                return None;
            }
            self.reader.skip_space();
        }
        Some(NextEntry::At(self.reader.mark()))
    }

    /// The offset of the next byte.
    pub(in crate::config) fn offset(&self) -> usize {
        self.reader.at
    }

    /// Reads an entry.
    pub(in crate::config) fn value(&mut self) -> Option<Node> {
        self.reader.value(2)
    }

    /// Skips an entry whose text is known.
    pub(in crate::config) fn skip(&mut self, bytes: usize, span: Span) {
        if span.lines > 0 {
            self.reader.known = (self.reader.at + span.last_line, 1);
        }
        self.reader.line += span.lines;
        self.reader.at += bytes;
    }

    /// Ends after the list. Returns the positions of the object, its key and the list.
    pub(in crate::config) fn close(mut self) -> Option<(Mark, Mark, Mark)> {
        self.reader.skip_space();
        let is_closed = self.reader.take(b'}');
        self.reader.skip_space();
        let is_end = self.reader.at == self.reader.text.len();
        (is_closed && is_end).then_some((self.root, self.key, self.list))
    }
}

/// The next part of a list.
pub(in crate::config) enum NextEntry {
    /// An entry at this position.
    At(Mark),
    /// The end of the list.
    End,
}

/// The lines of a text.
#[derive(Clone, Copy)]
pub(in crate::config) struct Span {
    /// Number of line breaks.
    lines: usize,
    /// The offset at which the last line begins.
    last_line: usize,
}

impl Span {
    pub(in crate::config) fn of(text: &str) -> Self {
        let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        Self { lines, last_line: text.rfind('\n').map_or(0, |at| at + 1) }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// The line of `at`.
    line: usize,
    /// An offset in this line, and its column.
    known: (usize, usize),
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Option<Node> {
        self.skip_space();
        let mark = self.mark();
        if depth > DEPTH_MAX {
            return None;
        }
        let value = match self.peek()? {
            b'{' => NodeValue::Map(self.entries(depth)?),
            b'[' => NodeValue::List(self.items(depth)?),
            b'"' => NodeValue::Text(Text { text: self.string()?, shown: None }),
            b'-' | b'0'..=b'9' => NodeValue::Number(self.number()?.to_owned()),
            b't' => self.word("true", NodeValue::Bool(true))?,
            b'f' => self.word("false", NodeValue::Bool(false))?,
            b'n' => self.word("null", NodeValue::Null)?,
            _ => return None,
        };
        Some(Node::new(value, mark))
    }

    fn entries(&mut self, depth: usize) -> Option<Vec<Entry>> {
        self.at += 1;
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen = HashSet::new();
        self.skip_space();
        if self.take(b'}') {
            return Some(entries);
        }
        loop {
            self.skip_space();
            let mark = self.mark();
            let key = self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return None;
            }
            if entries.len() == SCANNED_KEYS_MAX {
                seen.extend(entries.iter().map(|entry| entry.key.clone()));
            }
            let is_new = if entries.len() < SCANNED_KEYS_MAX {
                entries.iter().all(|entry| entry.key != key)
            } else {
                seen.insert(key.clone())
            };
            if !is_new {
                return None;
            }
            let value = self.value(depth + 1)?;
            entries.push(Entry { key, mark, value });
            self.skip_space();
            if self.take(b'}') {
                return Some(entries);
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn items(&mut self, depth: usize) -> Option<Vec<Node>> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Some(items);
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.take(b']') {
                return Some(items);
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        if !self.take(b'"') {
            return None;
        }
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut has_escapes = false;
        loop {
            self.at += memchr::memchr2(b'"', b'\\', &bytes[self.at..])?;
            if bytes[self.at] == b'"' {
                break;
            }
            has_escapes = true;
            self.at += 2;
            if self.at > bytes.len() {
                return None;
            }
        }
        self.at += 1;
        let inside = &self.text[start..self.at - 1];
        if inside.bytes().any(|byte| byte < 0x20) {
            return None;
        }
        if has_escapes {
            return serde_json::from_str(&self.text[start - 1..self.at]).ok();
        }
        Some(inside.to_owned())
    }

    /// A number as it is written.
    fn number(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Some(&self.text[start..self.at])
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn word(&mut self, word: &str, value: NodeValue) -> Option<NodeValue> {
        self.text[self.at..].starts_with(word).then(|| {
            self.at += word.len();
            value
        })
    }

    fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => {
                    self.line += 1;
                    self.known = (self.at + 1, 1);
                }
                b' ' | b'\t' | b'\r' => {}
                _ => return,
            }
            self.at += 1;
        }
    }

    fn take(&mut self, wanted: u8) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += usize::from(is_there);
        is_there
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn mark(&mut self) -> Mark {
        let (known, column) = self.known;
        let column = column + self.text[known..self.at].chars().count();
        self.known = (self.at, column);
        Mark { line: count(self.line), column: count(column) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::json::parse_loosely;
    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 20, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::hash_map(any::<String>(), inner, 0..20)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Values, strings and positions are those of the other reader.
        #[test]
        fn strict_json_is_read_as_by_the_loose_reader(value in value()) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let strict = parse(&text);
                prop_assert_eq!(strict, Some(parse_loosely(&text).unwrap()));
            }
        }

        /// The loose reader takes everything that the strict reader takes, in the same way.
        #[test]
        fn nothing_is_taken_that_the_loose_reader_refuses(
            text in r#"[ \n\[\]{}:,"a\\u0-2eE.+\-tf/*é]{0,24}"#,
        ) {
            if let Some(node) = parse(&text) {
                prop_assert_eq!(parse_loosely(&text).ok(), Some(node));
            }
        }
    }

    #[test]
    fn what_needs_an_explanation_is_left_to_the_other_reader() {
        for text in [
            "",
            "{",
            "[1,]",
            "// a\n1",
            r#"{"a":1,"a":2}"#,
            "01",
            "1.",
            "tru",
            "\"a\nb\"",
            "\"\\",
            r#""\ud800""#,
            "1 2",
            "{'a':1}",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        let many = (0..20).fold(String::new(), |many, number| format!("{many}\"{number}\":0,"));
        assert_eq!(parse(&format!("{{{many}\"3\":0}}")), None, "a repeated key");
        assert_eq!(parse(&("[".repeat(500) + &"]".repeat(500))), None, "too deep");
    }
}
