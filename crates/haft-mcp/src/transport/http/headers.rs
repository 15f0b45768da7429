//! The headers of a message: those that never change, built once, and those of the modern era.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::error::{Failure, TransportError};
use crate::trace::Trace;
use crate::transport::Outgoing;

pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAM_PREFIX: &str = "mcp-param-";

/// The configured headers, and with them the credentials of the address, which never stay in it.
pub(crate) fn configured(
    headers: &[(String, String)],
    url: &mut Url,
) -> Result<HeaderMap, TransportError> {
    let mut map = HeaderMap::with_capacity(headers.len() + 8);
    for (name, value) in headers {
        let (Ok(key), Ok(mut value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value))
        else {
            return Err(TransportError::unsent(
                Failure::NotFound,
                format!("the header `{name}` cannot be sent: HTTP does not allow its characters"),
            ));
        };
        value.set_sensitive(true);
        map.append(key, value);
    }
    if !url.username().is_empty() || url.password().is_some() {
        let password = url.password().unwrap_or_default();
        let plain = format!("{}:{}", decoded(url.username()), decoded(password));
        let basic = format!("Basic {}", BASE64_STANDARD.encode(plain));
        if let (Ok(mut value), false) =
            (HeaderValue::from_str(&basic), map.contains_key(AUTHORIZATION))
        {
            value.set_sensitive(true);
            map.insert(AUTHORIZATION, value);
        }
        // Both fail only for addresses without a host, which HTTP does not have.
        let _ = url.set_username("");
        let _ = url.set_password(None);
    }
    Ok(map)
}

/// Adds what the modern era wants to see of a message without reading its body.
pub(super) fn add_message_headers(message: &Outgoing, headers: &mut HeaderMap) {
    let Outgoing { kind: _, method, name, param_headers, trace: _, body: _ } = message;
    if let Ok(method) = HeaderValue::from_str(method)
        && !method.is_empty()
    {
        headers.insert(METHOD, method);
    }
    if let Some(name) = name {
        headers.insert(NAME, encoded(name));
    }
    for (name, value) in param_headers {
        if let Ok(name) = HeaderName::try_from(format!("{PARAM_PREFIX}{name}")) {
            headers.insert(name, encoded(value));
        }
    }
}

/// Adds the trace that a message belongs to, if it does.
pub(crate) fn trace(message: &Outgoing, headers: &mut HeaderMap) {
    for (name, value) in message.trace.iter().flat_map(Trace::fields) {
        // What HTTP does not allow is in the body all the same.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
}

/// A string as a header value: unmodified if the characters are allowed, otherwise `=?base64?...?=`.
fn encoded(text: &str) -> HeaderValue {
    let is_padded = text.starts_with([' ', '\t']) || text.ends_with([' ', '\t']);
    let is_sentinel = text.starts_with("=?base64?") && text.ends_with("?=");
    let is_plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if is_plain
        && !is_padded
        && !is_sentinel
        && let Ok(value) = HeaderValue::from_str(text)
    {
        return value;
    }
    let wrapped = format!("=?base64?{}?=", BASE64_STANDARD.encode(text));
    // Base64 has no character that a header may not have.
    HeaderValue::from_str(&wrapped).unwrap_or(HeaderValue::from_static(""))
}

/// Undoes the percent signs of an address's user info.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(value) if byte == b'%' => {
                bytes.push(value);
                rest = &after[2..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_header_would_spoil_are_wrapped() {
        let text = |text: &str| encoded(text).to_str().unwrap().to_owned();
        assert_eq!(text("us west 1"), "us west 1");
        assert_eq!(text(""), "");
        assert_eq!(text("=?base64"), "=?base64");
        assert_eq!(text(" padded"), "=?base64?IHBhZGRlZA==?=");
        assert_eq!(text("a\r\nb"), "=?base64?YQ0KYg==?=");
        assert_eq!(text("Zürich"), "=?base64?WsO8cmljaA==?=");
        assert_eq!(text("=?base64?YQ==?="), "=?base64?PT9iYXNlNjQ/WVE9PT89?=");
    }

    #[test]
    fn credentials_leave_the_address_for_a_header() {
        let mut url = Url::parse("http://me:p%40ss@localhost/mcp").unwrap();
        let headers = configured(&[("X-Key".into(), "k".into())], &mut url).unwrap();
        assert_eq!(url.as_str(), "http://localhost/mcp");
        assert_eq!(headers[AUTHORIZATION], "Basic bWU6cEBzcw==");
        assert!(!format!("{headers:?}").contains("bWU6"));
        let error = configured(&[("bad name".into(), "secret".into())], &mut url).unwrap_err();
        assert_eq!(
            error.message,
            "the header `bad name` cannot be sent: HTTP does not allow its characters"
        );
    }
}
