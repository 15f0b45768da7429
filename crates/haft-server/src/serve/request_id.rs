//! One id for each request: in the answer, in log lines, in problem documents.

use std::fmt;

use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

use super::body::Response;
use super::problem::with_request_id;

/// The longest id that is taken over from a client.
const ID_CHARS_MAX: usize = 64;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

tokio::task_local! {
    /// The id of the request that the task works on. A log line looks it up when it is written: a span for each
    /// request would cost more than most requests write.
    static CURRENT: RequestId;
}

/// A request's id. Handlers find it in the request's extensions. Lies in place, so that it costs no allocation.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestId {
    bytes: [u8; ID_CHARS_MAX],
    length: usize,
}

impl RequestId {
    /// The client's own, if it is harmless in a log, otherwise a new one.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let given = headers.get(&HEADER).and_then(|value| value.to_str().ok());
        if let Some(id) = given.filter(|id| is_harmless(id)) {
            return Self::new(id);
        }
        let mut text = Uuid::encode_buffer();
        Self::new(Uuid::now_v7().hyphenated().encode_lower(&mut text))
    }

    /// `id` has at most [`ID_CHARS_MAX`] ASCII characters; the rest of a longer one is left out.
    fn new(id: &str) -> Self {
        let mut bytes = [0; ID_CHARS_MAX];
        let length = id.len().min(ID_CHARS_MAX);
        bytes[..length].copy_from_slice(&id.as_bytes()[..length]);
        Self { bytes, length }
    }

    /// The id.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }

    /// Runs `work` as a part of this request: log lines within it carry the id.
    pub(super) async fn scope<T>(&self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self.clone(), work).await
    }

    /// Adds the headers of every response.
    pub(super) fn finish(&self, response: Response) -> Response {
        let mut response = with_request_id(response, self.as_str());
        let headers = response.headers_mut();
        // Made of letters, digits and `._-`, so it is a header's value.
        if let Ok(value) = HeaderValue::from_bytes(&self.bytes[..self.length]) {
            headers.insert(HEADER, value);
        }
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // A cacheable endpoint sets its own header.
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        response
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RequestId({})", self.as_str())
    }
}

/// Calls `read` with the id of the request that the running task works on, if it works on one.
pub(crate) fn with_current<T>(read: impl FnOnce(&str) -> T) -> Option<T> {
    CURRENT.try_with(|id| read(id.as_str())).ok()
}

fn is_harmless(id: &str) -> bool {
    (1..=ID_CHARS_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
