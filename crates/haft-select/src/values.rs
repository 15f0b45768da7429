//! Values in a request. Paths, addresses, ids and quoted strings name the subject, not the action.

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Url,
    Email,
    /// A file name, or a path that ends in one.
    File,
    /// A path without a file ending.
    Folder,
    /// Letters, a separator and digits: `C-1042`.
    Id,
    /// Hexadecimal digits, such as a commit hash.
    Hash,
    /// A clock time: `15:30`.
    Time,
    Number,
}

/// A piece of a request between white space.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk<'a> {
    pub(super) text: &'a str,
    pub(super) value: Option<Value>,
    /// In quotes, or behind the colon of an instruction: "Rewrite this: ...".
    pub(super) is_quoted: bool,
}

/// Lengths of abbreviated and full hashes.
const HASH_CHARS: std::ops::RangeInclusive<usize> = 7..=40;
/// Lengths of file endings.
const ENDING_CHARS: std::ops::RangeInclusive<usize> = 1..=9;
/// Lengths of what an id begins with, its separator included.
const PREFIX_CHARS: std::ops::RangeInclusive<usize> = 2..=9;
/// A colon after more words than this does not introduce quoted content.
const INSTRUCTION_WORDS_MAX: usize = 6;

/// The pieces of a request, in their order.
pub(super) fn chunks(request: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let mut closing: Option<char> = None;
    let mut is_behind_colon = false;
    for (at, text) in request.split_whitespace().enumerate() {
        let opened = text.chars().next().and_then(closing_quote);
        if closing.is_none() {
            closing = opened;
        }
        let is_quoted = closing.is_some() || is_behind_colon;
        let end = text.trim_end_matches(['.', ',', '?', '!', ';', ')', ':']);
        let is_alone = opened.is_some() && end.chars().nth(1).is_none();
        if closing.is_some_and(|quote| end.ends_with(quote)) && !is_alone {
            closing = None;
        }
        is_behind_colon |= at < INSTRUCTION_WORDS_MAX && text.len() > 1 && text.ends_with(':');
        chunks.push(Chunk { text, value: value(text), is_quoted });
    }
    // A quote that never closes is an apostrophe.
    if closing.is_some() {
        for chunk in &mut chunks {
            chunk.is_quoted &= is_behind_colon;
        }
    }
    chunks
}

fn closing_quote(opening: char) -> Option<char> {
    Some(match opening {
        '"' => '"',
        '“' => '”',
        '\'' => '\'',
        '‘' => '’',
        '`' => '`',
        _ => return None,
    })
}

fn value(text: &str) -> Option<Value> {
    let text = bare(text);
    let is_digit = |char: char| char.is_ascii_digit();
    if text.contains("://") || text.starts_with("www.") {
        return Some(Value::Url);
    }
    if text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.')) {
        return Some(Value::Email);
    }
    if is_path(text) {
        return Some(if has_ending(text) { Value::File } else { Value::Folder });
    }
    if has_ending(text) {
        return Some(Value::File);
    }
    if is_time(text) {
        return Some(Value::Time);
    }
    if is_hash(text) {
        return Some(Value::Hash);
    }
    if id_prefix(text).is_some() {
        return Some(Value::Id);
    }
    text.trim_start_matches(['$', '€', '£', '#']).starts_with(is_digit).then_some(Value::Number)
}

/// A word without the signs around it and without a genitive.
fn bare(text: &str) -> &str {
    let is_sign = |char: char| {
        matches!(
            char,
            '"' | '\'' | ',' | '!' | '?' | '(' | ')' | ';' | '`' | ':' | '“' | '”' | '‘' | '’'
        )
    };
    let text = text.trim_matches(is_sign).trim_end_matches('.');
    text.strip_suffix("'s").or_else(|| text.strip_suffix("’s")).unwrap_or(text)
}

pub(super) fn is_path(text: &str) -> bool {
    let is_rooted = text.starts_with('/') || text.starts_with("./") || text.starts_with("~/");
    (is_rooted || text.matches('/').count() > 1) && text.contains(char::is_alphabetic)
}

pub(super) fn is_time(text: &str) -> bool {
    text.contains(':')
        && text.starts_with(|char: char| char.is_ascii_digit())
        && text.chars().all(|char| char == ':' || char.is_ascii_digit())
}

/// `notes.txt`, `*.csv` and `.gitignore`, but not `3.5` and `e.g`.
fn has_ending(text: &str) -> bool {
    let last = text.rsplit('/').next().unwrap_or(text);
    last.rsplit_once('.').is_some_and(|(stem, ending)| {
        (stem.len() > 1 || ending.len() > 1)
            && ENDING_CHARS.contains(&ending.len())
            && ending.starts_with(|char: char| char.is_ascii_alphabetic())
            && ending.chars().all(|char| char.is_ascii_alphanumeric())
    })
}

fn is_hash(text: &str) -> bool {
    let is_digit = |char: char| char.is_ascii_digit();
    let is_letter = |char: char| ('a'..='f').contains(&char);
    HASH_CHARS.contains(&text.len())
        && text.chars().all(|char| is_digit(char) || is_letter(char))
        && text.contains(is_digit)
        && text.contains(is_letter)
}

/// The common prefix of ids of one kind: `m-48213` and `m-47720` both begin with `m-`.
pub(super) fn id_prefix(text: &str) -> Option<String> {
    let text = bare(text);
    let at = text.find(|char: char| char.is_ascii_digit())?;
    let (prefix, digits) = text.split_at(at);
    let letters = prefix.strip_suffix(['-', '_', '#'])?;
    let is_prefix = PREFIX_CHARS.contains(&prefix.len())
        && letters.chars().all(|char| char.is_ascii_alphabetic());
    let is_id = is_prefix && digits.chars().all(|char| char.is_ascii_alphanumeric());
    is_id.then(|| prefix.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_by_their_shape() {
        let kinds = |request| -> Vec<Value> {
            chunks(request).into_iter().filter_map(|chunk| chunk.value).collect()
        };
        assert_eq!(kinds("move /srv/a.txt to /srv/old"), [Value::File, Value::Folder]);
        assert_eq!(kinds("mail ida@berg.no about C-1042."), [Value::Email, Value::Id]);
        assert_eq!(kinds("fetch https://a.example, 15:30"), [Value::Url, Value::Time]);
        assert_eq!(kinds("what did 4fa21bc do in 2024?"), [Value::Hash, Value::Number]);
        assert_eq!(kinds("a well-known fact, e.g. this and/or that"), []);
    }

    #[test]
    fn quotes_and_texts_behind_an_instruction_are_quoted() {
        let quoted = |request| -> Vec<&str> {
            let chunks = chunks(request).into_iter();
            chunks.filter(|chunk| chunk.is_quoted).map(|chunk| chunk.text).collect()
        };
        assert_eq!(quoted("commit with 'Add footer', please"), ["'Add", "footer',"]);
        assert_eq!(quoted("Rewrite this: it's done"), ["it's", "done"]);
        assert_eq!(quoted("the dogs' owner said 'tis late"), [""; 0]);
    }
}
