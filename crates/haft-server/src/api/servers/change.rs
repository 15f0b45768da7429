//! Adding, replacing and removing servers of the registry. Nothing of a body runs before it is checked as
//! part of the whole configuration, allowed by the operator and durable.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use haft::live::{Action, Condition, Edit, EditEffect, EditOutcome, RegistryDocument};

use super::Service;
use super::view::{Audience, Server};
use crate::api::edit_problem::EditProblems;
use crate::api::entry::Entry;
use crate::api::precondition::{Precondition, etag};
use crate::api::schemas::ServerRegistrationSchema;
use crate::api::tools::escaped;
use crate::serve::{self, Path, Problem};

/// Adds a server to the registry: its `name` beside the fields of an entry of `mcp.json`. Answers when it is
/// durable, in use, and was tried once; how that went is its `state`.
#[utoipa::path(
    post, path = "/api/v1/servers", operation_id = "add_server", tag = "servers",
    request_body = ServerRegistrationSchema,
    responses(
        (status = 201, description = "It was added.", body = Server,
         headers(("Location" = String, description = "Its address."), ("ETag" = String, description = "For `If-Match`."))),
        EditProblems,
    )
)]
pub(in crate::api) async fn create(
    State(service): State<Arc<Service>>,
    precondition: Precondition,
    serve::Json(entry): serve::Json<Entry>,
) -> Result<Response, Problem> {
    let name = entry.required_name()?;
    edit(&service, &precondition, name, Action::Add(entry.unnamed()?)).await
}

/// Replaces a server of the registry, or adds it. With `If-Match` only if it is what the caller read, with
/// `If-None-Match: *` only if it is not there.
#[utoipa::path(
    put, path = "/api/v1/servers/{name}", operation_id = "replace_server", tag = "servers",
    params(("name" = String, Path, description = "The server's name."),
           ("If-Match" = Option<String>, Header, description = "The `ETag` that was read."),
           ("If-None-Match" = Option<String>, Header, description = "`*`: only if it is not there.")),
    request_body(content = Object, description = "The server's fields: `command` and `args`, or `url`, and more.",
        example = json!({"url": "https://example.com/mcp"})),
    responses(
        (status = 200, description = "It was replaced.", body = Server,
         headers(("ETag" = String, description = "For `If-Match`."))),
        (status = 201, description = "It was added.", body = Server,
         headers(("Location" = String, description = "Its address."), ("ETag" = String, description = "For `If-Match`."))),
        EditProblems,
    )
)]
pub(super) async fn replace(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    precondition: Precondition,
    serve::Json(entry): serve::Json<Entry>,
) -> Result<Response, Problem> {
    entry.require_name(&name)?;
    edit(&service, &precondition, name, Action::Put(entry.unnamed()?)).await
}

/// Takes a server out of the registry. Calls in flight end; its tools are gone.
#[utoipa::path(
    delete, path = "/api/v1/servers/{name}", operation_id = "remove_server", tag = "servers",
    params(("name" = String, Path, description = "The server's name."),
           ("If-Match" = Option<String>, Header, description = "The `ETag` that was read.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = 404, description = "The registry has no such server."),
        EditProblems,
    )
)]
pub(in crate::api) async fn remove(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    precondition: Precondition,
) -> Result<Response, Problem> {
    edit(&service, &precondition, name, Action::Remove).await
}

/// Takes a server that was left out back in, and connects it.
#[utoipa::path(
    post, path = "/api/v1/servers/{name}/enable", operation_id = "enable_server", tag = "servers",
    params(("name" = String, Path, description = "The server's name."),
           ("If-Match" = Option<String>, Header, description = "The `ETag` that was read.")),
    responses(
        (status = 200, description = "It is in use.", body = Server,
         headers(("ETag" = String, description = "For `If-Match`."))),
        (status = 404, description = "The registry has no such server."),
        EditProblems,
    )
)]
pub(super) async fn enable(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    precondition: Precondition,
) -> Result<Response, Problem> {
    edit(&service, &precondition, name, Action::SetDisabled(false)).await
}

/// Leaves a server out without removing it.
#[utoipa::path(
    post, path = "/api/v1/servers/{name}/disable", operation_id = "disable_server", tag = "servers",
    params(("name" = String, Path, description = "The server's name."),
           ("If-Match" = Option<String>, Header, description = "The `ETag` that was read.")),
    responses(
        (status = 200, description = "It is left out.", body = Server,
         headers(("ETag" = String, description = "For `If-Match`."))),
        (status = 404, description = "The registry has no such server."),
        EditProblems,
    )
)]
pub(super) async fn disable(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    precondition: Precondition,
) -> Result<Response, Problem> {
    edit(&service, &precondition, name, Action::SetDisabled(true)).await
}

/// Makes a change, waits until it takes effect, and returns the server's state.
async fn edit(
    service: &Service,
    precondition: &Precondition,
    name: String,
    action: Action,
) -> Result<Response, Problem> {
    let live = &service.live;
    let (document, condition) = (RegistryDocument::Servers, Condition::Always);
    let edit = Edit { document, name: name.clone(), action, condition };
    let EditOutcome { what, tag, .. } = precondition.edit(live, edit).await?;
    let status = match what {
        EditEffect::Removed => return Ok(StatusCode::NO_CONTENT.into_response()),
        EditEffect::Added => StatusCode::CREATED,
        EditEffect::Replaced => StatusCode::OK,
    };
    // Another request may have removed it already.
    let gone = || Problem::conflict(format!("`{name}` was removed in the meantime"));
    let info = live.runtime().settled(&name).await.ok_or_else(gone)?;
    let place = HeaderValue::from_str(&format!("/api/v1/servers/{}", escaped(&name))).ok();
    let place = place.filter(|_| status == StatusCode::CREATED).map(|place| (LOCATION, place));
    let tag = tag.map(|tag| (ETAG, etag(&tag)));
    let headers: Vec<_> = place.into_iter().chain(tag).collect();
    Ok((status, AppendHeaders(headers), Json(Server::of(info, live, Audience::Admin)))
        .into_response())
}
