//! Resources of MCP servers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use futures_util::StreamExt as _;
use futures_util::stream;
use haft::{Content, ResourceInfo, ServerInfo, ServerState};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::failure_problem::ServerFailed;
use super::servers::unknown;
use super::{Routes, Service, failure_problem, visible};
use crate::serve::{Caller, Problem, Query};

/// Servers that are queried at once.
const ASKED_AT_ONCE_MAX: usize = 16;

pub(super) fn routes() -> Routes {
    let reading = OpenApiRouter::new().routes(routes!(list)).routes(routes!(content));
    Routes { reading, ..Routes::default() }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Which {
    /// Only this server's; connects it if need be.
    server: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Address {
    /// The server that has it.
    server: String,
    /// The resource's URI.
    uri: String,
}

/// Resources of the servers.
#[derive(Debug, Serialize, ToSchema)]
struct Resources {
    /// Resources, and templates of unlisted ones: `kind` distinguishes them.
    #[schema(value_type = Vec<Object>)]
    resources: Vec<ResourceInfo>,
    /// Servers that could not be asked.
    unavailable: Vec<Unavailable>,
}

/// A server that could not be asked.
#[derive(Debug, Serialize, ToSchema)]
struct Unavailable {
    /// The server.
    server: String,
    /// Why.
    reason: String,
}

/// A resource.
#[derive(Debug, Serialize, ToSchema)]
struct Contents {
    /// Its parts, each a block of content: text, or bytes in base64.
    #[schema(value_type = Vec<Object>)]
    contents: Vec<Content>,
}

/// The resources of the servers, and the templates of such that are not listed.
#[utoipa::path(
    get, path = "/api/v1/resources", operation_id = "list_resources", tag = "resources", params(Which),
    responses(
        (status = 200, description = "What the servers listed.", body = Resources),
        (status = 404, description = "There is no such server."),
        ServerFailed,
    )
)]
async fn list(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<Resources>, Problem> {
    let runtime = service.live.runtime();
    let servers = visible::servers(&caller, runtime.servers());
    if let Some(name) = &which.server {
        require(name, &servers)?;
        let resources = runtime.resources(name).await.map_err(failure_problem::problem)?;
        return Ok(Json(Resources { resources, unavailable: Vec::new() }));
    }
    let asked = servers.into_iter().filter(|server| server.state != ServerState::Disabled);
    let asking = stream::iter(asked.map(|server| async move {
        let answer = match server.state {
            ServerState::Misconfigured | ServerState::Unavailable | ServerState::Stopped => {
                Err(server.cause.unwrap_or_else(|| "it cannot be reached".to_owned()))
            }
            ServerState::Disabled
            | ServerState::Configured
            | ServerState::Connecting
            | ServerState::Ready
            | ServerState::Degraded => {
                runtime.resources(&server.name).await.map_err(|failure| failure.to_string())
            }
        };
        (server.name, answer)
    }));
    let mut listed = Resources { resources: Vec::new(), unavailable: Vec::new() };
    let mut answers = std::pin::pin!(asking.buffered(ASKED_AT_ONCE_MAX));
    while let Some((server, answer)) = answers.next().await {
        match answer {
            Ok(resources) => listed.resources.extend(resources),
            Err(reason) => listed.unavailable.push(Unavailable { server, reason }),
        }
    }
    Ok(Json(listed))
}

/// The content of a resource.
#[utoipa::path(
    get, path = "/api/v1/resources/content", operation_id = "read_resource", tag = "resources", params(Address),
    responses(
        (status = 200, description = "What it holds.", body = Contents),
        (status = 404, description = "There is no such server."),
        ServerFailed,
    )
)]
async fn content(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Query(Address { server, uri }): Query<Address>,
) -> Result<Json<Contents>, Problem> {
    let runtime = service.live.runtime();
    require(&server, &visible::servers(&caller, runtime.servers()))?;
    let contents = runtime.read_resource(&server, &uri).await;
    Ok(Json(Contents { contents: contents.map_err(failure_problem::problem)? }))
}

fn require(name: &str, servers: &[ServerInfo]) -> Result<(), Problem> {
    let is_there = servers.iter().any(|server| server.name == name);
    if is_there { Ok(()) } else { Err(unknown(name, servers)) }
}
