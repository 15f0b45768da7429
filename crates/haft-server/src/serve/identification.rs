//! What a request presents to identify its caller, and reasons why it has none.

use axum::http::header::{AUTHORIZATION, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::problem::Problem;

/// Paths that answer without a key: neither whether the service is alive nor what it can do is a secret, and a
/// browser that reads about it cannot send a key.
const OPEN_PATHS: [&str; 5] =
    ["/", "/healthz", "/api/docs", "/api/openapi.json", "/oauth/callback"];
/// The files of the web console.
const OPEN_FOLDER: &str = "/assets/";
/// Answers without a key as well, with more details for a caller that has one.
pub(super) const READINESS_PATH: &str = "/readyz";

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// When to come again while the database does not respond.
const RETRY_SECS: u64 = 5;

/// The reason why a request has no caller.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The key is unknown, and may have been created at another replica. `Access::refresh` reads the keys again.
    MayBeNew,
    Refused(Problem),
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self::Refused(problem)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::MayBeNew => Self::unauthorized("the key is not known here"),
            Refusal::Refused(problem) => problem,
        }
    }
}

/// Distinguishes the attempt after the keys were read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    First,
    AfterRefresh,
}

/// Returns true if a path answers without a key.
pub(super) fn is_open(path: &str) -> bool {
    OPEN_PATHS.contains(&path) || path.starts_with(OPEN_FOLDER)
}

/// Returns true if a path answers also while the keys are too old to be accepted.
pub(super) fn answers_without_keys(path: &str) -> bool {
    is_open(path) || path == READINESS_PATH
}

pub(super) fn retry_later(problem: Problem) -> Problem {
    problem.header(RETRY_AFTER, HeaderValue::from(RETRY_SECS))
}

pub(super) enum Presented<'a> {
    Nothing,
    Key(&'a str),
    Unclear(&'static str),
}

/// The key of a request, from either header. Two that differ are refused: which of them counts is
/// something a proxy may see differently.
pub(super) fn presented(headers: &HeaderMap) -> Presented<'_> {
    let mut found = None;
    for value in headers.get_all(API_KEY) {
        let Ok(key) = value.to_str() else {
            return Presented::Unclear("`X-API-Key` cannot be read");
        };
        if found.replace(key).is_some_and(|other| other != key) {
            return Presented::Unclear("the request has several keys");
        }
    }
    for value in headers.get_all(AUTHORIZATION) {
        let parts = value.to_str().ok().and_then(|value| value.split_once(' '));
        let bearer = parts.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some(key) = bearer.map(|(_, key)| key.trim()) else {
            return Presented::Unclear("`Authorization` is not `Bearer KEY`");
        };
        if found.replace(key).is_some_and(|other| other != key) {
            return Presented::Unclear("the request has several keys");
        }
    }
    found.map_or(Presented::Nothing, Presented::Key)
}
