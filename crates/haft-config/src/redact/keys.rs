//! Keys whose values are secrets, by their name.

/// The ends of such keys, in lower case and without separators. `max_tokens`, `token_count` and
/// `tokenize` end otherwise.
const SECRET_ENDS: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "authorization",
    "cookie",
    "apikey",
    "accesskey",
    "privatekey",
    "secretkey",
];

/// Cursors of a list, not secrets; the log must show the page that a call requested.
const HARMLESS_ENDS: [&str; 3] = ["pagetoken", "nexttoken", "continuationtoken"];

/// Returns true if a value of this name is a secret: of a variable, a header or a flag.
pub(crate) fn is_secret_name(name: &str) -> bool {
    is_secret(name.as_bytes())
}

/// Returns true if the value under `key` is a secret.
pub(super) fn is_secret(key: &[u8]) -> bool {
    ends_possibly(key)
        && SECRET_ENDS.iter().any(|end| ends_like(key, end))
        && !HARMLESS_ENDS.iter().any(|end| ends_like(key, end))
}

/// Returns true if `json` has such a key, also in JSON inside its strings. Written by hand because
/// one pattern for all the keys in any case is twenty times as slow as checking before each colon.
pub(super) fn any_secret(json: &str) -> bool {
    memchr::memchr_iter(b':', json.as_bytes()).any(|colon| {
        let before = json.as_bytes()[..colon].trim_ascii_end();
        before.strip_suffix(b"\"").is_some_and(|key| {
            let backslashes = key.iter().rev().take_while(|byte| **byte == b'\\').count();
            is_secret(&key[..key.len() - backslashes])
        })
    })
}

/// Returns true if `key` has the last two letters of any of [`SECRET_ENDS`]; nearly no other key
/// has.
fn ends_possibly(key: &[u8]) -> bool {
    let [.., a, b] = key else { return false };
    matches!(
        &[a.to_ascii_lowercase(), b.to_ascii_lowercase()],
        b"rd" | b"wd" | b"se" | b"et" | b"en" | b"on" | b"ie" | b"ey"
    )
}

/// Returns true if `key` ends with `end`, in any case and with any separators in between.
fn ends_like(key: &[u8], end: &str) -> bool {
    let mut key = key.iter().rev().filter(|byte| !matches!(byte, b'-' | b'_' | b'.' | b' '));
    end.bytes().rev().all(|byte| key.next().is_some_and(|found| found.eq_ignore_ascii_case(&byte)))
}

#[cfg(test)]
mod tests {
    use super::{SECRET_ENDS, is_secret};

    #[test]
    fn every_end_is_found_by_its_last_letters() {
        for end in SECRET_ENDS {
            assert!(is_secret(end.as_bytes()), "{end}");
        }
    }
}
