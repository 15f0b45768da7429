//! Errors on the way to a server, worded so that the reader can act on them.

use std::error::Error as _;
use std::time::{Duration, SystemTime};

use http::StatusCode;
use http::header::{HeaderMap, WWW_AUTHENTICATE};

use super::retry_after;
use crate::error::{Failure, Sent, TransportError};
use crate::http_client::HttpError;

/// Largest excerpt of a server's message in an error.
const EXCERPT_CHARS_MAX: usize = 200;

/// A request that got no response, or a response that broke off.
pub(crate) fn of_request(error: &HttpError, shown: &str) -> TransportError {
    let cause = causes(error);
    let (kind, what) = match error {
        HttpError::ConnectTimeout(_) => (Failure::Timeout, "did not take the connection in time"),
        HttpError::Connect(_) if error.find_cause::<rustls::Error>().is_some() => {
            (Failure::Tls, "has no TLS connection to offer that can be trusted")
        }
        HttpError::Connect(_) => (Failure::Unreachable, "cannot be reached"),
        HttpError::Address(_) | HttpError::Tls => (Failure::NotFound, "cannot be asked"),
        HttpError::HeadTooLarge(_) => {
            let message = format!("`{shown}` did not answer: {cause}");
            return TransportError::after_sending(Failure::Protocol, message);
        }
        HttpError::Lost(_) => {
            let message = format!("the connection to `{shown}` broke: {cause}");
            return TransportError::after_sending(Failure::Closed, message);
        }
    };
    TransportError::unsent(kind, format!("`{shown}` {what}: {cause}"))
}

/// Silence for longer than allowed.
pub(crate) fn silent(shown: &str, what: &str, after: Duration) -> TransportError {
    TransportError::after_sending(Failure::Timeout, format!("`{shown}` {what} within {after:?}"))
}

/// A stream of events without any for longer than allowed.
pub(crate) fn silent_stream(shown: &str, after: Duration) -> TransportError {
    let message = format!("`{shown}` sent no event within {after:?} (`sse_read_timeout`)");
    TransportError::after_sending(Failure::StreamTimeout, message)
}

/// An unsuccessful status. `excerpt` is the server's explanation.
pub(super) fn of_status(
    status: StatusCode,
    headers: &HeaderMap,
    excerpt: &str,
    shown: &str,
) -> TransportError {
    let wait = retry_after::read(headers, SystemTime::now());
    let mut message = match status.as_u16() {
        401 => format!("`{shown}` wants credentials (401)"),
        403 => format!("`{shown}` refuses these credentials (403)"),
        _ => format!("`{shown}` answered {status}"),
    };
    let challenge = headers.get(WWW_AUTHENTICATE).map(|value| printable(value.as_bytes()));
    for words in [challenge.as_deref().unwrap_or_default(), excerpt] {
        if !words.is_empty() {
            message.push_str(": ");
            message.push_str(words);
        }
    }
    let (kind, sent) = match status.as_u16() {
        401 | 403 => (Failure::AuthRequired, Sent::No),
        // What is wrong with the request as such is found before anything is done about it.
        code @ (400 | 404 | 405 | 406 | 410 | 411 | 413 | 414 | 415 | 421 | 426 | 429 | 431) => {
            (Failure::Status(code), Sent::No)
        }
        // A server that cannot take the request now refuses it before it begins: the status is the whole answer, and
        // no event of a response came before it. A proxy in front answers the same if it reached no server.
        503 => (Failure::Status(503), Sent::No),
        code => (Failure::Status(code), Sent::Maybe),
    };
    TransportError { kind, message, sent, retry_after: wait }
}

/// The beginning of a server's words, fit for a terminal and a log line.
pub(super) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT_CHARS_MAX * 8)]);
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut shown: String =
        words.join(" ").chars().filter(|character| is_visible(*character)).collect();
    if let Some((cut, _)) = shown.char_indices().nth(EXCERPT_CHARS_MAX) {
        shown.truncate(cut);
        shown.push('…');
    }
    shown
}

/// Neither a control character nor one that changes what its neighbours look like.
fn is_visible(character: char) -> bool {
    !character.is_control()
        && !matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// The whole chain of causes on one line, without what is only a wrapper's name.
fn causes(error: &HttpError) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        // Some wrappers print what they wrap.
        if !texts.iter().any(|before| before.contains(&text)) {
            texts.push(text);
        }
        next = cause.source();
    }
    if texts.is_empty() { error.to_string() } else { texts.join(": ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_shows_whether_the_server_can_have_acted() {
        let of = |code: u16, retry: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(retry) = retry {
                headers.insert(http::header::RETRY_AFTER, retry.parse().unwrap());
            }
            let status = StatusCode::from_u16(code).unwrap();
            let error = of_status(status, &headers, "busy", "http://a");
            (error.kind, error.sent, error.retry_after.map(|wait| wait.as_secs()))
        };
        assert_eq!(of(400, None), (Failure::Status(400), Sent::No, None));
        assert_eq!(of(401, None), (Failure::AuthRequired, Sent::No, None));
        assert_eq!(of(429, Some("3")), (Failure::Status(429), Sent::No, Some(3)));
        assert_eq!(of(500, None), (Failure::Status(500), Sent::Maybe, None));
        assert_eq!(of(502, None), (Failure::Status(502), Sent::Maybe, None));
        assert_eq!(of(503, None), (Failure::Status(503), Sent::No, None));
        assert_eq!(of(503, Some("1")), (Failure::Status(503), Sent::No, Some(1)));
    }

    #[test]
    fn a_servers_words_are_short_and_harmless() {
        assert_eq!(printable(b"a\x1b[31mred\r\n\tb\xff"), "a[31mred b\u{fffd}");
        assert_eq!(printable("x\u{202e}y\u{200b}z".as_bytes()), "xyz");
        assert_eq!(printable("ä".repeat(1000).as_bytes()).chars().count(), EXCERPT_CHARS_MAX + 1);
    }
}
