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

/// Places in a list, not secrets; the log must show which page a call asked for.
const HARMLESS_ENDS: [&str; 3] = ["pagetoken", "nexttoken", "continuationtoken"];

/// Whether the value under `key` is a secret.
pub(super) fn is_secret(key: &[u8]) -> bool {
    SECRET_ENDS.iter().any(|end| ends_like(key, end))
        && !HARMLESS_ENDS.iter().any(|end| ends_like(key, end))
}

/// Whether `json` has such a key, also in JSON inside its strings. This is by hand because one
/// pattern for all the keys in any case is twenty times as slow as looking before each colon.
pub(super) fn any_secret(json: &str) -> bool {
    json.match_indices(':').any(|(colon, _)| {
        let before = json.as_bytes()[..colon].trim_ascii_end();
        before.strip_suffix(b"\"").is_some_and(|key| {
            let backslashes = key.iter().rev().take_while(|byte| **byte == b'\\').count();
            is_secret(&key[..key.len() - backslashes])
        })
    })
}

/// Whether `key` ends with `end`, in any case and with any separators in between.
fn ends_like(key: &[u8], end: &str) -> bool {
    let mut key = key
        .iter()
        .rev()
        .filter(|byte| !matches!(byte, b'-' | b'_' | b'.' | b' '));
    end.bytes().rev().all(|byte| {
        key.next()
            .is_some_and(|found| found.eq_ignore_ascii_case(&byte))
    })
}
