//! The server's `Retry-After`.

use std::time::{Duration, SystemTime};

use http::header::{HeaderMap, RETRY_AFTER};

/// A server may not put us off for longer than this.
const RETRY_AFTER_MAX: Duration = Duration::from_mins(10);

/// Reads `Retry-After`: seconds or a date, never more than [`RETRY_AFTER_MAX`].
pub(crate) fn read(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Too many digits for a number is too long in any case.
        text.parse().map_or(RETRY_AFTER_MAX, Duration::from_secs)
    } else {
        httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read_and_capped() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            read(&headers, now).map(|wait| wait.as_secs())
        };
        assert_eq!(read("7"), Some(7));
        assert_eq!(read("Sun, 06 Nov 1994 08:50:00 GMT"), Some(23));
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        assert_eq!(read("99999999999999999999999"), Some(600));
        assert_eq!(read("-1"), None);
        assert_eq!(read("soon"), None);
    }
}
