//! The lock file: what differs from it, and approving that. For admins.

use std::sync::Arc;

use axum::Extension;
use axum::Json as JsonAnswer;
use axum::extract::State;
use axum::http::StatusCode;
use haft::lock::{Drift, LockedKind};
use haft::{ApproveError, DefinitionChoice, LockStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::audited::{CreatedName, StateAfter};
use super::remedy::endpoint;
use super::{Routes, Service};
use crate::audit::unreadable;
use crate::serve::{Caller, Json, Problem};

pub(super) fn routes() -> Routes {
    let admin = OpenApiRouter::new().routes(routes!(show)).routes(routes!(approve));
    Routes { admin, ..Routes::default() }
}

/// The lock file and what differs from it.
#[derive(Serialize, ToSchema)]
#[schema(as = LockStatus)]
struct LockStatusSchema {
    /// The path of the lock file.
    file: String,
    /// True if the file exists.
    exists: bool,
    /// Handling of definitions that differ (`policy.definitions`): `block`, `warn` or `follow`.
    definitions: String,
    /// The differences, by server.
    drift: Vec<DriftSchema>,
    /// Servers that are not in the lock file.
    unlocked: Vec<String>,
    /// Servers of the lock file that are not configured.
    gone: Vec<String>,
    /// Servers that were never listed, so nothing is known about them.
    unlisted: Vec<String>,
}

/// An item that differs from the lock file.
#[derive(Serialize, ToSchema)]
#[schema(as = Drift)]
struct DriftSchema {
    /// The server.
    server: String,
    /// The kind of the item.
    kind: LockedKindSchema,
    /// Its name, or its URI template; empty for the server itself and its instructions.
    name: String,
    /// `changed`, `new`, `removed` or `renamed`.
    state: String,
    /// The approved name of a renamed item.
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_from: Option<String>,
    /// The hash of the approved definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<String>,
    /// The hash of the current definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    /// The single changes.
    changes: Vec<DefinitionChangeSchema>,
}

/// One change of a definition.
#[derive(Serialize, ToSchema)]
#[schema(as = DefinitionChange)]
struct DefinitionChangeSchema {
    /// The kind of change, such as `parameter_added`, `type_widened`, `text_changed` or `hidden_characters`.
    kind: String,
    /// The parameter or field.
    at: String,
    /// The approved value.
    #[schema(required = false)]
    before: Value,
    /// The current value.
    #[schema(required = false)]
    after: Value,
    /// The changed words of a string.
    #[schema(required = false)]
    words: Vec<WordEditSchema>,
}

/// A run of words of a changed text.
#[derive(Serialize, ToSchema)]
#[schema(as = WordEdit)]
struct WordEditSchema {
    /// `same`, `removed` or `added`.
    op: String,
    /// The words.
    text: String,
}

/// The kind of a locked item.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[schema(as = LockedKind)]
#[serde(rename_all = "snake_case")]
enum LockedKindSchema {
    /// The facts about a server.
    Server,
    /// The instructions of a server.
    Instructions,
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource template.
    ResourceTemplate,
}

impl From<LockedKindSchema> for LockedKind {
    fn from(kind: LockedKindSchema) -> Self {
        match kind {
            LockedKindSchema::Server => Self::Server,
            LockedKindSchema::Instructions => Self::Instructions,
            LockedKindSchema::Tool => Self::Tool,
            LockedKindSchema::Prompt => Self::Prompt,
            LockedKindSchema::ResourceTemplate => Self::ResourceTemplate,
        }
    }
}

/// The definitions to approve.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"server": "files", "kind": "tool", "name": "read_file"}))]
struct ApproveRequest {
    /// The server.
    server: String,
    /// The kind of the item; any by default.
    #[serde(default)]
    #[schema(required = false)]
    kind: Option<LockedKindSchema>,
    /// The name of the item. Without one, everything of the server is approved.
    #[serde(default)]
    #[schema(required = false)]
    name: Option<String>,
    /// `current` of the difference that was reviewed. A definition that has changed since is not approved.
    #[serde(default)]
    #[schema(required = false)]
    hash: Option<String>,
}

/// The approved definitions.
#[derive(Debug, Serialize, ToSchema)]
struct Approved {
    /// The differences that were written to the lock file.
    #[schema(value_type = Vec<DriftSchema>)]
    approved: Vec<Drift>,
}

/// Compares the servers with the lock file.
///
/// Servers are compared as they were last listed. Without a lock file nothing differs.
#[utoipa::path(
    get, path = "/api/v1/lock", operation_id = "get_lock", tag = "lock",
    responses((status = 200, description = "The lock file and what differs from it.", body = LockStatusSchema))
)]
async fn show(State(service): State<Arc<Service>>) -> JsonAnswer<LockStatus> {
    JsonAnswer(service.live.runtime().lock_status())
}

/// Approves definitions that differ.
///
/// The current definitions are written to the lock file and used from now on. Comments and order of the file stay.
#[utoipa::path(
    post, path = "/api/v1/lock/approve", operation_id = "approve_definitions", tag = "lock",
    request_body = ApproveRequest,
    responses(
        (status = 200, description = "They are approved.", body = Approved),
        (status = 404, description = "There is no lock file, no such server, or nothing of that name differs."),
        (status = 409, description = "The definition changed again after it was reviewed, or is not known yet."),
        (status = 503, description = "The lock file cannot be written."),
    )
)]
async fn approve(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Json(request): Json<ApproveRequest>,
) -> Result<(Extension<CreatedName>, Extension<StateAfter>, JsonAnswer<Approved>), Problem> {
    let ApproveRequest { server, kind, name, hash } = request;
    let target = match &name {
        Some(name) => format!("{server}/{name}"),
        None => server.clone(),
    };
    let choice = DefinitionChoice { server, kind: kind.map(Into::into), name, hash };
    let approved = service.live.runtime().approve_definitions(&choice).await;
    let approved = approved.map_err(|error| problem(&error))?;
    for drift in &approved {
        tracing::info!(by = &*caller.name, item = drift.title(), "a definition was approved");
    }
    let approved = Approved { approved };
    let after = serde_json::to_value(&approved).unwrap_or_else(unreadable);
    let (target, after) = (Extension(CreatedName(target)), Extension(StateAfter(after)));
    Ok((target, after, JsonAnswer(approved)))
}

fn problem(error: &ApproveError) -> Problem {
    let (status, code, title) = match error {
        ApproveError::NoLock { .. }
        | ApproveError::UnknownServer { .. }
        | ApproveError::NoDrift { .. } => {
            (StatusCode::NOT_FOUND, "NotFound", "There is nothing to approve")
        }
        ApproveError::Unlisted { .. }
        | ApproveError::Unlocked { .. }
        | ApproveError::Stale { .. } => {
            (StatusCode::CONFLICT, "Conflict", "The definition cannot be approved now")
        }
        ApproveError::Write(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "ServiceUnavailable",
            "The lock file cannot be written",
        ),
    };
    Problem::new(status, code, title, error.to_string()).remedy(endpoint(&error.remedy()))
}
