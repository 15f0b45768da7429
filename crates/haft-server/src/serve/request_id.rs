//! One id for each request: in the answer, in log lines, in problem documents.

use std::sync::Arc;

use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use uuid::Uuid;

use super::problem::with_request_id;

/// The longest id that is taken over from a client.
const ID_CHARS_MAX: usize = 64;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// A request's id. Handlers find it in the request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(Arc<str>);

impl RequestId {
    /// The client's own, where it is harmless in a log, else a new one.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let given = headers.get(&HEADER).and_then(|value| value.to_str().ok());
        match given.filter(|id| is_harmless(id)) {
            Some(id) => Self(id.into()),
            None => Self(Uuid::now_v7().to_string().into()),
        }
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What every answer carries.
    pub(super) fn finish(&self, response: Response) -> Response {
        let mut response = with_request_id(response, &self.0);
        let headers = response.headers_mut();
        // Made of letters, digits and `._-`, so it is a header's value.
        if let Ok(value) = HeaderValue::from_str(&self.0) {
            headers.insert(HEADER, value);
        }
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // An endpoint that may be kept says so itself.
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        response
    }
}

fn is_harmless(id: &str) -> bool {
    (1..=ID_CHARS_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
