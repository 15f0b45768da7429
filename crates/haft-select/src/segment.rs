//! A request that wants several things, as its parts.

/// Words between two wishes.
const BETWEEN: [&str; 12] = [
    "and then",
    "and also",
    "then",
    "also",
    "additionally",
    "finally",
    "furthermore",
    "moreover",
    "as well as",
    "after that",
    "next",
    "and",
];

/// Maximum number of parts considered separately.
const PARTS_MAX: usize = 12;

/// The sentences and clauses of a request. `counts` returns true if a part can stand alone. Empty
/// for a request with a single part.
pub(super) fn parts(request: &str, counts: impl Fn(&str) -> bool) -> Vec<&str> {
    let parts: Vec<&str> =
        clauses(request).into_iter().filter(|part| counts(part)).take(PARTS_MAX).collect();
    if parts.len() > 1 { parts } else { Vec::new() }
}

fn clauses(request: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    let mut at = 0;
    while at < request.len() {
        let Some(cut) = cut_at(request, at) else {
            at += request[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        };
        parts.push(request[begin..cut.end].trim());
        begin = cut.next;
        at = cut.next;
    }
    parts.push(request[begin..].trim());
    parts
}

/// The end of a part, and the start of the next one.
struct Cut {
    end: usize,
    next: usize,
}

fn cut_at(request: &str, at: usize) -> Option<Cut> {
    let rest = &request[at..];
    let first = rest.chars().next()?;
    if first == '\n' || first == ';' {
        return Some(Cut { end: at, next: at + 1 });
    }
    if matches!(first, '.' | '!' | '?') && rest[1..].starts_with(char::is_whitespace) {
        return Some(Cut { end: at + 1, next: at + 1 });
    }
    let has_comma = first == ',';
    if !has_comma && !first.is_whitespace() {
        return None;
    }
    let after = rest.trim_start_matches(|char: char| char == ',' || char.is_whitespace());
    let word = BETWEEN.iter().find(|word| {
        // A bare "and" joins things as often as wishes; after a comma it begins a wish.
        (has_comma || **word != "and") && begins_with_word(after, word)
    })?;
    let skipped = rest.len() - after.len() + word.len();
    let next = &rest[skipped..];
    let trimmed = next.trim_start_matches(|char: char| char == ',' || char.is_whitespace());
    Some(Cut { end: at, next: at + skipped + next.len() - trimmed.len() })
}

fn begins_with_word(text: &str, word: &str) -> bool {
    let begins = text.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word));
    begins && !text[word.len()..].starts_with(char::is_alphanumeric)
}
