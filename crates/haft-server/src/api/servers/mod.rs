//! MCP servers: how each is doing, and changing those of the registry.

pub(super) mod change;
mod import;
mod sign_in;
pub(super) mod view;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::ETAG;
use axum::response::{AppendHeaders, IntoResponse, Response};
use haft::live::{Live, RegistryDocument};
use haft::{ReconnectError, ServerInfo};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::precondition::etag;
use super::registry_entry::for_editor;
use super::remedy::endpoint;
use super::{Routes, Service};
use crate::serve::{Caller, Path, Problem};
use view::{Audience, Server, ServerDetails};

pub(super) fn routes() -> Routes {
    let reading = OpenApiRouter::new().routes(routes!(list)).routes(routes!(show));
    let admin = OpenApiRouter::new()
        .routes(routes!(change::create))
        .routes(routes!(change::replace, change::remove))
        .routes(routes!(change::enable))
        .routes(routes!(change::disable))
        .routes(routes!(import::import))
        .routes(routes!(sign_in::begin, sign_in::status, sign_in::end))
        .routes(routes!(reconnect));
    Routes { reading, admin, ..Routes::default() }
}

/// The configured servers.
#[derive(Debug, Serialize, ToSchema)]
struct Servers {
    /// In the order of the configuration.
    servers: Vec<Server>,
}

/// The configured servers and how each is doing.
#[utoipa::path(
    get, path = "/api/v1/servers", operation_id = "list_servers", tag = "servers",
    responses((status = 200, description = "All of them.", body = Servers))
)]
async fn list(State(service): State<Arc<Service>>, caller: Caller) -> Json<Servers> {
    let live = &service.live;
    let (servers, audience) = (live.runtime().servers().into_iter(), Audience::from(&caller));
    Json(Servers { servers: servers.map(|info| Server::of(info, live, audience)).collect() })
}

/// One server: its state, its tools, its settings with their origins. `ETag` names the registry's version of it; the
/// state may change without it.
#[utoipa::path(
    get, path = "/api/v1/servers/{name}", operation_id = "get_server", tag = "servers",
    params(("name" = String, Path, description = "The server's name.")),
    responses(
        (status = 200, description = "It is configured.", body = ServerDetails,
         headers(("ETag" = String, description = "Of a server in the registry: for `If-Match`."))),
        (status = 404, description = "There is no such server."),
        (status = 409, description = "The registry is broken."),
        (status = 503, description = "The registry cannot be read."),
    )
)]
async fn show(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let info = find(&service.live, &name)?;
    let mut details = ServerDetails::of(info, &service.live, Audience::from(&caller));
    // One read: an older entry beside a newer tag would let the editor overwrite what it has not seen.
    let (entry, tag) = service.live.entry(RegistryDocument::Servers, &name).await?.unzip();
    details.entry = entry.and_then(|entry| for_editor(&entry, &caller));
    let tag = tag.map(|tag| (ETAG, etag(&tag)));
    Ok((AppendHeaders(tag), Json(details)).into_response())
}

/// Drops the connection of a server, if there is one, and reconnects at once. Answers after the first attempt, which
/// may have failed.
#[utoipa::path(
    post, path = "/api/v1/servers/{name}/reconnect", operation_id = "reconnect_server", tag = "servers",
    params(("name" = String, Path, description = "The server's name.")),
    responses(
        (status = 200, description = "How it is doing now.", body = Server),
        (status = 404, description = "There is no such server."),
        (status = 409, description = "It is disabled."),
    )
)]
async fn reconnect(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
) -> Result<Json<Server>, Problem> {
    let reconnected = service.live.runtime().reconnect(&name).await;
    let info = reconnected.map_err(|error| {
        let (detail, remedy) = (error.to_string(), endpoint(&error.remedy()));
        let problem = match error {
            ReconnectError::UnknownServer { .. } => Problem::not_found(detail),
            ReconnectError::Disabled { .. } => Problem::conflict(detail),
        };
        problem.remedy(remedy)
    })?;
    Ok(Json(Server::of(info, &service.live, Audience::Admin)))
}

/// A server by its name.
fn find(live: &Live, name: &str) -> Result<ServerInfo, Problem> {
    let servers = live.runtime().servers();
    if let Some(info) = servers.iter().find(|info| info.name == name) {
        return Ok(info.clone());
    }
    Err(unknown(name, &servers))
}

/// There is no server of that name.
pub(super) fn unknown(name: &str, servers: &[ServerInfo]) -> Problem {
    let problem = Problem::not_found(format!("no server is named `{name}`"));
    match haft_text::nearest(name, servers.iter().map(|info| info.name.as_str())) {
        Some(nearest) => problem.remedy(format!("did you mean `{nearest}`?")),
        None => problem.remedy("`GET /api/v1/servers` lists the servers there are"),
    }
}
