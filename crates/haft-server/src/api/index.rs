//! The entry of the API: where everything is.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Routes;
use crate::serve::DOCS;

pub(super) fn routes() -> Routes {
    Routes { reading: OpenApiRouter::new().routes(routes!(get_index)), ..Routes::default() }
}

/// Addresses of the service.
#[derive(Debug, Serialize, ToSchema)]
struct Index {
    /// `haft`.
    #[schema(value_type = String)]
    name: &'static str,
    /// Haft's version.
    #[schema(value_type = String)]
    version: &'static str,
    /// The documentation of the API, for people.
    #[schema(value_type = String)]
    docs: &'static str,
    /// The same for programs: an OpenAPI 3.1 document.
    #[schema(value_type = String)]
    openapi: &'static str,
    /// The toolbox as an MCP server.
    #[schema(value_type = String)]
    mcp: &'static str,
    /// The parts of the API.
    #[schema(value_type = Vec<String>)]
    endpoints: [&'static str; 10],
}

/// Lists the addresses of the service: documentation, MCP, and the parts of the API.
#[utoipa::path(
    get, path = "/api/v1", tag = "health",
    responses((status = 200, description = "The addresses.", body = Index))
)]
async fn get_index() -> Json<Index> {
    Json(Index {
        name: "haft",
        version: env!("CARGO_PKG_VERSION"),
        docs: DOCS,
        openapi: "/api/openapi.json",
        mcp: "/mcp",
        endpoints: [
            "/api/v1/tools",
            "/api/v1/calls",
            "/api/v1/servers",
            "/api/v1/prompts",
            "/api/v1/resources",
            "/api/v1/runs",
            "/api/v1/inbox",
            "/api/v1/log",
            "/api/v1/config",
            "/api/v1/status",
        ],
    })
}
