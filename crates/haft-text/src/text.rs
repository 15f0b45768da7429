//! Makes untrusted text safe for terminals and one-line logs.

use std::borrow::Cow;

/// Returns at most `chars_max` characters from the start of a string.
pub fn beginning(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).map_or(text, |(end, _)| &text[..end])
}

/// Escapes control characters, bidirectional overrides, zero-width and tag characters, so that a
/// name cannot forge a log line or hide part of itself.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_deceptive) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| {
        if is_deceptive(c) { c.escape_unicode().to_string() } else { c.to_string() }
    };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Like [`printable`], for blocks of text on a terminal: keeps line breaks, tabs and the joiners
/// that Persian, Hindi and emoji need.
pub fn printable_block(text: &str) -> Cow<'_, str> {
    let hidden =
        |c: char| is_deceptive(c) && !matches!(c, '\n' | '\t' | '\u{ad}' | '\u{200c}'..='\u{200f}');
    if !text.chars().any(hidden) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| {
        if hidden(c) { c.escape_unicode().to_string() } else { c.to_string() }
    };
    Cow::Owned(text.chars().map(escape).collect())
}

/// Escapes the same characters in JSON text by JSON's own escapes, so that its value stays the
/// same.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    let hidden = |c: char| is_deceptive(c) && c != '\n';
    if !json.chars().any(hidden) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if hidden(c) {
            let units = c.encode_utf16(&mut [0; 2]).to_vec();
            text.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            text.push(c);
        }
    }
    Cow::Owned(text)
}

/// Returns true for a character that is invisible, blank, or able to reorder or end a line.
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Invisible or blank where a letter is expected.
            '\u{ad}'
            | '\u{115f}'..='\u{1160}'
            | '\u{180e}'
            | '\u{3164}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0100}'..='\u{e01ef}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_forge_a_line_is_shown_as_an_escape() {
        assert_eq!(printable("a\nERROR: b"), "a\\u{a}ERROR: b");
        assert_eq!(printable("x\u{202e}y\u{200b}"), "x\\u{202e}y\\u{200b}");
        assert_eq!(printable("x\u{61c}y"), "x\\u{61c}y");
        assert_eq!(printable("서울 weather"), "서울 weather");
        assert_eq!(printable_block("a\nb\u{1b}[31m"), "a\nb\\u{1b}[31m");
        for text in ["می\u{200c}خواهم", "👨\u{200d}👩\u{200d}👧", "क्\u{200d}ष", "co\u{ad}op"]
        {
            assert_eq!(printable_block(text), text);
            assert_ne!(printable(text), text);
        }
        assert_eq!(printable_block("x\u{202e}y\u{200b}"), "x\\u{202e}y\\u{200b}");
        assert_eq!(
            printable_json("{\n\"a\u{202e}\u{e0041}\u{9b}\": 1}"),
            "{\n\"a\\u202e\\udb40\\udc41\\u009b\": 1}"
        );
    }
}
