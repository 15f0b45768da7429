//! Checks of a request's headers.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName};

use crate::client::param_headers;
use crate::error::{HEADER_MISMATCH, RpcError};
use crate::server::params::Params;
use crate::server::{ParamHeaders, Service};

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The header of nearly every client.
const USUAL: &[u8] = b"application/json, text/event-stream";

/// Returns true if the client reads either kind of answer.
pub(super) fn takes_json_or_events(headers: &HeaderMap) -> bool {
    takes(headers, "application/json") || takes_events(headers)
}

/// Returns true if the client reads streams of events.
pub(super) fn takes_events(headers: &HeaderMap) -> bool {
    takes(headers, "text/event-stream")
}

fn takes(headers: &HeaderMap, kind: &str) -> bool {
    let mut accepted = headers.get_all(http::header::ACCEPT).iter().peekable();
    // Without the header, everything is accepted.
    if accepted.peek().is_none_or(|first| first.as_bytes() == USUAL) {
        return true;
    }
    let family = kind.split_once('/').map_or(kind, |(family, _)| family);
    accepted.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|it| {
        let it = it.split(';').next().unwrap_or_default().trim();
        it.eq_ignore_ascii_case(kind)
            || it == "*/*"
            || it.split_once("/*").is_some_and(|(it, _)| it.eq_ignore_ascii_case(family))
    })
}

/// Compares the headers of a request of the modern era with its body. Proxies may have decided by the headers; the
/// body is executed.
pub(super) fn request_headers(
    headers: &HeaderMap,
    version: &str,
    method: &str,
    params: &Params<'_>,
    service: &dyn Service,
) -> Result<(), RpcError> {
    same(headers, &PROTOCOL_VERSION, Some(version))?;
    same(headers, &METHOD, Some(method))?;
    let Some(name) = params.subject(method)? else { return Ok(()) };
    same(headers, &NAME, Some(&name))?;
    if method == "tools/call"
        && let Some(ParamHeaders(expected)) = service.param_headers(&name)
        && !expected.is_empty()
    {
        let sent = params.arguments.map(|arguments| param_headers::values(&expected, arguments));
        let sent = sent.unwrap_or_default();
        for header in expected.iter().map(param_headers::ParamHeader::header) {
            let value = sent.iter().find(|(name, _)| name == header).map(|(_, value)| &**value);
            let name = HeaderName::try_from(format!("mcp-param-{header}").to_ascii_lowercase());
            let name = name.map_err(|_| {
                let text = format!("`Mcp-Param-{header}` is not the name of a header");
                RpcError::new(HEADER_MISMATCH, text)
            })?;
            same(headers, &name, value)?;
        }
    }
    Ok(())
}

/// Compares one header with the body.
fn same(headers: &HeaderMap, name: &HeaderName, body: Option<&str>) -> Result<(), RpcError> {
    let mut values = headers.get_all(name).iter();
    let mismatch = |text: String| Err(RpcError::new(HEADER_MISMATCH, text));
    let header = match (values.next(), values.next()) {
        (None, _) => None,
        (Some(header), None) => Some(header.to_str().ok().and_then(plain)),
        (Some(_), Some(_)) => return mismatch(format!("the header `{name}` comes twice")),
    };
    match (header, body) {
        (None, None) => Ok(()),
        (None, Some(_)) => mismatch(format!("the header `{name}` is missing")),
        (Some(None), _) => mismatch(format!("the header `{name}` cannot be read")),
        (Some(Some(header)), Some(body)) if header == body => Ok(()),
        (Some(Some(_)), Some(_)) => mismatch(format!("the header `{name}` contradicts the body")),
        (Some(Some(_)), None) => {
            mismatch(format!("the header `{name}` stands for nothing in the body"))
        }
    }
}

/// A header's value: as it is, or wrapped in `=?base64?...?=`.
fn plain(value: &str) -> Option<Cow<'_, str>> {
    let wrapped = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    match wrapped {
        None => Some(value.into()),
        Some(wrapped) => {
            String::from_utf8(BASE64_STANDARD.decode(wrapped).ok()?).ok().map(Cow::Owned)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_say_what_they_take() {
        let takes = |accept: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for accept in accept {
                headers.append(http::header::ACCEPT, http::HeaderValue::from_static(accept));
            }
            (takes_json_or_events(&headers), takes_events(&headers))
        };
        assert_eq!(takes(&[]), (true, true));
        assert_eq!(takes(&["application/json, text/event-stream"]), (true, true));
        assert_eq!(takes(&["application/json", "Text/Event-Stream;q=0.5"]), (true, true));
        assert_eq!(takes(&["application/json"]), (true, false));
        assert_eq!(takes(&["*/*"]), (true, true));
        assert_eq!(takes(&["text/*"]), (true, true));
        assert_eq!(takes(&["text/html"]), (false, false));
    }

    #[test]
    fn a_header_matches_the_body() {
        let code = |value: &[&'static str], body: Option<&str>| {
            let mut headers = HeaderMap::new();
            for value in value {
                headers.append("mcp-name", http::HeaderValue::from_static(value));
            }
            same(&headers, &NAME, body).map_err(|error| error.code)
        };
        assert_eq!(code(&["a"], Some("a")), Ok(()));
        assert_eq!(code(&["=?base64?WsO8cmljaA==?="], Some("Zürich")), Ok(()));
        assert_eq!(code(&[], None), Ok(()));
        for (values, body) in [
            (&["a"][..], Some("A")),
            (&["a", "a"], Some("a")),
            (&[], Some("a")),
            (&["a"], None),
            (&["=?base64?%?="], Some("a")),
        ] {
            assert_eq!(code(values, body), Err(HEADER_MISMATCH), "{values:?} {body:?}");
        }
    }
}
