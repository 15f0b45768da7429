//! The short paths at the root that toolboxes before Haft had: the same handlers under other names.

use std::sync::Arc;

use axum::Json as JsonAnswer;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use haft::live::RegistryDocument;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::edit_problem::EditProblems;
use super::entry::Entry;
use super::precondition::Precondition;
use super::schemas::{ServerRegistrationSchema, ToolEntrySchema};
use super::servers::change;
use super::servers::view::Server;
use super::tools::{self, Changed};
use super::tools_list::{self, ToolList, ToolListQuery};
use super::{Routes, Service};
use crate::serve::{Caller, Json, Path, Problem, Query};

pub(super) fn routes() -> Routes {
    let admin = OpenApiRouter::new()
        .routes(routes!(create_local))
        .routes(routes!(create_server))
        .routes(routes!(put, remove));
    Routes { reading: OpenApiRouter::new().routes(routes!(list)), admin, ..Routes::default() }
}

/// Lists the tools that are offered: `GET /api/v1/tools` by its short name.
#[utoipa::path(
    get, path = "/tools", operation_id = "list_tools_short", tag = "short paths", params(ToolListQuery),
    responses(
        (status = 200, description = "The tools.", body = ToolList,
         headers(("ETag" = String, description = "The registry's revision."))),
        (status = 400, description = "The query cannot be read."),
    )
)]
async fn list(
    state: State<Arc<Service>>,
    caller: Caller,
    query: Query<ToolListQuery>,
) -> Result<(HeaderMap, JsonAnswer<ToolList>), Problem> {
    tools_list::list(state, caller, query).await
}

/// Registers a local tool: `POST /api/v1/tools` by its short name.
#[utoipa::path(
    post, path = "/tools/local", operation_id = "register_tool_short", tag = "short paths",
    request_body = ToolEntrySchema,
    responses(
        (status = 201, description = "It is registered.", body = Changed,
         headers(("ETag" = String, description = "Version of the entry."), ("Location" = String, description = "Where the tool is."))),
        EditProblems,
    )
)]
async fn create_local(
    state: State<Arc<Service>>,
    precondition: Precondition,
    entry: Json<Entry>,
) -> Result<(StatusCode, HeaderMap, JsonAnswer<Changed>), Problem> {
    tools::create(state, precondition, entry).await
}

/// Registers an MCP server: `POST /api/v1/servers` by its short name.
#[utoipa::path(
    post, path = "/tools/mcp", operation_id = "add_server_short", tag = "short paths",
    request_body = ServerRegistrationSchema,
    responses(
        (status = 201, description = "It is registered.", body = Server,
         headers(("ETag" = String, description = "Version of the entry."), ("Location" = String, description = "Where the server is."))),
        EditProblems,
    )
)]
async fn create_server(
    state: State<Arc<Service>>,
    precondition: Precondition,
    entry: Json<Entry>,
) -> Result<Response, Problem> {
    change::create(state, precondition, entry).await
}

/// Replaces a registered tool, or registers it: `PUT /api/v1/tools/{name}` by its short name.
#[utoipa::path(
    put, path = "/tools/{name}", operation_id = "replace_entry_short", tag = "short paths",
    request_body = ToolEntrySchema,
    params(
        ("name" = String, Path, description = "The tool's name."),
        ("If-Match" = Option<String>, Header, pattern = r#"^(\*|"[0-9a-f]{1,64}")$"#, description = "The `ETag` of the version to replace, or `*` for any."),
        ("If-None-Match" = Option<String>, Header, pattern = r"^\*$", description = "`*`: create only."),
    ),
    responses(
        (status = 200, description = "It is replaced.", body = Changed,
         headers(("ETag" = String, description = "Version of the entry."))),
        (status = 201, description = "It is registered.", body = Changed,
         headers(("ETag" = String, description = "Version of the entry."), ("Location" = String, description = "Where the tool is."))),
        EditProblems,
    )
)]
async fn put(
    state: State<Arc<Service>>,
    name: Path<String>,
    precondition: Precondition,
    entry: Json<Entry>,
) -> Result<(StatusCode, HeaderMap, JsonAnswer<Changed>), Problem> {
    tools::put(state, name, precondition, entry).await
}

/// Removes a registered tool, or a registered MCP server of that name with all its tools.
#[utoipa::path(
    delete, path = "/tools/{name}", operation_id = "remove_entry_short", tag = "short paths",
    params(
        ("name" = String, Path, description = "The name of the tool or server."),
        ("If-Match" = Option<String>, Header, pattern = r#"^(\*|"[0-9a-f]{1,64}")$"#, description = "The `ETag` of the version to remove, or `*` for any."),
    ),
    responses((status = 204, description = "It is gone."), EditProblems)
)]
pub(super) async fn remove(
    state: State<Arc<Service>>,
    name: Path<String>,
    precondition: Precondition,
) -> Result<Response, Problem> {
    let State(service) = &state;
    let has_tool =
        matches!(service.live.entry(RegistryDocument::Tools, &name.0).await, Ok(Some(_)));
    let has_server =
        matches!(service.live.entry(RegistryDocument::Servers, &name.0).await, Ok(Some(_)));
    if has_server && !has_tool {
        return change::remove(state, name, precondition).await;
    }
    Ok(tools::remove(state, name, precondition).await?.into_response())
}
