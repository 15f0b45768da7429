//! The audit log over the API: `GET /api/v1/audit`. For admins.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use haft::config::NamePattern;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Routes, Service};
use crate::audit::{AuditEntry, AuditFilter, AuditPage};
use crate::serve::{Problem, Query};
use crate::timestamp;

/// Largest number of actions in one answer.
const LIMIT_MAX: usize = 1000;
const LIMIT_DEFAULT: usize = 100;

pub(super) fn routes() -> Routes {
    Routes { admin: OpenApiRouter::new().routes(routes!(list)), ..Routes::default() }
}

/// Which actions to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AuditQuery {
    /// Only those since then: a duration ago such as `7d`, a date, or a time.
    since: Option<String>,
    /// Only those of this caller, such as `key:me`.
    who: Option<String>,
    /// Only those that match, such as `key.*`.
    action: Option<String>,
    /// Largest number of actions.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
}

/// Actions of admins.
#[derive(Debug, Serialize, ToSchema)]
struct AuditList {
    /// The actions, newest first.
    #[schema(value_type = Vec<AuditEntrySchema>)]
    actions: Vec<AuditEntry>,
    /// Number of lines that cannot be read and are left out.
    malformed: u64,
}

/// One action.
#[derive(ToSchema)]
#[schema(as = AuditEntry)]
#[allow(dead_code, reason = "only described; the log's own type is sent")]
struct AuditEntrySchema {
    /// Identifies it.
    id: String,
    /// The time of its beginning, RFC 3339.
    at: String,
    /// The caller: `key:` and the key's name, `cli:` and the user, `local` or `signal`.
    who: String,
    /// The address it came from, or `terminal`.
    from: String,
    /// The action, such as `key.create`.
    action: String,
    /// The name of the changed item.
    #[schema(required = false)]
    target: String,
    /// The item before, secrets masked. `unreadable` has the reason if it could not be read.
    #[schema(required = false, value_type = Object)]
    before: serde_json::Value,
    /// The item after, secrets masked.
    #[schema(required = false, value_type = Object)]
    after: serde_json::Value,
    /// `done`, `failed`, or `started` if its end is not recorded.
    outcome: String,
    /// The HTTP status of the answer.
    #[schema(required = false)]
    status: u16,
}

/// Lists what admins did, newest first.
#[utoipa::path(
    get, path = "/api/v1/audit", operation_id = "list_audit", tag = "audit", params(AuditQuery),
    responses(
        (status = 200, description = "The actions.", body = AuditList),
        (status = 400, description = "The query cannot be read."),
        (status = 503, description = "The audit log cannot be read."),
    )
)]
async fn list(
    State(service): State<Arc<Service>>,
    Query(query): Query<AuditQuery>,
) -> Result<Json<AuditList>, Problem> {
    let AuditQuery { since, who, action, limit } = query;
    let limit = limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is not between 1 and {LIMIT_MAX}")));
    }
    let since = since.map(|since| timestamp::parse(&since)).transpose();
    let since = since.map_err(|problem| Problem::bad_request(format!("`since`: {problem}")))?;
    let action = match action {
        None => None,
        Some(text) => Some(NamePattern::parse(&text).ok_or_else(|| {
            Problem::bad_request("`action` is not a pattern").remedy("write such as `key.*`")
        })?),
    };
    let filter = AuditFilter { since, who, action, limit };
    let audit = Arc::clone(&service.audit);
    let read = tokio::task::spawn_blocking(move || audit.read(&filter)).await;
    let read = read.map_err(|error| Problem::unavailable(error.to_string()))?;
    let AuditPage { actions, malformed } = read
        .map_err(|error| Problem::unavailable(format!("the audit log cannot be read: {error}")))?;
    Ok(Json(AuditList { actions, malformed }))
}
