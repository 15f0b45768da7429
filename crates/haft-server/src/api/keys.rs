//! API keys over the API: listing, creating and revoking them. For admins.

use std::sync::Arc;

use axum::Json as JsonAnswer;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Routes, Service};
use crate::keys::{KeyError, KeyFile, Scope, chain};
use crate::serve::{Json, Path, Problem};

pub(super) fn routes() -> Routes {
    let admin = OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(revoke));
    Routes { admin, ..Routes::default() }
}

/// The keys of the service, without their secrets.
#[derive(Debug, Serialize, ToSchema)]
struct KeyList {
    /// The keys, in the order of their creation.
    keys: Vec<KeySummary>,
}

/// A key, without its text.
#[derive(Debug, Serialize, ToSchema)]
struct KeySummary {
    /// Its name.
    name: String,
    /// `admin` or `call`.
    #[schema(value_type = String)]
    scope: &'static str,
    /// The profile that it is bound to.
    profile: Option<String>,
    /// The time of its creation, RFC 3339.
    created: String,
    /// The time of its last use, RFC 3339, at most a minute late.
    last_used: Option<String>,
}

/// The scope of a new key.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum KeyScope {
    /// Everything.
    Admin,
    /// Reading and calling tools.
    #[default]
    Call,
}

/// A key to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "ci", "scope": "call"}))]
struct NewKey {
    /// Its name, shown in lists and in the log.
    name: String,
    /// The scope; `call` by default.
    #[serde(default)]
    scope: KeyScope,
    /// An entry of `profiles` to bind a call key to: it may use the MCP endpoint of that one, and nothing else.
    #[serde(default)]
    profile: Option<String>,
}

/// A new key. Its text cannot be shown again.
#[derive(Debug, Serialize, ToSchema)]
struct CreatedKey {
    /// Its name.
    name: String,
    /// The key itself.
    key: String,
    /// `admin` or `call`.
    #[schema(value_type = String)]
    scope: &'static str,
    /// The profile that it is bound to.
    profile: Option<String>,
}

/// Lists the keys.
#[utoipa::path(
    get, path = "/api/v1/keys", operation_id = "list_keys", tag = "keys",
    responses(
        (status = 200, description = "The keys.", body = KeyList),
        (status = 503, description = "The file of the keys cannot be read."),
    )
)]
async fn list(State(service): State<Arc<Service>>) -> Result<JsonAnswer<KeyList>, Problem> {
    let listed = with_file(&service, |file| {
        let keys = file.list()?;
        let used = file.last_used(&keys);
        Ok((keys, used))
    });
    let (keys, used) = listed.await?;
    let keys = keys.into_iter().zip(used).map(|(key, used)| KeySummary {
        name: key.name,
        scope: key.scope.word(),
        profile: key.profile,
        created: key.created.to_string(),
        last_used: used.map(|at| at.to_string()),
    });
    Ok(JsonAnswer(KeyList { keys: keys.collect() }))
}

/// Creates a key. The answer is the only place that shows it.
#[utoipa::path(
    post, path = "/api/v1/keys", operation_id = "create_key", tag = "keys", request_body = NewKey,
    responses(
        (status = 201, description = "The key.", body = CreatedKey),
        (status = 409, description = "A key has this name."),
        (status = 422, description = "The name is invalid, the profile is unknown, or an admin key is bound to one."),
        (status = 503, description = "The file of the keys cannot be written."),
    )
)]
async fn create(
    State(service): State<Arc<Service>>,
    Json(new): Json<NewKey>,
) -> Result<(StatusCode, JsonAnswer<CreatedKey>), Problem> {
    let NewKey { name, scope, profile } = new;
    let scope = match scope {
        KeyScope::Admin => Scope::Admin,
        KeyScope::Call => Scope::Call,
    };
    if let Some(profile) = &profile {
        check_profile(&service, scope, profile)?;
    }
    let bound = profile.clone();
    let (key, entry) = with_file(&service, move |file| match bound {
        Some(profile) => file.create_for_profile(&name, &profile),
        None => file.create(&name, scope),
    })
    .await?;
    let created = CreatedKey {
        name: entry.name,
        key: key.expose().to_owned(),
        scope: entry.scope.word(),
        profile,
    };
    Ok((StatusCode::CREATED, JsonAnswer(created)))
}

/// Revokes a key. The service refuses it within a second, and what it holds open ends.
#[utoipa::path(
    delete, path = "/api/v1/keys/{name}", operation_id = "revoke_key", tag = "keys",
    params(("name" = String, Path, description = "The key's name.")),
    responses(
        (status = 204, description = "It is revoked."),
        (status = 404, description = "No key has this name."),
        (status = 503, description = "The file of the keys cannot be written."),
    )
)]
async fn revoke(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    with_file(&service, move |file| file.revoke(&name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A typing mistake would create a key that opens nothing.
fn check_profile(service: &Service, scope: Scope, profile: &str) -> Result<(), Problem> {
    let invalid = |detail: String| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidKey", "The key is invalid", detail)
    };
    if scope == Scope::Admin {
        return Err(invalid("an admin key cannot be bound to a profile".to_owned())
            .remedy("leave out `profile`, or create a call key"));
    }
    let config = service.live.runtime().config();
    let mut names = config.profiles.iter().map(|profile| &*profile.name);
    if names.any(|name| name == profile) {
        return Ok(());
    }
    Err(invalid(format!("no profile is named `{profile}`"))
        .remedy("name an entry of `profiles` in the configuration"))
}

/// Reads or changes the file of the keys, on a thread that may wait for it.
async fn with_file<T: Send + 'static>(
    service: &Service,
    work: impl FnOnce(&KeyFile) -> Result<T, KeyError> + Send + 'static,
) -> Result<T, Problem> {
    let file = service.keys.file().clone();
    let done = tokio::task::spawn_blocking(move || work(&file)).await;
    done.map_err(|error| Problem::unavailable(error.to_string()))?.map_err(|error| problem(&error))
}

fn problem(error: &KeyError) -> Problem {
    let text = chain(error);
    let problem = match error {
        KeyError::Name { .. } => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidKey", "The key is invalid", text)
        }
        KeyError::Taken { .. } | KeyError::TooMany => Problem::conflict(text),
        KeyError::Unknown { .. } => Problem::not_found(text),
        KeyError::Io { .. }
        | KeyError::Invalid { .. }
        | KeyError::Exposed { .. }
        | KeyError::Random(_) => Problem::unavailable(text),
    };
    let remedy = match error {
        KeyError::Unknown { nearest: None, .. } => "`GET /api/v1/keys` lists every key".to_owned(),
        KeyError::TooMany => "revoke some with `DELETE /api/v1/keys/{name}`".to_owned(),
        error => error.remedy(),
    };
    problem.remedy(remedy)
}
