//! Names with gaps: `*` stands for any characters, also none.

/// Whether `text` fits a pattern with `*`.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
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
    /// Reads a pattern; nothing where it is empty, or says `?`, `[` or `{`, which would stand for themselves
    /// here and for something else in most other places.
    pub fn parse(text: &str) -> Option<Self> {
        let is_one = !text.trim().is_empty() && !text.contains(['?', '[', ']', '{', '}']);
        is_one.then(|| Self(text.to_owned()))
    }

    /// Whether a name fits.
    pub fn fits(&self, name: &str) -> bool {
        fits(&self.0, name)
    }
}

impl std::fmt::Display for NamePattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
