//! What the headers of a request must say.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use haft_bounds::parse_error::describe;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::mirror;
use crate::error::{HEADER_MISMATCH, INVALID_PARAMS, RpcError};
use crate::server::Service;
use crate::server::desk::Asked;

/// Whether the client reads either kind of answer.
pub(super) fn takes_json_or_events(headers: &HeaderMap) -> bool {
    takes(headers, "application/json") || takes_events(headers)
}

/// Whether the client reads streams of events.
pub(super) fn takes_events(headers: &HeaderMap) -> bool {
    takes(headers, "text/event-stream")
}

fn takes(headers: &HeaderMap, kind: &str) -> bool {
    let mut accepted = headers.get_all(http::header::ACCEPT).iter().peekable();
    // Who says nothing takes everything.
    if accepted.peek().is_none() {
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

/// Compares what the headers of a request of the modern era say with its body. What stands between may
/// have decided by the headers; the body is what is done.
pub(super) fn mirrors(
    headers: &HeaderMap,
    version: &str,
    asked: Asked<'_>,
    service: &dyn Service,
) -> Result<(), RpcError> {
    same(headers, "MCP-Protocol-Version", Some(version))?;
    same(headers, "Mcp-Method", Some(asked.method))?;
    let Some(params) = asked.params else { return Ok(()) };
    let Some(name) = named(asked.method, params)? else { return Ok(()) };
    same(headers, "Mcp-Name", Some(&name))?;
    if asked.method == "tools/call"
        && let Some(schema) = service.input_schema(&name)
        // A tool that marks its headers wrongly has none.
        && let Ok(mirrors) = mirror::of_schema(&schema)
        && !mirrors.is_empty()
    {
        let arguments = arguments(params);
        let sent = arguments.map(|arguments| mirror::values(&mirrors, arguments));
        let sent = sent.unwrap_or_default();
        for header in mirrors.iter().map(mirror::Mirror::header) {
            let value = sent.iter().find(|(name, _)| name == header).map(|(_, value)| &**value);
            same(headers, &format!("Mcp-Param-{header}"), value)?;
        }
    }
    Ok(())
}

/// What a method is about. One that says it unreadably is refused: nothing could be compared.
fn named(method: &str, params: &RawValue) -> Result<Option<String>, RpcError> {
    #[derive(Deserialize)]
    struct Name {
        name: String,
    }
    #[derive(Deserialize)]
    struct Uri {
        uri: String,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Task {
        task_id: String,
    }
    let params = params.get();
    let named = match method {
        "tools/call" | "prompts/get" => serde_json::from_str::<Name>(params).map(|it| it.name),
        "resources/read" => serde_json::from_str::<Uri>(params).map(|it| it.uri),
        "tasks/get" | "tasks/update" | "tasks/cancel" => {
            serde_json::from_str::<Task>(params).map(|it| it.task_id)
        }
        _ => return Ok(None),
    };
    named.map(Some).map_err(|error| {
        RpcError::new(INVALID_PARAMS, format!("Invalid params: {}", describe(&error)))
    })
}

fn arguments(params: &RawValue) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Arguments<'a> {
        #[serde(borrow, default)]
        arguments: Option<&'a RawValue>,
    }
    serde_json::from_str::<Arguments<'_>>(params.get()).ok()?.arguments
}

/// One header against what the body says.
fn same(headers: &HeaderMap, name: &str, body: Option<&str>) -> Result<(), RpcError> {
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
        (Some(Some(_)), Some(_)) => {
            mismatch(format!("the header `{name}` says something else than the body"))
        }
        (Some(Some(_)), None) => {
            mismatch(format!("the header `{name}` stands for nothing in the body"))
        }
    }
}

/// A header's value: as it is, or wrapped in `=?base64?...?=`.
fn plain(value: &str) -> Option<String> {
    let wrapped = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    match wrapped {
        None => Some(value.to_owned()),
        Some(wrapped) => String::from_utf8(BASE64_STANDARD.decode(wrapped).ok()?).ok(),
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
    fn a_header_says_what_the_body_says() {
        let code = |value: &[&'static str], body: Option<&str>| {
            let mut headers = HeaderMap::new();
            for value in value {
                headers.append("mcp-name", http::HeaderValue::from_static(value));
            }
            same(&headers, "Mcp-Name", body).map_err(|error| error.code)
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
