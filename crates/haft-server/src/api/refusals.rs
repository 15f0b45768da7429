//! Answers that many endpoints share, for their documentation.
#![allow(dead_code, reason = "these types are only described, never made")]

use utoipa::IntoResponses;

use crate::serve::ProblemDocument;

/// What every endpoint may answer: the frame decides it before the endpoint is asked.
#[derive(IntoResponses)]
pub(super) enum Refused {
    #[response(
        status = 400,
        description = "The request makes no sense.",
        content_type = "application/problem+json"
    )]
    BadRequest(#[to_schema] ProblemDocument),
    #[response(
        status = 401,
        description = "A key is needed, and a right one.",
        content_type = "application/problem+json"
    )]
    Unauthorized(#[to_schema] ProblemDocument),
    #[response(
        status = 403,
        description = "The caller may not, or comes from a foreign page.",
        content_type = "application/problem+json"
    )]
    Forbidden(#[to_schema] ProblemDocument),
    #[response(
        status = 429,
        description = "Too many wrong keys; `Retry-After` says when to come again.",
        content_type = "application/problem+json"
    )]
    TooMany(#[to_schema] ProblemDocument),
    #[response(
        status = 500,
        description = "A fault of Haft.",
        content_type = "application/problem+json"
    )]
    Internal(#[to_schema] ProblemDocument),
}

/// What every endpoint that takes a body may answer beside.
#[derive(IntoResponses)]
pub(super) enum BodyRefused {
    #[response(
        status = 408,
        description = "The body did not arrive in time.",
        content_type = "application/problem+json"
    )]
    Late(#[to_schema] ProblemDocument),
    #[response(
        status = 413,
        description = "The body is too large.",
        content_type = "application/problem+json"
    )]
    TooLarge(#[to_schema] ProblemDocument),
    #[response(
        status = 415,
        description = "The body is not JSON.",
        content_type = "application/problem+json"
    )]
    NotJson(#[to_schema] ProblemDocument),
}

/// What every change of the registry may answer.
#[derive(IntoResponses)]
pub(super) enum EditRefused {
    #[response(
        status = 409,
        description = "It does not go with what is there: no registry, a name that is taken, a file that people write, broken files.",
        content_type = "application/problem+json"
    )]
    Conflict(#[to_schema] ProblemDocument),
    #[response(
        status = 412,
        description = "Somebody else was faster.",
        content_type = "application/problem+json"
    )]
    Changed(#[to_schema] ProblemDocument),
    #[response(
        status = 422,
        description = "The configuration would not be valid; `errors` says where.",
        content_type = "application/problem+json"
    )]
    Invalid(#[to_schema] ProblemDocument),
    #[response(
        status = 503,
        description = "The registry cannot be read or written now.",
        content_type = "application/problem+json"
    )]
    Unavailable(#[to_schema] ProblemDocument),
}

/// What asking an MCP server may answer.
#[derive(IntoResponses)]
pub(super) enum ServerFailed {
    #[response(
        status = 502,
        description = "The server refused, or broke the protocol.",
        content_type = "application/problem+json"
    )]
    Refused(#[to_schema] ProblemDocument),
    #[response(
        status = 503,
        description = "The server is out of reach.",
        content_type = "application/problem+json"
    )]
    Unavailable(#[to_schema] ProblemDocument),
    #[response(
        status = 504,
        description = "The server did not answer in time.",
        content_type = "application/problem+json"
    )]
    Late(#[to_schema] ProblemDocument),
}
