//! Misleading names: invisible characters, and characters that look like others (Unicode Technical
//! Standard 39).

use std::collections::BTreeSet;
use std::sync::LazyLock;

use unicode_security::skeleton;

use crate::text::is_deceptive;

/// Maximum number of characters that a message names.
const ODD_SHOWN_MAX: usize = 5;

/// Returns true if no character of a name is visible.
pub fn is_blank(name: &str) -> bool {
    name.chars().all(|c| c.is_whitespace() || is_invisible(c))
}

/// Returns the invisible characters of a name and those that look like ASCII letters and digits.
/// `None` for a name in another script that does not imitate ASCII.
pub fn odd_characters(name: &str) -> Option<String> {
    let mut odd = BTreeSet::new();
    let passes_for_ascii =
        || name.chars().any(|c| c.is_ascii_alphabetic()) || look(name).is_ascii();
    for c in name.chars().filter(|c| !c.is_ascii() || c.is_control()) {
        let code = u32::from(c);
        let look: String = skeleton(c.encode_utf8(&mut [0; 4])).collect();
        if is_invisible(c) {
            odd.insert(format!("U+{code:04X} (invisible)"));
        } else if look.bytes().all(|byte| byte.is_ascii_alphanumeric()) && passes_for_ascii() {
            odd.insert(format!("U+{code:04X} (looks like `{look}`)"));
        }
    }
    let more = odd.len().saturating_sub(ODD_SHOWN_MAX);
    let mut shown: Vec<String> = odd.into_iter().take(ODD_SHOWN_MAX).collect();
    shown.extend((more > 0).then(|| format!("{more} more")));
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// The visual skeleton of a name: lookalike names have the same one.
pub fn look(name: &str) -> String {
    if name.is_ascii() {
        return name.bytes().map(|byte| ASCII_LOOKS[usize::from(byte)].as_str()).collect();
    }
    look_of_any(name)
}

/// The looks of the ASCII characters. They do not combine, so the look of an ASCII name is that of its characters.
static ASCII_LOOKS: LazyLock<[String; 128]> = LazyLock::new(|| {
    std::array::from_fn(|code| {
        let code = u32::try_from(code).ok().and_then(char::from_u32);
        code.map(|c| look_of_any(c.encode_utf8(&mut [0; 4]))).unwrap_or_default()
    })
});

fn look_of_any(name: &str) -> String {
    let visible: String = name.chars().filter(|c| !is_invisible(*c)).collect();
    skeleton(&visible).collect()
}

fn is_invisible(c: char) -> bool {
    // In addition to the deceptive characters: joiners, selectors and fillers.
    is_deceptive(c)
        || matches!(c, '\u{34f}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}' | '\u{fe00}'..='\u{fe0f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn honest_names_of_any_script_are_fine() {
        for name in ["read_file", "get it/now!", "날씨", "погода", "météo", "天気"] {
            assert_eq!(odd_characters(name), None, "{name}");
        }
        assert!(!is_blank("날씨") && !is_blank("-"));
    }

    /// The table of ASCII characters gives what the whole name gives.
    #[test]
    fn ascii_names_look_like_their_characters() {
        let all: String = (0..128_u8).map(char::from).collect();
        for name in [all.as_str(), "fi1e", "read_file", "rn\u{7f}m|I0"] {
            assert_eq!(look(name), look_of_any(name));
        }
    }

    #[test]
    fn what_cannot_be_seen_or_looks_like_something_else_is_named() {
        assert_eq!(odd_characters("r\u{435}ad"), Some("U+0435 (looks like `e`)".to_owned()));
        assert_eq!(odd_characters("read\u{200b}"), Some("U+200B (invisible)".to_owned()));
        // Cyrillic from the first letter to the last.
        assert!(odd_characters("\u{430}\u{441}\u{435}").is_some());
        assert_eq!(look("r\u{435}ad\u{200b}"), look("read"));
        assert_eq!(look("fi1e"), look("file"));
        assert_ne!(look("file"), look("files"));
        for blank in ["", " ", "\u{200b}", "\u{3164}\u{2800}\t"] {
            assert!(is_blank(blank), "{blank:?}");
        }
    }
}
