//! Errors as the HTTP service answers them: RFC 9457 problem documents.

use std::time::Duration;

use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use haft::NAME_BYTES_MAX;
use serde::Serialize;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::body;

/// When to come again where there is too much to do.
const BUSY_SECS: u64 = 1;

/// The address of the API's documentation.
pub(crate) const DOCS: &str = "/api/docs";
/// The same as a `Link` header.
pub(super) const DOCS_LINK: &str = "</api/docs>; rel=\"help\"";

/// An error response. Boxed, so that a `Result` with it stays small.
#[derive(Debug, Clone)]
pub struct Problem {
    document: Box<ProblemDocument>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// The failure, its cause, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemDocument {
    /// A stable name of the kind of problem: `urn:haft:problem:` and the code.
    #[serde(rename = "type")]
    #[schema(example = "urn:haft:problem:Unauthorized")]
    pub kind: String,
    /// The kind of problem in a few words, the same each time.
    #[schema(value_type = String)]
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// Details of this occurrence.
    pub detail: String,
    /// One word for programs.
    #[schema(value_type = String, example = "Unauthorized")]
    pub code: &'static str,
    /// The next step for the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The address of the documentation, where something does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "/api/docs")]
    pub docs: Option<&'static str>,
    /// Every single thing that is wrong, where there may be several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<FieldProblem>,
    /// The request's id, which log lines carry too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// One thing that is wrong with what was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldProblem {
    /// Where: a field's path, a header, a line and column.
    pub place: String,
    /// The problem.
    pub problem: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Problem {
    /// A problem of any kind. `code` and `title` are constant, `detail` describes the occurrence.
    pub fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        let document = ProblemDocument {
            kind: format!("urn:haft:problem:{code}"),
            title,
            status: status.as_u16(),
            detail: detail.into(),
            code,
            remedy: None,
            docs: (status == StatusCode::NOT_FOUND).then_some(DOCS),
            errors: Vec::new(),
            request_id: None,
        };
        Self { document: Box::new(document), headers: Vec::new() }
    }

    /// Sets the remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.document.remedy = Some(remedy.into());
        self
    }

    /// Adds one of several things that are wrong.
    #[must_use]
    pub fn error(mut self, error: FieldProblem) -> Self {
        self.document.errors.push(error);
        self
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The document as it will be sent.
    pub fn document(&self) -> &ProblemDocument {
        &self.document
    }

    /// 400: what was sent makes no sense.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", "The request is not valid", detail)
    }

    /// 401: it takes a key, and a right one.
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        let title = "A valid key is needed";
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", title, detail)
            .header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"haft\""))
    }

    /// 403: the caller is known and may not.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", "This is not permitted", detail)
    }

    /// 404: there is no such thing.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "There is no such thing", detail)
    }

    /// 405: the path exists, the method does not. The router adds `Allow`.
    pub fn method_not_allowed(detail: impl Into<String>) -> Self {
        let title = "The method is not allowed here";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", title, detail)
    }

    /// 408: what was announced did not come in time.
    pub fn request_timeout(detail: impl Into<String>) -> Self {
        let title = "The request took too long to arrive";
        Self::new(StatusCode::REQUEST_TIMEOUT, "RequestTimeout", title, detail)
    }

    /// 409: it does not go with what there is.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "Conflict", "This conflicts with what is there", detail)
    }

    /// 412: another change came first.
    pub fn precondition_failed(detail: impl Into<String>) -> Self {
        let title = "It has changed in the meantime";
        Self::new(StatusCode::PRECONDITION_FAILED, "PreconditionFailed", title, detail)
    }

    /// 413: too much was sent.
    pub fn too_large(detail: impl Into<String>) -> Self {
        let title = "The body is too large";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "BodyTooLarge", title, detail)
    }

    /// 415: what was sent has the wrong format.
    pub fn unsupported_media_type(detail: impl Into<String>) -> Self {
        let title = "The body's format is not supported";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", title, detail)
    }

    /// 429: too often; retry after `Retry-After`.
    pub fn too_many_requests(detail: impl Into<String>, after: Duration) -> Self {
        let title = "Too many attempts";
        // Rounded up: a client that returns too early is refused again.
        let secs = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", title, detail)
            .header(RETRY_AFTER, HeaderValue::from(secs))
    }

    /// 500: our fault. The detail holds nothing of the inside.
    pub fn internal() -> Self {
        let detail = "an internal error; see the log";
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self::new(status, "Internal", "Something went wrong inside Haft", detail)
            .remedy("look for this request's id in the log of the server, and report the entry")
    }

    /// 503: there is too much to do; retry after `Retry-After`.
    pub fn busy(detail: impl Into<String>) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self::new(status, "Busy", "The service is busy", detail)
            .header(RETRY_AFTER, HeaderValue::from(BUSY_SECS))
    }

    /// 503: not now.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        let title = "The service cannot do this now";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "Unavailable", title, detail)
    }

    /// 503: the service is going down.
    pub fn stopping(detail: impl Into<String>) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self::new(status, "Stopping", "The service is shutting down", detail)
    }

    fn render(&self) -> Response {
        // A struct of strings and numbers: serialization cannot fail.
        let text = serde_json::to_vec(&self.document).unwrap_or_default();
        let status =
            StatusCode::from_u16(self.document.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (status, [(CONTENT_TYPE, kind)], text).into_response();
        for (name, value) in &self.headers {
            response.headers_mut().append(name, value.clone());
        }
        response
    }
}

/// 400: `what` is longer than any name.
pub(crate) fn long_name(what: &str, bytes: usize) -> Problem {
    let detail = format!("{what} has {bytes} bytes, and a name has at most {NAME_BYTES_MAX}");
    Problem::bad_request(detail).remedy("use a name that one of the lists shows")
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.render();
        // For `with_request_id`: who makes a problem does not know the request it belongs to.
        response.extensions_mut().insert(self);
        response
    }
}

impl PartialSchema for Problem {
    fn schema() -> RefOr<Schema> {
        ProblemDocument::schema()
    }
}

impl ToSchema for Problem {
    fn name() -> std::borrow::Cow<'static, str> {
        ProblemDocument::name()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        ProblemDocument::schemas(schemas);
    }
}

/// Writes the request's id into a problem document; leaves every other answer alone.
pub(super) fn with_request_id(mut response: body::Response, id: &str) -> body::Response {
    let Some(mut problem) = response.extensions_mut().remove::<Problem>() else {
        return response;
    };
    problem.document.request_id = Some(id.to_owned());
    let mut rendered = body::routed(problem.render());
    // The router adds the allowed methods after the problem was made.
    if let Some(allow) = response.headers_mut().remove(ALLOW) {
        rendered.headers_mut().insert(ALLOW, allow);
    }
    rendered
}
