//! Offered tool names, in the form that every model provider accepts.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use crate::hex;

/// The longest name that is looked up. Longer ones are rejected unread: comparing a name of
/// megabytes with every other one takes seconds.
pub const NAME_BYTES_MAX: usize = 256;
/// Number of bytes shown of a longer name.
const SHOWN_BYTES: usize = 64;

/// Returns a name for a message or the log, truncated if it is too long.
pub fn shown(name: &str) -> Cow<'_, str> {
    if name.len() <= NAME_BYTES_MAX {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("{}...", &name[..name.floor_char_boundary(SHOWN_BYTES)]))
}

/// The longest offered name.
pub const NAME_CHARS_MAX: usize = 64;
const HASH_CHARS: usize = 8;

/// Returns the name under which a tool is offered; calls to its server use the original.
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

/// Returns `server__tool`.
pub fn prefixed(server: &str, tool: &str) -> String {
    offered(&format!("{server}__{tool}"))
}

/// Returns a name that differs from another tool's of the same server.
pub fn distinct(original: &str) -> String {
    offered(&format!("{original}-{}", hash(original, HASH_CHARS)))
}

/// Returns the first hexadecimal digits of a string's hash.
pub fn hash(text: &str, chars: usize) -> String {
    let digest = Sha256::digest(text.as_bytes());
    hex(&digest[..digest.len().min(chars / 2)])
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
