//! Response headers for pages of another origin (CORS). Only pages that the operator allowed ever get here.

use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, VARY,
};
use axum::http::{HeaderValue, Method, Request, StatusCode};
use axum::response::IntoResponse as _;

use super::body::{Response, routed};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, DELETE");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, if-match, if-none-match, last-event-id, mcp-method, mcp-name, \
     mcp-protocol-version, mcp-session-id, tracestate, traceparent, x-api-key, x-request-id",
);
const EXPOSED: HeaderValue =
    HeaderValue::from_static("etag, location, mcp-session-id, retry-after, x-request-id");
/// For how many seconds a browser need not ask again.
const MAX_AGE_SECS: HeaderValue = HeaderValue::from_static("600");

/// A page of another origin that may use the service.
#[derive(Debug, Clone)]
pub(super) struct Page(pub(super) HeaderValue);

impl Page {
    /// The answer to a browser that asks whether the page may make a request; nothing for the request
    /// itself. A browser asks without a key.
    pub(super) fn preflight<B>(&self, request: &Request<B>) -> Option<Response> {
        let asks = request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        (request.method() == Method::OPTIONS && asks).then(|| {
            let permits = [
                (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
                (ACCESS_CONTROL_ALLOW_HEADERS, HEADERS),
                (ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECS),
            ];
            self.permit(routed((StatusCode::NO_CONTENT, permits).into_response()))
        })
    }

    /// Lets the page read an answer, also a refusal.
    pub(super) fn permit(&self, mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.0.clone());
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        headers.append(VARY, HeaderValue::from_static("origin"));
        response
    }
}
