//! The short paths at the root that toolboxes before Haft had: the same handlers under other names.

use std::sync::Arc;

use axum::Json as JsonAnswer;
use axum::extract::State;
use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use haft::ServerInfo;
use haft::live::{Action, Condition, Document, Edit};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::edit_problem::EditProblems;
use super::entry::Entry;
use super::precondition::{Precondition, etag};
use super::schemas::{ServerInfoSchema, ServerRegistrationSchema, ToolEntrySchema};
use super::tools::{self, Changed, escaped};
use super::tools_list::{self, ToolList, Wanted};
use super::{Routes, Service};
use crate::serve::{Json, Path, Problem, Query};

pub(super) fn routes() -> Routes {
    let admin = OpenApiRouter::new()
        .routes(routes!(create_local))
        .routes(routes!(create_server))
        .routes(routes!(put, remove));
    Routes { reading: OpenApiRouter::new().routes(routes!(list)), admin, ..Routes::default() }
}

/// Lists the tools that are offered: `GET /api/v1/tools` by its short name.
#[utoipa::path(
    get, path = "/tools", tag = "short paths", params(Wanted),
    responses(
        (status = 200, description = "The tools.", body = ToolList,
         headers(("ETag" = String, description = "The registry's revision."))),
        (status = 400, description = "The query cannot be read."),
    )
)]
async fn list(
    state: State<Arc<Service>>,
    query: Query<Wanted>,
) -> Result<(HeaderMap, JsonAnswer<ToolList>), Problem> {
    tools_list::list(state, query).await
}

/// Registers a local tool: `POST /api/v1/tools` by its short name.
#[utoipa::path(
    post, path = "/tools/local", tag = "short paths",
    request_body = ToolEntrySchema,
    responses(
        (status = 201, description = "It is registered.", body = Changed,
         headers(("ETag" = String, description = "Names what the entry says."), ("Location" = String, description = "Where the tool is."))),
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

/// Registers an MCP server.
///
/// The body is an entry of `mcp.json` with its name. Answers when the server has been tried once: `state`
/// says whether its tools can be called. One that cannot be reached is registered all the same, and tried again.
#[utoipa::path(
    post, path = "/tools/mcp", tag = "short paths",
    request_body = ServerRegistrationSchema,
    responses(
        (status = 201, description = "It is registered.", body = ServerInfoSchema,
         headers(("ETag" = String, description = "Names what the entry says."), ("Location" = String, description = "Where the server is."))),
        EditProblems,
    )
)]
async fn create_server(
    State(service): State<Arc<Service>>,
    precondition: Precondition,
    Json(entry): Json<Entry>,
) -> Result<(StatusCode, HeaderMap, JsonAnswer<ServerInfo>), Problem> {
    let name = entry.required_name()?;
    let edit = Edit {
        document: Document::Servers,
        name: name.clone(),
        action: Action::Add(entry.unnamed()?),
        condition: Condition::Always,
    };
    let edited = precondition.edit(&service.live, edit).await?;
    let mut headers = HeaderMap::new();
    if let Some(tag) = &edited.tag {
        headers.insert(ETAG, etag(tag));
    }
    if let Ok(place) = HeaderValue::from_str(&format!("/api/v1/servers/{}", escaped(&name))) {
        headers.insert(LOCATION, place);
    }
    // Somebody else may have removed it already.
    let gone = || Problem::conflict(format!("`{name}` was removed in the meantime"));
    let server = service.live.runtime().settled(&name).await.ok_or_else(gone)?;
    Ok((StatusCode::CREATED, headers, JsonAnswer(server)))
}

/// Replaces a registered tool, or registers it: `PUT /api/v1/tools/{name}` by its short name.
#[utoipa::path(
    put, path = "/tools/{name}", tag = "short paths",
    request_body = ToolEntrySchema,
    params(
        ("name" = String, Path, description = "The tool's name."),
        ("If-Match" = Option<String>, Header, pattern = r#"^(\*|"[0-9a-f]{1,64}")$"#, description = "What `ETag` said, or `*`: replace only that."),
        ("If-None-Match" = Option<String>, Header, pattern = r"^\*$", description = "`*`: create only."),
    ),
    responses(
        (status = 200, description = "It is replaced.", body = Changed,
         headers(("ETag" = String, description = "Names what the entry says."))),
        (status = 201, description = "It is registered.", body = Changed,
         headers(("ETag" = String, description = "Names what the entry says."), ("Location" = String, description = "Where the tool is."))),
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
    delete, path = "/tools/{name}", tag = "short paths",
    params(
        ("name" = String, Path, description = "The name of the tool or server."),
        ("If-Match" = Option<String>, Header, pattern = r#"^(\*|"[0-9a-f]{1,64}")$"#, description = "What `ETag` said, or `*`: remove only that."),
    ),
    responses((status = 204, description = "It is gone."), EditProblems)
)]
async fn remove(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    precondition: Precondition,
) -> Result<StatusCode, Problem> {
    let has_tool = matches!(service.live.entry(Document::Tools, &name).await, Ok(Some(_)));
    let has_server = matches!(service.live.entry(Document::Servers, &name).await, Ok(Some(_)));
    if has_tool || !has_server {
        tools::removed(&service, &precondition, &name).await?;
        return Ok(StatusCode::NO_CONTENT);
    }
    let edit = Edit {
        document: Document::Servers,
        name,
        action: Action::Remove,
        condition: Condition::Always,
    };
    precondition.edit(&service.live, edit).await?;
    Ok(StatusCode::NO_CONTENT)
}
