//! Why a change of the registry was refused, as an answer.

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use haft::config::{ConfigError, Severity};
use haft::live::EditError;

use crate::serve::{FieldProblem, Problem};

/// When to come again where too much waits.
const RETRY_SECS: u16 = 1;

impl From<EditError> for Problem {
    fn from(error: EditError) -> Self {
        let (detail, remedy) = (error.to_string(), error.remedy());
        let problem = match error {
            EditError::NoRegistry => {
                Self::new(StatusCode::CONFLICT, "NoRegistry", "There is no registry", detail)
            }
            EditError::Exists { .. } => {
                Self::new(StatusCode::CONFLICT, "Exists", "It is there already", detail)
            }
            EditError::Missing { .. } => Self::not_found(detail),
            EditError::ReadOnly { .. } => {
                Self::new(StatusCode::CONFLICT, "ReadOnly", "It is configured elsewhere", detail)
            }
            EditError::Changed { .. } => Self::precondition_failed(detail),
            EditError::Invalid(error) => invalid(&error),
            EditError::Refused(_) => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "Refused",
                "The toolbox would not run like that",
                detail,
            ),
            EditError::NotAllowed { .. } => {
                Self::new(StatusCode::FORBIDDEN, "NotAllowed", "The operator forbids it", detail)
            }
            EditError::Broken { .. } => {
                Self::new(StatusCode::CONFLICT, "Broken", "The files are broken", detail)
            }
            EditError::Store(_) => Self::unavailable(detail),
            EditError::Busy => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "Busy",
                "Too many changes are waiting",
                detail,
            )
            .header(RETRY_AFTER, HeaderValue::from(RETRY_SECS)),
            EditError::Stopping => Self::stopping(detail),
        };
        problem.remedy(remedy)
    }
}

/// A configuration that cannot be used, with everything that is wrong with it.
pub(super) fn invalid(ConfigError { problems }: &ConfigError) -> Problem {
    let mut errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    let detail = match (errors.next(), errors.count()) {
        (None, _) => "the configuration cannot be used".to_owned(),
        (Some(first), 0) => first.to_string(),
        (Some(first), more) => format!("{first} (and {more} more)"),
    };
    let title = "The configuration would not be valid";
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", title, detail);
    fields(problems).into_iter().fold(problem, Problem::error)
}

/// What is wrong, one by one.
pub(super) fn fields(problems: &[haft::config::Problem]) -> Vec<FieldProblem> {
    let field = |it: &haft::config::Problem| FieldProblem {
        place: match (it.place.path.as_str(), &it.place) {
            ("", place) => place.to_string(),
            (path, place) => format!("{place}: {path}"),
        },
        problem: it.problem.clone(),
        remedy: Some(it.remedy.clone()),
    };
    problems.iter().map(field).collect()
}
