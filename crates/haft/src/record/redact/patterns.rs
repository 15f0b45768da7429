//! What a secret looks like.

use regex::{Regex, escape};

/// The ends of keys that hold secrets. `max_tokens`, `token_count` and `tokenize` end otherwise.
const SECRET_KEY: &str = "(?i:pass[-_. ]?word|pass[-_. ]?phrase|passwd|secret|token|authorization|cookie\
    |(?:api|access|private|secret)[-_. ]?key)";

/// Places in a list, not secrets; the log must show which page a call asked for.
const HARMLESS_KEY: &str = "(?i:(?:page|next|continuation)[-_. ]?token)";

/// Shapes that tokens and keys of well-known services have. `(?-u:\b)` is a word's edge in ASCII,
/// which the engine finds much faster than one in Unicode.
const SHAPES: [&str; 7] = [
    r"(?<scheme>(?i-u:\bbearer\s+))[A-Za-z0-9._~+/-]{6,}=*",
    r#"(?<user>://[^\s/:@?#"'<>]*:)[^\s/"'<>]+(?<at>@)"#,
    r"(?-u:\b)sk-[A-Za-z0-9_-]{16,}",
    r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})",
    r"(?-u:\b)xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"(?-u:\b)(?:AKIA|ASIA)[0-9A-Z]{16}(?-u:\b)",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
];

/// Beginnings of the shapes as they stand in JSON. There is no word's edge here: the `n` of an
/// escaped line break may come right before.
const SHAPE_HINTS: &str =
    r"(?i:bearer)[\s\\]|://[^/]*@|sk-|gh[pousr]_|github_pat_|xox|AKIA|ASIA|-----BEGIN ";

/// The token shapes, for text.
pub(super) fn shapes() -> Regex {
    compile(&SHAPES.join("|"))
}

/// Keys whose string value is a secret.
pub(super) fn secret_key() -> Regex {
    compile(&format!("{SECRET_KEY}$"))
}

/// Exceptions to [`secret_key`].
pub(super) fn harmless_key() -> Regex {
    compile(&format!("{HARMLESS_KEY}$"))
}

/// The known secrets, for text: plain, and as they look in JSON that is quoted in the text.
pub(super) fn known(secrets: &[String]) -> Option<Regex> {
    let spellings = secrets
        .iter()
        .flat_map(|secret| [escape(secret), in_json(secret)]);
    (!secrets.is_empty()).then(|| compile(&alternatives(spellings)))
}

/// Matches every JSON text that redaction might change, and few others.
///
/// A JSON writer may spell any character as `\u0061`. Such texts are suspicious as a whole, so
/// every secret needs to be searched in one spelling only.
pub(super) fn suspicion(secrets: &[String]) -> Regex {
    let secrets = alternatives(secrets.iter().map(|secret| in_json(secret)));
    let key = format!(r#"{SECRET_KEY}\\*"\s*:"#);
    compile(&[&secrets, &key, r"\\u", SHAPE_HINTS].join("|"))
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

/// A pattern for any of `patterns`; one that never matches if there are none.
fn alternatives(patterns: impl Iterator<Item = String>) -> String {
    let patterns: Vec<String> = patterns.collect();
    if patterns.is_empty() {
        r"[^\s\S]".into()
    } else {
        patterns.join("|")
    }
}

fn compile(pattern: &str) -> Regex {
    regex::RegexBuilder::new(pattern)
        // The size depends on the configuration's secrets alone, and refusing to redact is no option.
        .size_limit(usize::MAX)
        .build()
        .expect("the patterns are constants and escaped literals")
}
