//! The session of the web console: signing in with a key, signing out, and a link that signs in once.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{AppendHeaders, IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Routes, Service};
use crate::serve::{Caller, Problem};

pub(super) fn routes() -> Routes {
    let calling =
        OpenApiRouter::new().routes(routes!(show, open, close)).routes(routes!(create_link));
    Routes { calling, ..Routes::default() }
}

/// The caller that a session acts for.
#[derive(Debug, Serialize, ToSchema)]
struct Session {
    /// `key:` and the name of the key, or `local` if the service needs no key.
    name: String,
    /// `admin` or `call`.
    #[schema(value_type = String)]
    scope: &'static str,
    /// The profile that the key is bound to.
    profile: Option<String>,
    /// True if a key stands behind it.
    is_key: bool,
}

impl Session {
    fn of(caller: &Caller) -> Self {
        Self {
            name: caller.name.to_string(),
            scope: caller.scope.word(),
            profile: caller.profile.as_deref().map(str::to_owned),
            is_key: !caller.is_local(),
        }
    }
}

/// A link that opens the console signed in.
#[derive(Debug, Serialize, ToSchema)]
struct SignInLink {
    /// The path with its token. It works once, within two minutes.
    path: String,
}

/// Shows the caller of the request.
#[utoipa::path(
    get, path = "/api/v1/session", operation_id = "get_session", tag = "session",
    responses((status = 200, description = "The caller.", body = Session))
)]
async fn show(caller: Caller) -> Json<Session> {
    Json(Session::of(&caller))
}

/// Signs the console in.
///
/// Send the key as `X-API-Key`. The answer sets a session cookie that stands for it, until the key is revoked,
/// the session is not used for eight hours, or the user signs out. Changes by cookie need the header
/// `X-Haft-Console`.
#[utoipa::path(
    post, path = "/api/v1/session", operation_id = "sign_in", tag = "session",
    responses(
        (status = 200, description = "Signed in.", body = Session),
        (status = 503, description = "The system gives no random numbers."),
    )
)]
async fn open(State(service): State<Arc<Service>>, caller: Caller) -> Result<Response, Problem> {
    let session = Json(Session::of(&caller));
    if caller.is_local() {
        return Ok(session.into_response());
    }
    let cookie = service.sessions.open(caller, service.is_tls())?;
    Ok((AppendHeaders([(SET_COOKIE, cookie)]), session).into_response())
}

/// Signs the console out.
#[utoipa::path(
    delete, path = "/api/v1/session", operation_id = "sign_out", tag = "session",
    responses((status = 204, description = "Signed out."))
)]
async fn close(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let cookie = service.sessions.close(&headers, service.is_tls())?;
    Ok((StatusCode::NO_CONTENT, AppendHeaders([(SET_COOKIE, cookie)])).into_response())
}

/// Creates a link that opens the console signed in, for the key of this request.
#[utoipa::path(
    post, path = "/api/v1/session/link", operation_id = "create_sign_in_link", tag = "session",
    responses(
        (status = 200, description = "The link.", body = SignInLink),
        (status = 503, description = "The system gives no random numbers."),
    )
)]
async fn create_link(
    State(service): State<Arc<Service>>,
    caller: Caller,
) -> Result<Json<SignInLink>, Problem> {
    if caller.is_local() {
        return Ok(Json(SignInLink { path: "/".to_owned() }));
    }
    let token = service.sessions.link(caller)?;
    Ok(Json(SignInLink { path: format!("/?link={token}") }))
}
