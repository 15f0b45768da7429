//! API keys over the API: listing, creating, rotating and revoking them. For admins.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::Json as JsonAnswer;
use axum::extract::State;
use axum::http::StatusCode;
use haft::AccessLists;
use haft::config::call_limits::CallLimits;
use haft::config::log_quota::LogQuota;
use haft::config::quantity::parse_duration;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::audited::CreatedName;
use super::edit_problem::{DATABASE_FOR, come_again};
use super::{Routes, Service};
use crate::keys::{self, Key, KeyEntry, KeyError, Scope, StoredKey, chain, patterns, texts};
use crate::serve::{Json, Path, Problem};

pub(super) fn routes() -> Routes {
    let admin = OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(revoke))
        .routes(routes!(rotate));
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
    /// `admin`, `approve`, `call` or `metrics`.
    #[schema(value_type = String)]
    scope: &'static str,
    /// The profile that it is bound to.
    profile: Option<String>,
    /// The time of its creation, RFC 3339.
    created: String,
    /// The time of its last use, RFC 3339, at most a minute late.
    last_used: Option<String>,
    #[serde(flatten)]
    limits: KeyLimits,
}

/// The limits of a key.
#[derive(Debug, Serialize, ToSchema)]
struct KeyLimits {
    /// The time from which on it is refused, RFC 3339.
    expires: Option<String>,
    /// The highest rate of its calls, such as `60/min`.
    rate: Option<String>,
    /// Calls that may come at once.
    burst: Option<u32>,
    /// The most calls on one UTC day, such as `10000/day`.
    quota: Option<String>,
    /// The most bytes of its entries in the log on one UTC day, such as `100MB/day`.
    log_quota: Option<String>,
    /// The only tools that it sees and calls.
    tools: Option<Vec<String>>,
    /// The only servers that it sees.
    servers: Option<Vec<String>>,
    /// The time until which the secret before the last rotation works, RFC 3339.
    previous_until: Option<String>,
}

impl KeyLimits {
    fn of(key: &KeyEntry) -> Self {
        Self {
            expires: key.expires.map(|time| time.to_string()),
            rate: key.limits.rate.map(|rate| rate.to_string()),
            burst: key.limits.burst.map(Into::into),
            quota: key.limits.quota.map(|quota| quota.to_string()),
            log_quota: key.log_quota.map(|quota| quota.to_string()),
            tools: texts(key.lists.tools.as_ref()),
            servers: texts(key.lists.servers.as_ref()),
            previous_until: key.previous.map(|previous| previous.until.to_string()),
        }
    }
}

/// The scope of a new key.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum KeyScope {
    /// Everything.
    Admin,
    /// Reading and calling tools, and approving calls.
    Approve,
    /// Reading and calling tools.
    #[default]
    Call,
    /// Reading `/metrics` and the health of the service.
    Metrics,
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
    /// The highest rate of its calls, such as `60/min`, `5/s` or `1000/h`.
    #[serde(default)]
    rate: Option<String>,
    /// Calls that may come at once under `rate`; by default the calls of one second.
    #[serde(default)]
    #[schema(minimum = 1)]
    burst: Option<u32>,
    /// The most calls on one UTC day, such as `10000/day`.
    #[serde(default)]
    quota: Option<String>,
    /// The most bytes of its entries in the log on one UTC day, such as `100MB/day`. Entries beyond it have no
    /// arguments and no answer.
    #[serde(default)]
    log_quota: Option<String>,
    /// The time after which it is refused, such as `30d`.
    #[serde(default)]
    expires: Option<String>,
    /// The only tools that it sees and calls, by name or pattern such as `read_*` or `files/read_*`.
    #[serde(default)]
    #[schema(max_items = 100)]
    tools: Vec<String>,
    /// The only servers that it sees, by name or pattern. `local` stands for tools that run here.
    #[serde(default)]
    #[schema(max_items = 100)]
    servers: Vec<String>,
}

/// The options of a rotation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(example = json!({"overlap": "1h"}))]
struct Rotation {
    /// The time during which the old secret works too, such as `1h`; none by default.
    overlap: Option<String>,
    /// A new expiry, counted from now, such as `30d`; without it the expiry stays.
    expires: Option<String>,
}

/// A new key. Its text cannot be shown again.
#[derive(Debug, Serialize, ToSchema)]
struct CreatedKey {
    /// Its name.
    name: String,
    /// The key itself.
    key: String,
    /// `admin`, `approve`, `call` or `metrics`.
    #[schema(value_type = String)]
    scope: &'static str,
    /// The profile that it is bound to.
    profile: Option<String>,
    #[serde(flatten)]
    limits: KeyLimits,
}

impl CreatedKey {
    fn new(key: &Key, entry: KeyEntry) -> Self {
        let limits = KeyLimits::of(&entry);
        let KeyEntry { name, scope, profile, .. } = entry;
        Self { name, key: key.expose().to_owned(), scope: scope.word(), profile, limits }
    }
}

/// Lists the keys.
#[utoipa::path(
    get, path = "/api/v1/keys", operation_id = "list_keys", tag = "keys",
    responses(
        (status = 200, description = "The keys.", body = KeyList),
        (status = 503, description = "The keys cannot be read: from their file, or with `shared` from the database."),
    )
)]
async fn list(State(service): State<Arc<Service>>) -> Result<JsonAnswer<KeyList>, Problem> {
    let keys = service.keys.store().list().await.map_err(|error| problem(&error))?;
    let keys = keys.into_iter().map(|StoredKey { entry: key, last_used }| KeySummary {
        limits: KeyLimits::of(&key),
        name: key.name,
        scope: key.scope.word(),
        profile: key.profile,
        created: key.created.to_string(),
        last_used: last_used.map(|at| at.to_string()),
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
        (status = 503, description = "The keys cannot be written: to their file, or with `shared` to the database."),
    )
)]
async fn create(
    State(service): State<Arc<Service>>,
    Json(new): Json<NewKey>,
) -> Result<(StatusCode, Extension<CreatedName>, JsonAnswer<CreatedKey>), Problem> {
    let NewKey { name, scope, profile, rate, burst, quota, log_quota, expires, tools, servers } =
        new;
    let scope = match scope {
        KeyScope::Admin => Scope::Admin,
        KeyScope::Approve => Scope::Approve,
        KeyScope::Call => Scope::Call,
        KeyScope::Metrics => Scope::Metrics,
    };
    if let Some(profile) = &profile {
        check_profile(&service, scope, profile)?;
    }
    let limits = CallLimits::parse(rate.as_deref(), burst, quota.as_deref()).map_err(invalid)?;
    let lists = AccessLists {
        tools: patterns("tools", &tools).map_err(invalid)?,
        servers: patterns("servers", &servers).map_err(invalid)?,
    };
    let expires = duration("expires", expires.as_deref())?;
    let log_quota = log_quota.as_deref().map(LogQuota::parse).transpose().map_err(invalid)?;
    let new = keys::NewKey { name, scope, profile, expires, limits, lists, log_quota };
    let created = service.keys.store().create(new).await;
    let (key, entry) = created.map_err(|error| problem(&error))?;
    refresh(&service).await;
    let created = Extension(CreatedName(entry.name.clone()));
    Ok((StatusCode::CREATED, created, JsonAnswer(CreatedKey::new(&key, entry))))
}

/// Gives a key a new secret. The answer is the only place that shows it.
///
/// The old secret ends at once, or after `overlap`. Name, limits and everything that belongs to the key stay.
#[utoipa::path(
    post, path = "/api/v1/keys/{name}/rotate", operation_id = "rotate_key", tag = "keys", request_body = Rotation,
    params(("name" = String, Path, description = "The key's name.")),
    responses(
        (status = 200, description = "The key with its new secret.", body = CreatedKey),
        (status = 404, description = "No key has this name."),
        (status = 422, description = "A time cannot be read."),
        (status = 503, description = "The keys cannot be written: to their file, or with `shared` to the database."),
    )
)]
async fn rotate(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    Json(Rotation { overlap, expires }): Json<Rotation>,
) -> Result<JsonAnswer<CreatedKey>, Problem> {
    let overlap = duration("overlap", overlap.as_deref())?.unwrap_or_default();
    let expires = duration("expires", expires.as_deref())?;
    let rotated = service.keys.store().rotate(&name, overlap, expires).await;
    let (key, entry) = rotated.map_err(|error| problem(&error))?;
    refresh(&service).await;
    Ok(JsonAnswer(CreatedKey::new(&key, entry)))
}

/// Revokes a key. The service refuses it within a second, and what it holds open ends.
#[utoipa::path(
    delete, path = "/api/v1/keys/{name}", operation_id = "revoke_key", tag = "keys",
    params(("name" = String, Path, description = "The key's name.")),
    responses(
        (status = 204, description = "It is revoked."),
        (status = 404, description = "No key has this name."),
        (status = 503, description = "The keys cannot be written: to their file, or with `shared` to the database."),
    )
)]
async fn revoke(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    service.keys.store().revoke(&name).await.map_err(|error| problem(&error))?;
    refresh(&service).await;
    Ok(StatusCode::NO_CONTENT)
}

/// A typing mistake would create a key that opens nothing.
fn check_profile(service: &Service, scope: Scope, profile: &str) -> Result<(), Problem> {
    if scope != Scope::Call {
        return Err(invalid(format!(
            "a key with the scope `{scope}` cannot be bound to a profile"
        ))
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

fn invalid(detail: String) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidKey", "The key is invalid", detail)
}

fn duration(field: &str, text: Option<&str>) -> Result<Option<Duration>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let parsed = parse_duration(text).map(Some);
    parsed.map_err(|problem| {
        invalid(format!("`{field}` is not a usable duration: {problem}"))
            .remedy("write a time such as `1h` or `30d`, above zero")
    })
}

/// Lets this replica use a change at once. If that fails, it has the change within a second.
async fn refresh(service: &Service) {
    if let Err(error) = service.keys.refresh_shared().await {
        tracing::warn!(%error, "a change of the keys is not used yet");
    }
}

fn problem(error: &KeyError) -> Problem {
    let text = chain(error);
    let problem = match error {
        KeyError::Name { .. } | KeyError::Parts { .. } => invalid(text),
        KeyError::Taken { .. } | KeyError::TooMany => Problem::conflict(text),
        KeyError::Unknown { .. } => Problem::not_found(text),
        KeyError::Io { .. }
        | KeyError::Invalid { .. }
        | KeyError::Exposed { .. }
        | KeyError::Random(_) => Problem::unavailable(text),
        KeyError::Unavailable { .. } => come_again(Problem::unavailable(text), DATABASE_FOR),
        KeyError::OutcomeUnknown { .. } => {
            let title = "It is not known whether the change was written";
            let status = StatusCode::SERVICE_UNAVAILABLE;
            come_again(Problem::new(status, "OutcomeUnknown", title, text), DATABASE_FOR)
        }
    };
    let remedy = match error {
        KeyError::Unknown { nearest: None, .. } => "`GET /api/v1/keys` lists every key".to_owned(),
        KeyError::TooMany => "revoke some with `DELETE /api/v1/keys/{name}`".to_owned(),
        error => error.remedy(),
    };
    problem.remedy(remedy)
}
