//! Names and words with gaps.
//!
//! In a [`NamePattern`] `*` stands for any characters: names of tools and servers have no structure, and a
//! pattern of `exclude_tools` must not miss one. In a [`WordPattern`], which decides what may run, `*`
//! stands for the characters of a plain name, so that it cannot take in a version, an address or a path.

/// Returns true if `text` matches a pattern with `*`.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A name of a server or a tool, with gaps where wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern(String);

impl NamePattern {
    /// Parses a pattern; `None` if it is empty, or contains `?`, `[` or `{`, which are literal here
    /// and special in most other places.
    pub fn parse(text: &str) -> Option<Self> {
        let is_one = !text.trim().is_empty() && !text.contains(['?', '[', ']', '{', '}']);
        is_one.then(|| Self(text.to_owned()))
    }

    /// A pattern for the tools of one server; `None` if it is empty. A server may choose any name, and each of them
    /// can be denied.
    pub fn of_tools(text: &str) -> Option<Self> {
        (!text.trim().is_empty()).then(|| Self(text.to_owned()))
    }

    /// Returns true if a name matches.
    pub fn fits(&self, name: &str) -> bool {
        fits(&self.0, name)
    }

    /// Returns true if a tool matches by its name, or as `server/tool`.
    pub fn fits_tool(&self, server: &str, tool: &str) -> bool {
        self.fits(tool) || (self.0.contains('/') && self.fits(&format!("{server}/{tool}")))
    }
}

impl NamePattern {
    /// Returns true if a tool of this server may match: a pattern with `/` names the server before it.
    pub fn may_fit_tools_of(&self, server: &str) -> bool {
        self.0.split_once('/').is_none_or(|(name, _)| fits(name, server))
    }
}

impl std::fmt::Display for NamePattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A word of a command line or the name of a variable, with gaps: `*` stands for letters, digits, `.`, `_`
/// and `-`, `**` for anything. Either may stand for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordPattern {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    Is(char),
    /// `*`
    Name,
    /// `**`
    Anything,
}

impl WordPattern {
    /// Reads a pattern. Every text is one.
    pub fn new(text: &str) -> Self {
        let mut pieces = Vec::new();
        for c in text.chars() {
            match (c, pieces.last()) {
                ('*', Some(Piece::Name | Piece::Anything)) => {
                    pieces.pop();
                    pieces.push(Piece::Anything);
                }
                ('*', _) => pieces.push(Piece::Name),
                (c, _) => pieces.push(Piece::Is(c)),
            }
        }
        Self { text: text.to_owned(), pieces }
    }

    /// Returns true if it contains a wildcard.
    pub fn has_anything(&self) -> bool {
        self.pieces.contains(&Piece::Anything)
    }

    /// Returns true if the whole of `word` matches.
    pub fn fits(&self, word: &str) -> bool {
        if self.pieces.contains(&Piece::Name) {
            // A gap stands for a name: neither for the folder above nor for an option of the program.
            let leads_up = word.split('/').any(|step| step == "..");
            let is_option = self.pieces.first() == Some(&Piece::Name) && word.starts_with('-');
            if leads_up || is_option {
                return false;
            }
        }
        // The pieces before which the part read so far may end.
        let mut reached = vec![false; self.pieces.len() + 1];
        reached[0] = true;
        self.skip_gaps(&mut reached);
        for c in word.chars() {
            let mut next = vec![false; reached.len()];
            for (at, piece) in self.pieces.iter().enumerate().filter(|(at, _)| reached[*at]) {
                match piece {
                    Piece::Is(wanted) => next[at + 1] |= *wanted == c,
                    Piece::Name => next[at] |= is_of_a_name(c),
                    Piece::Anything => next[at] = true,
                }
            }
            reached = next;
            self.skip_gaps(&mut reached);
        }
        reached[self.pieces.len()]
    }

    /// A gap may stand for nothing.
    fn skip_gaps(&self, reached: &mut [bool]) {
        for (at, piece) in self.pieces.iter().enumerate() {
            reached[at + 1] |= reached[at] && !matches!(piece, Piece::Is(_));
        }
    }
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

impl std::fmt::Display for WordPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_of_a_word_stands_for_a_plain_name() {
        let cases = [
            ("mcp-server-*", "mcp-server-time", true),
            ("mcp-server-*", "mcp-server-", true),
            ("mcp-server-*", "mcp-server-time@1.2.3", false),
            ("mcp-server-*", "mcp-server-time==1.2.3", false),
            ("mcp-server-*", "mcp-server-x @ https://evil/x.whl", false),
            ("@scope/*", "@scope/a", true),
            ("@scope/*", "@scope/a/b", false),
            ("@scope/*", "@scope/..", false),
            ("@scope/*", "@scope/x@https://evil/x.tgz", false),
            ("@scope/*", "@scope/x@npm:evil", false),
            ("@scope/*@1.*", "@scope/x@1.2.3", true),
            ("a*b*c", "axbyc", true),
            ("a*b*c", "axcyb", false),
            ("aa*aa", "aaa", false),
            ("*", "-c", false),
            ("--*", "--call", true),
            ("@scope/**", "@scope/x@https://evil/../x.tgz", true),
            ("***", "-any thing", true),
            ("é*", "été", false),
            ("", "", true),
            ("", "a", false),
        ];
        for (pattern, word, fits) in cases {
            assert_eq!(WordPattern::new(pattern).fits(word), fits, "{pattern} {word}");
        }
    }

    #[test]
    fn a_gap_stands_for_any_characters() {
        let cases = [
            ("read_file", "read_file", true),
            ("read_file", "read_files", false),
            ("read_*", "read_file", true),
            ("read_*", "read_", true),
            ("read_*", "re", false),
            ("*_file", "read_file", true),
            ("*", "anything", true),
            ("*", "", true),
            ("a*b*c", "axbyc", true),
            ("a*b*c", "axcyb", false),
            ("aa*aa", "aaa", false),
            ("é*", "été", true),
        ];
        for (pattern, name, fits) in cases {
            assert_eq!(NamePattern::parse(pattern).unwrap().fits(name), fits, "{pattern} {name}");
        }
    }
}
