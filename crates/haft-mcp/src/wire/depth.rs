//! How deep JSON nests, without building it.

/// Whether objects and lists in `json` nest deeper than `max`. Works on anything; what is not JSON
/// is somebody else's to refuse.
pub fn nests_deeper_than(json: &[u8], max: usize) -> bool {
    // Without more than `max` brackets, in strings or not, nothing nests deeper. That is quickly
    // seen of a large text, and a message full of brackets gets here no further than a few of them.
    if memchr::memchr2_iter(b'{', b'[', json).nth(max).is_none() {
        return false;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        match byte {
            // Strings are most of a large message, and are skipped by the fast search.
            b'"' => {
                at = end_of_string(json, at + 1);
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > max {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    false
}

/// The place behind the quote that ends the string which starts at `at`.
pub(super) fn end_of_string(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = json.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        match json[at + found] {
            b'"' => return at + found + 1,
            // The byte after a backslash never ends the string.
            _ => at += found + 2,
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_is_counted_outside_strings_only() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(!nests_deeper_than(nested(64).as_bytes(), 64));
        assert!(nests_deeper_than(nested(65).as_bytes(), 64));
        let text = format!(r#"{{"a": "{} \" \\", "b": [1]}}"#, "[".repeat(1000));
        assert!(!nests_deeper_than(text.as_bytes(), 2));
        assert!(nests_deeper_than(text.as_bytes(), 1));
        assert!(!nests_deeper_than(br#""open \"#, 0));
    }
}
