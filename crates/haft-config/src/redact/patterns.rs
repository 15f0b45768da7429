//! Patterns of secrets.

use std::sync::LazyLock;

use regex::{Regex, escape};

/// A key of Haft's own. Haft knows those by their hash alone.
const OWN_KEY: &str = r"haft_(?:admin|call)_[A-Za-z0-9_-]{43}";

/// Present in any JSON that holds such a key.
pub(super) const OWN_KEY_HINTS: [&str; 2] = ["haft_admin_", "haft_call_"];

/// Shapes that tokens and keys of well-known services have. `(?-u:\b)` is a word's edge in ASCII,
/// which the engine finds much faster than one in Unicode.
const SHAPES: [&str; 8] = [
    OWN_KEY,
    r"(?<scheme>(?i-u:\bbearer\s+))[A-Za-z0-9._~+/-]{6,}=*",
    r#"(?<user>://[^\s/:@?#"'<>]*:)[^\s/"'<>]+(?<at>@)"#,
    r"(?-u:\b)sk-[A-Za-z0-9_-]{16,}",
    r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})",
    r"(?-u:\b)xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"(?-u:\b)(?:AKIA|ASIA)[0-9A-Z]{16}(?-u:\b)",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
];

/// The beginnings of token shapes. One is present in any JSON that holds such a token. There is no word
/// boundary here: the `n` of an escaped line break may come right before.
pub(super) const TOKEN_HINTS: [&str; 13] = [
    "haft_admin_",
    "haft_call_",
    "sk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "xox",
    "AKIA",
    "ASIA",
    "-----BEGIN ",
];

/// The token shapes, for text. Compiled once: a redactor is built for every change of the toolbox.
pub(super) fn shapes() -> Regex {
    static COMPILED: LazyLock<Regex> = LazyLock::new(|| compile(&SHAPES.join("|")));
    COMPILED.clone()
}

/// Haft's own keys, for text.
pub(super) fn own_keys() -> Regex {
    static COMPILED: LazyLock<Regex> = LazyLock::new(|| compile(OWN_KEY));
    COMPILED.clone()
}

/// The known secrets, for text: plain, and as they look in JSON that is quoted in the text.
pub(super) fn known(secrets: &[String]) -> Option<Regex> {
    let spellings = secrets.iter().flat_map(|secret| [escape(secret), in_json(secret)]);
    (!secrets.is_empty()).then(|| compile(&spellings.collect::<Vec<_>>().join("|")))
}

/// The known secrets, for JSON.
pub(super) fn known_in_json(secrets: &[String]) -> Option<Regex> {
    let spellings = secrets.iter().map(|secret| in_json(secret));
    (!secrets.is_empty()).then(|| compile(&spellings.collect::<Vec<_>>().join("|")))
}

/// A pattern for `secret` inside a JSON string, also one that is itself inside a JSON string and
/// so has more backslashes.
fn in_json(secret: &str) -> String {
    let mut pattern = String::new();
    for c in secret.chars() {
        match c {
            '"' => pattern.push_str(r#"\\+""#),
            '\\' => pattern.push_str(r"\\+"),
            '/' => pattern.push_str(r"\\*/"),
            '\n' => pattern.push_str(r"\\+n"),
            '\r' => pattern.push_str(r"\\+r"),
            '\t' => pattern.push_str(r"\\+t"),
            '\u{8}' => pattern.push_str(r"\\+b"),
            '\u{c}' => pattern.push_str(r"\\+f"),
            c => pattern.push_str(&escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    pattern
}

fn compile(pattern: &str) -> Regex {
    regex::RegexBuilder::new(pattern)
        // The size depends on the configuration's secrets alone, and redaction must not fail.
        .size_limit(usize::MAX)
        .build()
        .expect("the patterns are constants and escaped literals")
}
