//! Splits a file into comments and string literals.

use std::path::Path;

/// A comment or a string literal with the line on which it starts.
pub(super) struct Passage {
    pub(super) line: usize,
    pub(super) text: String,
}

/// The checked parts of one file.
#[derive(Default)]
pub(super) struct Source {
    pub(super) passages: Vec<Passage>,
    pub(super) comment_lines: usize,
    /// Lines on which a doc comment opens with an indirect question, with its first word.
    pub(super) openings: Vec<(usize, &'static str)>,
    /// Rust code in `src`, whose public types count.
    pub(super) is_library_code: bool,
}

const OPENINGS: [&str; 4] = ["What", "Who", "Whether", "How"];

impl Source {
    pub(super) fn is_checked(path: &Path) -> bool {
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        matches!(&*extension, "rs" | "md" | "yaml" | "yml" | "toml" | "service" | "html" | "js")
    }

    pub(super) fn read(path: &Path, text: &str) -> Self {
        let mut source = Self::default();
        if path.extension().is_some_and(|it| it == "rs") {
            source.is_library_code = path.components().any(|it| it.as_os_str() == "src");
            source.read_rust(text);
        } else {
            source.comment_lines = text.lines().count();
            let is_markdown = path.extension().is_some_and(|it| it == "md");
            let text = if is_markdown { without_code(text) } else { text.to_owned() };
            source.passages.push(Passage { line: 1, text });
            source.split_lines();
        }
        source
    }

    /// Prose is reported by its line.
    fn split_lines(&mut self) {
        let whole = std::mem::take(&mut self.passages);
        let lines = whole.iter().flat_map(|it| it.text.lines().enumerate());
        self.passages =
            lines.map(|(at, text)| Passage { line: at + 1, text: text.to_owned() }).collect();
    }

    fn read_rust(&mut self, text: &str) {
        let mut rest = text;
        let mut line = 1;
        let mut last_doc_line = None;
        while !rest.is_empty() {
            let (token, after) = rest.split_at(token_length(rest));
            if token.starts_with("//") {
                self.add_comment(token, line, &mut last_doc_line);
            } else if token.contains('"') && token.len() > 2 && self.is_library_code {
                self.add_string(token, line);
            }
            line += token.matches('\n').count();
            rest = after;
        }
    }

    fn add_comment(&mut self, token: &str, line: usize, last_doc_line: &mut Option<usize>) {
        self.comment_lines += 1;
        let text = token.trim_start_matches('/').trim_start_matches('!').trim();
        if token.starts_with("///") || token.starts_with("//!") {
            let first = text.split(|it: char| !it.is_alphanumeric()).next().unwrap_or_default();
            if last_doc_line.is_none_or(|last| last + 1 != line)
                && let Some(opening) = OPENINGS.into_iter().find(|it| *it == first)
            {
                self.openings.push((line, opening));
            }
            *last_doc_line = Some(line);
        }
        // Words that a line break separates belong together, so comment lines are joined.
        match self.passages.last_mut() {
            Some(last)
                if last.text.starts_with("//") && last.line + last.text.lines().count() == line =>
            {
                last.text.push_str("\n ");
                last.text.push_str(text);
            }
            _ => self.passages.push(Passage { line, text: format!("// {text}") }),
        }
    }

    /// Identifiers and keys are no prose: only literals with a space count.
    fn add_string(&mut self, token: &str, line: usize) {
        if token.contains(' ') {
            self.passages.push(Passage { line, text: token.to_owned() });
        }
    }
}

/// Markdown without its code spans, which quote names and output. Line by line, because blocks have fences.
fn without_code(text: &str) -> String {
    let prose = |line: &str| {
        let parts: Vec<&str> = line.split('`').collect();
        // Without a closing mark the line has no span.
        let is_closed = parts.len() % 2 == 1;
        let spans = parts.iter().enumerate().filter(|(at, _)| !is_closed || at % 2 == 0);
        spans.map(|(_, part)| *part).collect::<Vec<_>>().join("`")
    };
    text.lines().map(prose).collect::<Vec<_>>().join("\n")
}

/// Bytes of the comment, the string literal or the character at the start of `text`.
fn token_length(text: &str) -> usize {
    let first = text.chars().next().map_or(0, char::len_utf8);
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if let Some(hashes) = raw_string_hashes(text) {
        let start = hashes + 2;
        let end = format!("\"{}", "#".repeat(hashes));
        return text[start..].find(&end).map_or(text.len(), |at| start + at + end.len());
    }
    match text.as_bytes() {
        [b'"', ..] => string_length(text),
        [b'\'', b'\\', ..] => text[2..].find('\'').map_or(first, |at| at + 3),
        [b'\'', b'"', b'\'', ..] => 3,
        [byte, ..] if byte.is_ascii_alphanumeric() || *byte == b'_' => word_length(text),
        _ => first,
    }
}

/// A word is one token, so that an `r` at its end starts no raw string.
fn word_length(text: &str) -> usize {
    text.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(text.len())
}

fn raw_string_hashes(text: &str) -> Option<usize> {
    let after = text.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            '"' if !is_escaped => return at + 1,
            _ => is_escaped = character == '\\' && !is_escaped,
        }
    }
    text.len()
}
