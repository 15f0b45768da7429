//! Why a change of the registry was refused, as the API answers it.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use haft::config::{ConfigError, Severity};
use haft::live::{EditError, StoreError};
use utoipa::IntoResponses;
use utoipa::openapi::{RefOr, Response, ResponseBuilder};

use crate::serve::{FieldProblem, Problem};

/// When to come again where a queue is full.
const BUSY_FOR: Duration = Duration::from_secs(1);
/// When to come again where the server ends.
const AWAY_FOR: Duration = Duration::from_secs(5);

/// What the operating system says when there is no room, or none left for this user.
const NO_ROOM: [&str; 2] = ["os error 28", "os error 122"];

/// The problem document for a change that was refused.
pub(super) fn edit_problem(error: &EditError) -> Problem {
    let text = error.to_string();
    let problem = match error {
        EditError::NoRegistry => {
            let title = "There is no registry";
            Problem::new(StatusCode::CONFLICT, "NoRegistry", title, text)
        }
        EditError::Exists { .. } => {
            Problem::new(StatusCode::CONFLICT, "Exists", "It is there already", text)
        }
        EditError::Missing { .. } => Problem::not_found(text),
        EditError::ReadOnly { .. } => {
            let title = "It is configured in a file that Haft does not write to";
            Problem::new(StatusCode::CONFLICT, "ReadOnly", title, text)
        }
        EditError::Changed { .. } => Problem::precondition_failed(text),
        EditError::Invalid(error) => invalid(error),
        EditError::Refused(_) => {
            let title = "The toolbox would not run like that";
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "Refused", title, text)
        }
        EditError::NotAllowed { .. } => Problem::new(
            StatusCode::FORBIDDEN,
            "NotAllowed",
            "The operator does not allow it",
            text,
        ),
        EditError::Broken { .. } => {
            let title = "A file of the configuration is broken";
            Problem::new(StatusCode::CONFLICT, "BrokenFile", title, text)
        }
        EditError::Store(error) => store(error, text),
        EditError::Busy => come_again(Problem::unavailable(text), BUSY_FOR),
        EditError::Stopping => come_again(Problem::unavailable(text), AWAY_FOR),
    };
    problem.remedy(error.remedy())
}

impl From<EditError> for Problem {
    fn from(error: EditError) -> Self {
        edit_problem(&error)
    }
}

/// Adds `Retry-After`.
pub(super) fn come_again(problem: Problem, after: Duration) -> Problem {
    problem.header(RETRY_AFTER, HeaderValue::from(after.as_secs()))
}

fn invalid(error: &ConfigError) -> Problem {
    let title = "The entry is not valid";
    let detail = "the registry would not be valid with this entry; nothing was changed";
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidEntry", title, detail);
    errors(error).fold(problem, Problem::error)
}

/// What is wrong with a configuration, one by one.
pub(super) fn errors(error: &ConfigError) -> impl Iterator<Item = FieldProblem> {
    let errors = error.problems.iter().filter(|problem| problem.severity == Severity::Error);
    errors.map(field)
}

/// One thing that is wrong, or worth a line.
pub(super) fn field(problem: &haft::config::Problem) -> FieldProblem {
    let place = &problem.place;
    let place = if place.path.is_empty() { place.to_string() } else { place.path.clone() };
    let remedy = Some(problem.remedy.clone()).filter(|remedy| !remedy.is_empty());
    FieldProblem { place, problem: problem.problem.clone(), remedy }
}

fn store(error: &StoreError, text: String) -> Problem {
    match error {
        StoreError::Write { cause, .. } if NO_ROOM.iter().any(|word| cause.contains(word)) => {
            let title = "There is no room to write";
            Problem::new(StatusCode::INSUFFICIENT_STORAGE, "NoRoom", title, text)
        }
        StoreError::Conflict => come_again(Problem::unavailable(text), BUSY_FOR),
        StoreError::Read { .. } | StoreError::Write { .. } => Problem::unavailable(text),
    }
}

/// What every change of the registry may be refused with, for the API document.
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
            ("412", "It says something else than `If-Match` or `If-None-Match` demand."),
            ("422", "The registry would not be valid; `errors` lists every problem."),
            (
                "503",
                "The registry cannot be read or written now; `Retry-After` says when to come again.",
            ),
            ("507", "There is no room to write."),
        ];
        let response = |text: &str| ResponseBuilder::new().description(text).build().into();
        answers.into_iter().map(|(status, text)| (status.to_owned(), response(text))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every refusal has the status a client can act on, and says what to do.
    #[test]
    fn every_refusal_has_its_status() {
        let name = || "a".to_owned();
        let write = |cause: &str| {
            EditError::Store(StoreError::Write { what: name(), cause: cause.to_owned() })
        };
        let cases = [
            (EditError::NoRegistry, 409),
            (EditError::Exists { name: name() }, 409),
            (EditError::Missing { name: name(), nearest: None }, 404),
            (EditError::ReadOnly { name: name(), file: name() }, 409),
            (EditError::Changed { name: name() }, 412),
            (EditError::Invalid(ConfigError { problems: Vec::new() }), 422),
            (EditError::Refused(haft::StartError::Cancelled), 422),
            (EditError::NotAllowed { problem: name(), remedy: name() }, 403),
            (EditError::Broken { file: name(), problem: name() }, 409),
            (write("No space left on device (os error 28)"), 507),
            (write("Permission denied (os error 13)"), 503),
            (EditError::Store(StoreError::Conflict), 503),
            (EditError::Busy, 503),
            (EditError::Stopping, 503),
        ];
        for (error, status) in cases {
            let problem = edit_problem(&error);
            assert_eq!(problem.document().status, status, "{error}");
            assert!(problem.document().remedy.is_some(), "{error}");
        }
    }
}
