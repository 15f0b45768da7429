//! One tool: what it is, and registering, replacing and removing it.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Json as JsonAnswer;
use axum::extract::State;
use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use haft::ToolInfo;
use haft::live::{Action, Condition, Edit, EditEffect, EditOutcome, RegistryDocument};
use haft::registry::ToolSource;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::edit_problem::EditProblems;
use super::entry::Entry;
use super::precondition::{Precondition, etag};
use super::registry_entry::for_editor;
use super::schemas::{ToolEntrySchema, ToolInfoSchema};
use super::visible::shows_tool;
use super::{Routes, Service};
use crate::serve::{Caller, Json, Path, Problem};

/// The longest name that models' providers take.
const NAME_BYTES_MAX: usize = 64;

pub(super) fn routes() -> Routes {
    let admin = OpenApiRouter::new().routes(routes!(create)).routes(routes!(put, remove));
    Routes { reading: OpenApiRouter::new().routes(routes!(show)), admin, ..Routes::default() }
}

/// A tool, and how busy it is.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Tool {
    #[serde(flatten)]
    #[schema(value_type = ToolInfoSchema)]
    info: ToolInfo,
    /// True if the registry has an entry of this name, which can be changed over the API.
    registered: bool,
    /// The current load.
    figures: Figures,
    /// The entry in the registry, for an admin. `null` if it holds a literal secret.
    #[schema(value_type = Option<Object>)]
    entry: Option<serde_json::Value>,
}

/// The load of a tool.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = ToolLoadStats)]
struct Figures {
    /// Number of slots in use.
    in_flight: u32,
    /// Number of calls that wait for a slot.
    waiting: u32,
    /// Number of slots.
    max_instances: u32,
}

/// The result of a change, which is durable and in use.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Changed {
    /// The entry's name.
    name: String,
    /// The kind of change.
    outcome: Outcome,
    /// The registry's revision now.
    revision: String,
    /// The tool as it is offered now.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<Tool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Outcome {
    /// It is new.
    Added,
    /// It was there before.
    Replaced,
}

/// Shows one tool: schemas, settings with their origins, figures.
#[utoipa::path(
    get, path = "/api/v1/tools/{name}", operation_id = "get_tool", tag = "tools",
    params(("name" = String, Path, description = "The tool's name.")),
    responses(
        (status = 200, description = "The tool.", body = Tool,
         headers(("ETag" = String, description = "Version of the registry's entry; missing for tools from other sources."))),
        (status = 404, description = "There is no such tool; the remedy names the nearest."),
    )
)]
pub(super) async fn show(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<(HeaderMap, JsonAnswer<Tool>), Problem> {
    let info = service.live.runtime().tool(&name).filter(|tool| shows_tool(&caller, tool));
    let Some(info) = info else {
        return Err(unknown(&service, &caller, &name));
    };
    // One read: an older entry beside a newer tag would let the editor overwrite what it has not seen.
    let entry = service.live.entry(RegistryDocument::Tools, &name).await.ok().flatten();
    let (entry, tag) = entry.unzip();
    let mut headers = HeaderMap::new();
    if let Some(tag) = &tag {
        headers.insert(ETAG, etag(tag));
    }
    let mut tool = Tool::new(&service, info, tag.is_some());
    tool.entry = entry.and_then(|entry| for_editor(&entry, &caller));
    Ok((headers, JsonAnswer(tool)))
}

/// Registers a local tool.
///
/// The body is an entry of `tools.json`. When this answers, the entry is durable and the tool can be called.
/// `If-Match` with the registry's revision makes it depend on that.
#[utoipa::path(
    post, path = "/api/v1/tools", operation_id = "register_tool", tag = "tools", request_body = ToolEntrySchema,
    params(("If-Match" = Option<String>, Header, pattern = r#"^(\*|"[0-9a-f]{1,64}")$"#, description = "The registry's revision, as `GET /api/v1/tools` gives it.")),
    responses(
        (status = 201, description = "It is registered.", body = Changed,
         headers(("ETag" = String, description = "Version of the entry."), ("Location" = String, description = "Where the tool is."))),
        EditProblems,
    )
)]
pub(super) async fn create(
    State(service): State<Arc<Service>>,
    precondition: Precondition,
    Json(entry): Json<Entry>,
) -> Result<(StatusCode, HeaderMap, JsonAnswer<Changed>), Problem> {
    let name = entry.required_name()?;
    let action = Action::Add(entry.named(&name)?);
    changed(&service, &precondition, name, action).await
}

/// Replaces a registered tool, or registers it.
///
/// `If-Match` with the tag of what is replaced guards against lost updates, `If-None-Match: *` creates only.
#[utoipa::path(
    put, path = "/api/v1/tools/{name}", operation_id = "replace_tool", tag = "tools", request_body = ToolEntrySchema,
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
pub(super) async fn put(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    precondition: Precondition,
    Json(entry): Json<Entry>,
) -> Result<(StatusCode, HeaderMap, JsonAnswer<Changed>), Problem> {
    let action = Action::Put(entry.named(&name)?);
    changed(&service, &precondition, name, action).await
}

/// Removes a registered tool.
///
/// Calls in flight finish. A tool of an MCP server goes with its server.
#[utoipa::path(
    delete, path = "/api/v1/tools/{name}", operation_id = "remove_tool", tag = "tools",
    params(
        ("name" = String, Path, description = "The tool's name."),
        ("If-Match" = Option<String>, Header, pattern = r#"^(\*|"[0-9a-f]{1,64}")$"#, description = "The `ETag` of the version to remove, or `*` for any."),
    ),
    responses((status = 204, description = "It is gone."), EditProblems)
)]
pub(super) async fn remove(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    precondition: Precondition,
) -> Result<StatusCode, Problem> {
    let edit = Edit {
        document: RegistryDocument::Tools,
        name: name.clone(),
        action: Action::Remove,
        condition: Condition::Always,
    };
    let removed = precondition.edit(&service.live, edit).await;
    removed.map(|_| StatusCode::NO_CONTENT).map_err(|problem| {
        let is_missing = problem.document().status == StatusCode::NOT_FOUND.as_u16();
        match service.live.runtime().tool(&name).map(|tool| tool.source) {
            Some(ToolSource::Mcp { mcp_name, .. }) if is_missing => of_server(&name, &mcp_name),
            Some(ToolSource::Mcp { .. } | ToolSource::Local) | None => problem,
        }
    })
}

/// Returns true if an entry is only the settings of a server's tool.
fn is_setting(action: &Action) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: Option<String>,
    }
    match action {
        Action::Add(entry) | Action::Put(entry) => serde_json::from_str::<Kind>(entry.get())
            .is_ok_and(|entry| entry.kind.as_deref() == Some("mcp")),
        Action::Remove | Action::SetDisabled(_) => false,
    }
}

/// A tool that is offered under another name than it was registered with is hard to find again.
fn rewritten(name: &str) -> Problem {
    let detail = format!("`{}` cannot be the name of a tool", haft_text::printable(name));
    let title = "The entry is not valid";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidEntry", title, detail)
        .remedy("use at most 64 letters, digits, `_` and `-`")
}

fn taken(name: &str, server: &str) -> Problem {
    let detail = format!("the MCP server `{server}` has a tool `{name}` already");
    Problem::new(StatusCode::CONFLICT, "OfServer", "It belongs to an MCP server", detail)
        .remedy("choose another name, or give the server `tool_prefix: server`")
}

fn of_server(name: &str, server: &str) -> Problem {
    let detail = format!("`{name}` is a tool of the MCP server `{server}` and goes with it");
    let title = "It belongs to an MCP server";
    Problem::new(StatusCode::CONFLICT, "OfServer", title, detail).remedy(format!(
        "remove or disable the server `{server}`, or leave the tool out with its `tools` filter"
    ))
}

async fn changed(
    service: &Service,
    precondition: &Precondition,
    name: String,
    action: Action,
) -> Result<(StatusCode, HeaderMap, JsonAnswer<Changed>), Problem> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if !is_setting(&action) && (name.len() > NAME_BYTES_MAX || !name.chars().all(is_plain)) {
        return Err(rewritten(&name));
    }
    // The configuration decides which of two tools of one name is offered, not the order of events.
    if let Some(ToolSource::Mcp { mcp_name, .. }) =
        service.live.runtime().tool(&name).map(|it| it.source)
        && tag(service, &name).await.is_none()
        && !is_setting(&action)
    {
        return Err(taken(&name, &mcp_name));
    }
    let edit = Edit {
        document: RegistryDocument::Tools,
        name: name.clone(),
        action,
        condition: Condition::Always,
    };
    let EditOutcome { what, revision, tag } = precondition.edit(&service.live, edit).await?;
    let (status, outcome) = match what {
        EditEffect::Added => (StatusCode::CREATED, Outcome::Added),
        EditEffect::Replaced | EditEffect::Removed => (StatusCode::OK, Outcome::Replaced),
    };
    let mut headers = HeaderMap::new();
    if let Some(tag) = &tag {
        headers.insert(ETAG, etag(tag));
    }
    if outcome == Outcome::Added
        && let Ok(place) = HeaderValue::from_str(&format!("/api/v1/tools/{}", escaped(&name)))
    {
        headers.insert(LOCATION, place);
    }
    let tool = service.live.runtime().tool(&name).map(|info| Tool::new(service, info, true));
    let revision = revision.to_string();
    Ok((status, headers, JsonAnswer(Changed { name, outcome, revision, tool })))
}

impl Tool {
    fn new(service: &Service, info: ToolInfo, registered: bool) -> Self {
        let figures = service.live.runtime().load_stats();
        let figures = figures.tools.into_iter().find(|it| it.tool == info.name);
        let figures = figures.map(|it| Figures {
            in_flight: it.in_flight,
            waiting: it.waiting,
            max_instances: it.max_instances,
        });
        Self { info, registered, figures: figures.unwrap_or_default(), entry: None }
    }
}

/// The tag of the registry's entry. An unreadable registry has none; changing it reports the error.
async fn tag(service: &Service, name: &str) -> Option<String> {
    service.live.entry(RegistryDocument::Tools, name).await.ok().flatten().map(|(_, tag)| tag)
}

fn unknown(service: &Service, caller: &Caller, name: &str) -> Problem {
    let mut tools = service.live.runtime().tools();
    tools.retain(|tool| shows_tool(caller, tool));
    let nearest = haft_text::nearest(name, tools.iter().map(|tool| tool.name.as_str()));
    let remedy = nearest.map_or_else(
        || "`GET /api/v1/tools` lists every tool".to_owned(),
        |nearest| format!("did you mean `{nearest}`? `GET /api/v1/tools` lists every tool"),
    );
    Problem::not_found(format!("no tool is named `{name}`")).remedy(remedy)
}

/// A name as part of a path.
pub(super) fn escaped(name: &str) -> String {
    name.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}
