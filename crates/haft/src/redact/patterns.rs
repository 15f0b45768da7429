//! What a secret looks like.

use regex::{Regex, escape};

/// A key of Haft's own. Haft knows those by their hash alone.
const OWN_KEY: &str = r"haft_(?:admin|call)_[A-Za-z0-9_-]{43}";

/// What JSON has somewhere if it holds such a key.
const OWN_KEY_HINTS: &str = r"\\u|haft_(?:admin|call)_";

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

/// What JSON has somewhere if it holds a token shape. A JSON writer may also spell any character as
/// `\u0061`, so a text with such escapes is looked at closely whatever it says. There is no
/// word's edge here: the `n` of an escaped line break may come right before.
///
/// They are apart because of speed: literals are found many bytes at a time, but not together
/// with a word that may be in any case.
const HINTS: [&str; 2] = [
    r"\\u|://[^/]*@|haft_admin_|haft_call_|sk-|gh[pousr]_|github_pat_|xox|AKIA|ASIA|-----BEGIN ",
    r"(?i-u:bearer)",
];

/// The token shapes, for text.
pub(super) fn shapes() -> Regex {
    compile(&SHAPES.join("|"))
}

/// Haft's own keys, for text.
pub(super) fn own_keys() -> Regex {
    compile(OWN_KEY)
}

/// What makes JSON worth a closer look for such keys.
pub(super) fn own_key_hints() -> Regex {
    compile(OWN_KEY_HINTS)
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

/// What makes JSON worth a closer look, whatever the secrets are.
pub(super) fn hints() -> [Regex; 2] {
    HINTS.map(compile)
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
        // The size depends on the configuration's secrets alone, and refusing to redact is no option.
        .size_limit(usize::MAX)
        .build()
        .expect("the patterns are constants and escaped literals")
}
