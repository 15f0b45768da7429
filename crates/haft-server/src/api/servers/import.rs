//! The servers of a client's file as entries for the registry. Reads with the code of `haft import` and adds nothing.

use std::sync::Arc;

use axum::Json as JsonAnswer;
use axum::extract::State;
use axum::http::StatusCode;
use haft::Remedy;
use haft::config::{
    ConfigError, Imported, LoadOptions, Problem as ConfigProblem, Severity, import_text,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use super::Service;
use crate::api::edit_problem::field;
use crate::api::remedy::endpoint;
use crate::serve::{FieldProblem, Json, Problem};

/// The text of a client's file.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"text": "{\"mcpServers\": {\"time\": {\"command\": \"uvx\", \"args\": [\"mcp-server-time\"]}}}"}))]
pub(super) struct ImportRequest {
    /// The text: JSON, TOML or YAML in any format that `haft import` reads.
    #[schema(min_length = 1)]
    text: String,
}

/// The servers of the text.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ImportedServers {
    /// The servers, each as `POST /api/v1/servers` takes it.
    #[schema(value_type = Vec<crate::api::schemas::ServerRegistrationSchema>)]
    servers: Vec<Value>,
    /// Variables that the entries refer to and that are not set in the environment of the service.
    unset: Vec<String>,
    /// Settings without a counterpart.
    warnings: Vec<String>,
}

/// Reads the servers of a client's file.
///
/// Understands every format that `haft import` reads and answers with entries for the registry. Nothing is added.
#[utoipa::path(
    post, path = "/api/v1/servers/import", operation_id = "import_servers", tag = "servers",
    request_body = ImportRequest,
    responses(
        (status = 200, description = "The entries.", body = ImportedServers),
        (status = 422, description = "The text cannot be read, or has no servers."),
    )
)]
pub(super) async fn import(
    State(service): State<Arc<Service>>,
    Json(request): Json<ImportRequest>,
) -> Result<JsonAnswer<ImportedServers>, Problem> {
    let config = service.live.runtime().config();
    let target = config.registry_dir.as_ref().map(|dir| dir.value.clone()).unwrap_or_default();
    let read = spawn_blocking(move || {
        let options = LoadOptions::from_process(Vec::new());
        import_text(&request.text, file_name(&request.text), &options, &target)
    });
    let imported =
        read.await.map_err(|_| Problem::internal())?.map_err(|error| unreadable(&error))?;
    if imported.servers.is_empty() {
        return Err(invalid("the text has no servers").remedy(EXAMPLE));
    }
    Ok(JsonAnswer(ImportedServers::from(imported)))
}

const EXAMPLE: &str = "paste a whole file, or an object such as `{\"mcpServers\": {...}}`";

fn invalid(detail: &str) -> Problem {
    let title = "The text is not valid";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidText", title, detail)
}

fn unreadable(error: &ConfigError) -> Problem {
    let problem =
        invalid("the servers of the text cannot be read; nothing was added").remedy(EXAMPLE);
    let errors = error.problems.iter().filter(|each| each.severity == Severity::Error);
    errors.map(without_format).fold(problem, Problem::error)
}

/// A request cannot name the format of a pasted text, so the remedy of the whole stands for that one.
fn without_format(problem: &ConfigProblem) -> FieldProblem {
    let named = field(problem);
    match problem.remedy {
        Remedy::NameFormat { .. } => FieldProblem { remedy: None, ..named },
        _ => named,
    }
}

/// A file name for content without one: the ending selects the parser.
fn file_name(text: &str) -> &'static str {
    let text = text.trim_start();
    let is_table = text.lines().any(|line| line.trim_start().starts_with("[mcp_servers"));
    match text.chars().next() {
        Some('{') => "pasted.json",
        _ if is_table => "pasted.toml",
        Some(_) | None => "pasted.yaml",
    }
}

impl From<Imported> for ImportedServers {
    fn from(imported: Imported) -> Self {
        let servers = imported.servers.into_iter().map(|(name, mut entry)| {
            if let Some(entry) = entry.as_object_mut() {
                entry.insert("name".to_owned(), name.into());
            }
            entry
        });
        let warnings = imported
            .warnings
            .iter()
            .map(|problem| format!("{problem}: {}", endpoint(&problem.remedy)));
        Self { servers: servers.collect(), unset: imported.unset, warnings: warnings.collect() }
    }
}
