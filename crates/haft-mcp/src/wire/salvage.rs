//! Which request a broken message would have answered, so that its caller need not wait in vain.

use haft_bounds::json::end_of_string;

/// Returns true if output that cannot be parsed was meant as a message. What is not was a print, such as a log line,
/// which may well be JSON and may well have an `id` or an `error` of its own.
pub fn looks_like_message(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    matches!(start.first(), Some(b'{' | b'[')) && contains(bytes, b"\"jsonrpc\"")
}

/// The number behind the outermost `"id":` of a message that is broken somewhere else.
pub fn salvage_id(bytes: &[u8]) -> Option<u64> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let end = end_of_string(bytes, at + 1);
                if depth == 1 && bytes.get(at..end) == Some(b"\"id\"") {
                    return number_after_colon(&bytes[end..]);
                }
                at = end;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

fn number_after_colon(rest: &[u8]) -> Option<u64> {
    let rest = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    // A number that continues after its digits is another one.
    if matches!(rest.get(digits), Some(b'.' | b'e' | b'E')) {
        return None;
    }
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_broken_message_is_found() {
        assert_eq!(
            salvage_id(b"{\"jsonrpc\":\"2.0\",\"id\": 12,\"result\":{\"x\":\"\xff\"}}"),
            Some(12)
        );
        assert_eq!(salvage_id(br#"{"result":{"id":5,"a":[1]},"id":9"#), Some(9));
        assert_eq!(salvage_id(br#"{"jsonrpc":"2.0","id":"#), None);
        assert_eq!(salvage_id(br#"{"a":"\"id\":7"}"#), None);
        assert_eq!(salvage_id(b"garbage"), None);
        assert_eq!(salvage_id(br#"{"id":1.5,"result":"#), None);
    }

    #[test]
    fn prints_are_not_messages() {
        assert!(!looks_like_message(b"Server started"));
        assert!(!looks_like_message(b"{a: 1}"));
        assert!(!looks_like_message(b"\x1b[32m{\"jsonrpc\"\x1b[0m"));
        assert!(looks_like_message(b" {\"jsonrpc\":\"2.0\","));
    }
}
