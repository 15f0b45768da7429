//! The names under which tools are offered: what every model provider accepts.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

/// The longest name of a tool, a prompt or the like that is looked up. Longer ones are refused unread: comparing a name
/// of megabytes with every other one takes seconds.
pub const NAME_BYTES_MAX: usize = 256;
/// How much of a longer name is shown.
const SHOWN_BYTES: usize = 64;

/// Returns a name for a message or the log: of one that is too long, its beginning.
pub fn shown(name: &str) -> Cow<'_, str> {
    if name.len() <= NAME_BYTES_MAX {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("{}...", &name[..name.floor_char_boundary(SHOWN_BYTES)]))
}

/// Longest name that is offered.
pub const NAME_CHARS_MAX: usize = 64;
const HASH_CHARS: usize = 8;

/// The name under which a tool is offered; calls to its server keep the original.
pub fn offered(original: &str) -> String {
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' }
    };
    let name: String = original.chars().map(keep).collect();
    if name.len() <= NAME_CHARS_MAX {
        return name;
    }
    let kept = &name[..NAME_CHARS_MAX - HASH_CHARS - 1];
    format!("{kept}-{}", hash(original, HASH_CHARS))
}

/// `server__tool`.
pub fn prefixed(server: &str, tool: &str) -> String {
    offered(&format!("{server}__{tool}"))
}

/// A name that differs from another tool's of the same server.
pub fn distinct(original: &str) -> String {
    offered(&format!("{original}-{}", hash(original, HASH_CHARS)))
}

/// The first hexadecimal digits of a text's hash.
pub(crate) fn hash(text: &str, chars: usize) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let bytes = digest.iter().take(chars / 2);
    bytes.fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves S3-US4-3, S3-FR-015 (the naming rule).
    #[test]
    fn each_invalid_character_becomes_a_dash() {
        assert_eq!(offered("a b/c!"), "a-b-c-");
        assert_eq!(offered("get_customer-2"), "get_customer-2");
        assert_eq!(offered("날씨"), "--");
    }

    #[test]
    fn a_long_name_is_cut_and_stays_distinct() {
        let (one, two) = (offered(&"a".repeat(70)), offered(&"a".repeat(71)));
        assert_eq!((one.len(), two.len()), (64, 64));
        assert_ne!(one, two);
    }

    proptest::proptest! {
        #[test]
        fn every_name_is_one_that_providers_accept(original in ".{1,200}") {
            let name = offered(&original);
            assert!(name.len() <= NAME_CHARS_MAX && !name.is_empty());
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
        }
    }
}
