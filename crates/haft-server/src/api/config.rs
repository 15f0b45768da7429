//! The configuration in use, and loading it again.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use haft::config::{ConfigFile, show};
use haft::live::{LiveStatus, ReloadError};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::edit_problem::{errors, field};
use super::{Routes, Service};
use crate::serve::{FieldProblem, Problem};

pub(super) fn routes() -> Routes {
    let admin = OpenApiRouter::new().routes(routes!(resolved)).routes(routes!(reload));
    Routes { admin, ..Routes::default() }
}

/// The configuration in use.
#[derive(Debug, Serialize, ToSchema)]
struct Resolved {
    /// Every effective value with its origin; secrets are masked.
    values: Vec<Effective>,
    /// The files it was made from.
    files: Vec<File>,
    /// Problems that do not stop the service.
    warnings: Vec<FieldProblem>,
    /// State of the file watcher.
    live: Following,
}

/// One effective value.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Effective {
    /// Where it belongs, such as `servers.customers.mode`.
    path: String,
    /// The value; a secret is `***`.
    #[schema(value_type = serde_json::Value)]
    value: serde_json::Value,
    /// `explicit` or `default`.
    #[schema(value_type = String)]
    origin: &'static str,
    /// Which file and line, which variable, which default.
    from: String,
}

impl Effective {
    pub(super) fn of(row: show::Row) -> Self {
        let show::Row { path, value, origin, from } = row;
        Self { path, value, origin, from }
    }
}

/// A file the configuration was made from.
#[derive(Debug, Serialize, ToSchema)]
struct File {
    /// Its name, as it is shown.
    name: String,
    /// Its format.
    format: String,
    /// Where it lies.
    path: String,
}

/// State of the file watcher.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Following {
    /// The registry's revision in use; nothing without a registry.
    revision: Option<String>,
    /// Since when the state in use is in use.
    #[schema(format = DateTime)]
    since: String,
    /// Why the files as they are now are not in use.
    problem: Option<NotInUse>,
    /// Settings that were changed and take effect at the next start only.
    waiting_for_restart: Vec<String>,
}

/// Why the files as they are now are not in use. The state before stays.
#[derive(Debug, Serialize, ToSchema)]
struct NotInUse {
    /// Since when.
    #[schema(format = DateTime)]
    since: String,
    /// All problems in one string.
    text: String,
    /// The problems of the files, if the files are the reason.
    errors: Vec<FieldProblem>,
}

impl Following {
    pub(super) fn of(status: LiveStatus) -> Self {
        let LiveStatus { revision, since, problem, waiting_for_restart } = status;
        Self {
            waiting_for_restart,
            revision: revision.map(|revision| revision.to_string()),
            since: since.to_string(),
            problem: problem.map(|problem| NotInUse {
                since: problem.since.to_string(),
                text: problem.text,
                errors: problem.problems.iter().map(field).collect(),
            }),
        }
    }
}

/// The configuration in use: every value with its origin, and whether the files as they are now are it.
#[utoipa::path(
    get, path = "/api/v1/config", operation_id = "get_config", tag = "configuration",
    responses((status = 200, description = "The configuration in use.", body = Resolved))
)]
async fn resolved(State(service): State<Arc<Service>>) -> Json<Resolved> {
    let config = service.live.runtime().config();
    let file = |file: &ConfigFile| File {
        name: file.name.to_string(),
        format: file.dialect.to_string(),
        path: file.path.display().to_string(),
    };
    Json(Resolved {
        values: show::rows(&config).into_iter().map(Effective::of).collect(),
        files: config.files.iter().map(file).collect(),
        warnings: config.warnings.iter().map(field).collect(),
        live: Following::of(service.live.status()),
    })
}

/// Loads the files again, whether they changed or not. If they cannot be used, the state before stays.
#[utoipa::path(
    post, path = "/api/v1/reload", operation_id = "reload_config", tag = "configuration",
    responses(
        (status = 200, description = "The files are in use.", body = Following),
        (status = 422, description = "The files are invalid; see `errors`."),
        (status = 503, description = "The registry cannot be read now."),
    )
)]
async fn reload(State(service): State<Arc<Service>>) -> Result<Json<Following>, Problem> {
    service.live.reload().await.map_err(refused)?;
    Ok(Json(Following::of(service.live.status())))
}

fn refused(error: ReloadError) -> Problem {
    let detail = error.to_string();
    match error {
        ReloadError::Invalid(error) => {
            let title = "The files cannot be used";
            let detail = "the files cannot be used; the state before stays in use";
            let problem =
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidFiles", title, detail);
            errors(&error).fold(problem, Problem::error).remedy("fix the problems in `errors`")
        }
        ReloadError::Refused(error) => {
            let title = "The toolbox would not run like that";
            let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "Refused", title, detail);
            problem.remedy(error.remedy().unwrap_or_else(|| "fix the files".to_owned()))
        }
        ReloadError::Store(error) => Problem::unavailable(detail).remedy(error.remedy()),
        ReloadError::Stopping => Problem::stopping(detail).remedy("try again when it is back"),
    }
}
