//! Why a change of the registry was refused, as the API answers it.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use haft::config::{ConfigError, Severity};
use haft::live::{RegistryEditError, StoreError};
use utoipa::IntoResponses;
use utoipa::openapi::{RefOr, Response, ResponseBuilder};

use super::remedy::endpoint;
use crate::serve::{FieldProblem, Problem};

/// When to come again where a queue is full.
const BUSY_FOR: Duration = Duration::from_secs(1);
/// When to come again where the server ends.
const AWAY_FOR: Duration = Duration::from_secs(5);
/// When to come again where the database cannot be used.
pub(in crate::api) const DATABASE_FOR: Duration = Duration::from_secs(5);

/// The operating system's errors for a full disk or an exhausted quota.
const NO_ROOM: [&str; 2] = ["os error 28", "os error 122"];

/// The problem document for a change that was refused.
pub(super) fn edit_problem(error: &RegistryEditError) -> Problem {
    let text = error.to_string();
    let problem = match error {
        RegistryEditError::NoRegistry => {
            let title = "There is no registry";
            Problem::new(StatusCode::CONFLICT, "NoRegistry", title, text)
        }
        RegistryEditError::Exists { .. } => {
            Problem::new(StatusCode::CONFLICT, "Exists", "It is there already", text)
        }
        RegistryEditError::Missing { .. } => Problem::not_found(text),
        RegistryEditError::ReadOnly { .. } => {
            let title = "It is configured in a file that Haft does not write to";
            Problem::new(StatusCode::CONFLICT, "ReadOnly", title, text)
        }
        RegistryEditError::Changed { .. } => Problem::precondition_failed(text),
        RegistryEditError::Invalid(error) => invalid(error),
        RegistryEditError::Refused(_) => {
            let title = "The toolbox would not run like that";
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "Refused", title, text)
        }
        RegistryEditError::NotAllowed { .. } => Problem::new(
            StatusCode::FORBIDDEN,
            "NotAllowed",
            "The operator does not allow it",
            text,
        ),
        RegistryEditError::Broken { .. } => {
            let title = "A file of the configuration is broken";
            Problem::new(StatusCode::CONFLICT, "BrokenFile", title, text)
        }
        RegistryEditError::Store(error) => store(error, text),
        RegistryEditError::Busy => come_again(Problem::unavailable(text), BUSY_FOR),
        RegistryEditError::Stopping => come_again(Problem::unavailable(text), AWAY_FOR),
    };
    problem.remedy(endpoint(&error.remedy()))
}

impl From<RegistryEditError> for Problem {
    fn from(error: RegistryEditError) -> Self {
        edit_problem(&error)
    }
}

/// Adds `Retry-After`.
pub(in crate::api) fn come_again(problem: Problem, after: Duration) -> Problem {
    problem.header(RETRY_AFTER, HeaderValue::from(after.as_secs()))
}

fn invalid(error: &ConfigError) -> Problem {
    let title = "The entry is not valid";
    let detail = "the registry would not be valid with this entry; nothing was changed";
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidEntry", title, detail);
    errors(error).fold(problem, Problem::error)
}

/// Returns the problems of a configuration, one by one.
pub(super) fn errors(error: &ConfigError) -> impl Iterator<Item = FieldProblem> {
    let errors = error.problems.iter().filter(|problem| problem.severity == Severity::Error);
    errors.map(field)
}

/// One thing that is wrong, or worth a line.
pub(super) fn field(problem: &haft::config::Problem) -> FieldProblem {
    let place = &problem.place;
    let place = if place.path.is_empty() { place.to_string() } else { place.path.clone() };
    let remedy = Some(endpoint(&problem.remedy)).filter(|remedy| !remedy.is_empty());
    FieldProblem { place, problem: problem.problem.clone(), remedy }
}

fn store(error: &StoreError, text: String) -> Problem {
    match error {
        StoreError::Write { cause, .. } if NO_ROOM.iter().any(|word| cause.contains(word)) => {
            let title = "There is no room to write";
            Problem::new(StatusCode::INSUFFICIENT_STORAGE, "NoRoom", title, text)
        }
        StoreError::Conflict => come_again(Problem::unavailable(text), BUSY_FOR),
        StoreError::Unavailable { .. } => come_again(Problem::unavailable(text), DATABASE_FOR),
        StoreError::Unknown { .. } => {
            let title = "It is not known whether the change was written";
            let status = StatusCode::SERVICE_UNAVAILABLE;
            come_again(Problem::new(status, "OutcomeUnknown", title, text), DATABASE_FOR)
        }
        StoreError::Read { .. } | StoreError::Write { .. } => Problem::unavailable(text),
    }
}

/// Error responses of every change of the registry, for the API document.
pub(super) struct EditProblems;

impl IntoResponses for EditProblems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let answers = [
            ("400", "The body or a header cannot be read."),
            ("404", "There is no such entry; the remedy names the nearest."),
            (
                "409",
                "It is there already, belongs to another file or to a server, or there is no registry.",
            ),
            ("412", "It does not match `If-Match` or `If-None-Match`."),
            ("422", "The registry would not be valid; `errors` lists every problem."),
            ("503", "The registry cannot be read or written now; retry after `Retry-After`."),
            ("507", "There is no room to write."),
        ];
        let response = |text: &str| ResponseBuilder::new().description(text).build().into();
        answers.into_iter().map(|(status, text)| (status.to_owned(), response(text))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every refusal has the status a client can act on, and a remedy.
    #[test]
    fn every_refusal_has_its_status() {
        let name = || "a".to_owned();
        let write = |cause: &str| {
            RegistryEditError::Store(StoreError::Write { what: name(), cause: cause.to_owned() })
        };
        let cases = [
            (RegistryEditError::NoRegistry, 409),
            (RegistryEditError::Exists { name: name() }, 409),
            (RegistryEditError::Missing { name: name(), nearest: None }, 404),
            (RegistryEditError::ReadOnly { name: name(), file: name() }, 409),
            (RegistryEditError::Changed { name: name() }, 412),
            (RegistryEditError::Invalid(ConfigError { problems: Vec::new() }), 422),
            (RegistryEditError::Refused(haft::StartError::Cancelled), 422),
            (RegistryEditError::NotAllowed { problem: name(), remedy: name() }, 403),
            (RegistryEditError::Broken { file: name(), problem: name() }, 409),
            (write("No space left on device (os error 28)"), 507),
            (write("Permission denied (os error 13)"), 503),
            (RegistryEditError::Store(StoreError::Conflict), 503),
            (
                RegistryEditError::Store(StoreError::Unavailable { cause: name(), remedy: name() }),
                503,
            ),
            (RegistryEditError::Store(StoreError::Unknown { cause: name() }), 503),
            (RegistryEditError::Busy, 503),
            (RegistryEditError::Stopping, 503),
        ];
        for (error, status) in cases {
            let problem = edit_problem(&error);
            assert_eq!(problem.document().status, status, "{error}");
            assert!(problem.document().remedy.is_some(), "{error}");
        }
    }
}
