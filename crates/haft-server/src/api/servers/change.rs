//! Adding, replacing and removing servers of the registry. Nothing of a body runs before it is checked as
//! part of the whole configuration, allowed by the operator and durable.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{AppendHeaders, IntoResponse, Response};
use haft::json::Arguments;
use haft::live::{Action, Document, Edit, EditError, Edited, Happened, without_member};
use serde_json::value::RawValue;

use super::Service;
use super::view::Server;
use crate::api::if_match::{Wanted, etag};
use crate::api::refusals::{BodyRefused, EditRefused, Refused};
use crate::serve::{self, FieldProblem, Path, Problem, ProblemDocument};

/// Adds a server to the registry: its `name` beside the fields of an entry of `mcp.json`. Answers when it is
/// durable, in use, and was tried once; how that went is its `state`.
#[utoipa::path(
    post, path = "/api/v1/servers", tag = "servers",
    request_body(content = Object, description = "`name`, and the server's fields: `command` and `args`, or `url`, and more.",
        example = json!({"name": "docs", "url": "https://example.com/mcp"})),
    responses(
        (status = 201, description = "It was added.", body = Server,
         headers(("Location" = String, description = "Its address."), ("ETag" = String, description = "For `If-Match`."))),
        Refused, BodyRefused, EditRefused,
    )
)]
pub(super) async fn create(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: serve::Json<Box<RawValue>>,
) -> Result<Response, Problem> {
    let (name, entry) = read(&body.0)?;
    let name = name.ok_or_else(|| wrong_name("the server has no name".to_owned()))?;
    match Wanted::read(&headers)? {
        Wanted::Anything | Wanted::Absent => {}
        Wanted::Present | Wanted::OneOf(_) => {
            let detail = "`If-Match` names something that is there, and this adds something new";
            return Err(Problem::bad_request(detail).remedy("use PUT to replace a server"));
        }
    }
    edit(&service, name, Action::Add(entry), Wanted::Anything).await
}

/// Replaces a server of the registry, or adds it. With `If-Match` only if it is what the caller read, with
/// `If-None-Match: *` only if it is not there.
#[utoipa::path(
    put, path = "/api/v1/servers/{name}", tag = "servers",
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
        Refused, BodyRefused, EditRefused,
    )
)]
pub(super) async fn replace(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: serve::Json<Box<RawValue>>,
) -> Result<Response, Problem> {
    let (given, entry) = read(&body.0)?;
    if let Some(given) = given.filter(|given| *given != name) {
        return Err(wrong_name(format!("the address says `{name}`, and the body `{given}`")));
    }
    match Wanted::read(&headers)? {
        Wanted::Absent => {
            let added = edit(&service, name.clone(), Action::Add(entry), Wanted::Anything).await;
            added.map_err(|problem| match problem.document().code {
                "Exists" => Problem::precondition_failed(format!("`{name}` is there already"))
                    .remedy("read it, and replace it with `If-Match`"),
                _ => problem,
            })
        }
        wanted => edit(&service, name, Action::Put(entry), wanted).await,
    }
}

/// Takes a server out of the registry. Calls under way end; its tools are gone.
#[utoipa::path(
    delete, path = "/api/v1/servers/{name}", tag = "servers",
    params(("name" = String, Path, description = "The server's name."),
           ("If-Match" = Option<String>, Header, description = "The `ETag` that was read.")),
    responses(
        (status = 204, description = "It is gone."),
        (status = 404, description = "The registry has no such server.", body = ProblemDocument, content_type = "application/problem+json"),
        Refused, EditRefused,
    )
)]
pub(super) async fn remove(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    edit(&service, name, Action::Remove, Wanted::read(&headers)?).await
}

/// Takes a server that was left out back in, and connects it.
#[utoipa::path(
    post, path = "/api/v1/servers/{name}/enable", tag = "servers",
    params(("name" = String, Path, description = "The server's name."),
           ("If-Match" = Option<String>, Header, description = "The `ETag` that was read.")),
    responses(
        (status = 200, description = "It is in use.", body = Server,
         headers(("ETag" = String, description = "For `If-Match`."))),
        (status = 404, description = "The registry has no such server.", body = ProblemDocument, content_type = "application/problem+json"),
        Refused, EditRefused,
    )
)]
pub(super) async fn enable(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    edit(&service, name, Action::SetDisabled(false), Wanted::read(&headers)?).await
}

/// Leaves a server out without removing it.
#[utoipa::path(
    post, path = "/api/v1/servers/{name}/disable", tag = "servers",
    params(("name" = String, Path, description = "The server's name."),
           ("If-Match" = Option<String>, Header, description = "The `ETag` that was read.")),
    responses(
        (status = 200, description = "It is left out.", body = Server,
         headers(("ETag" = String, description = "For `If-Match`."))),
        (status = 404, description = "The registry has no such server.", body = ProblemDocument, content_type = "application/problem+json"),
        Refused, EditRefused,
    )
)]
pub(super) async fn disable(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    edit(&service, name, Action::SetDisabled(true), Wanted::read(&headers)?).await
}

/// A body as a name, if it has one, and an entry of the registry.
fn read(body: &RawValue) -> Result<(Option<String>, Box<RawValue>), Problem> {
    let unreadable = |problem: String| {
        let detail = format!("the body cannot be read: {problem}");
        let title = "The body cannot be read";
        Problem::new(StatusCode::BAD_REQUEST, "InvalidBody", title, detail)
            .remedy("send one JSON object, each key once")
    };
    let read = Arguments::parse(body.get()).map_err(unreadable)?;
    let name = match read.value().get("name") {
        None => None,
        Some(serde_json::Value::String(name)) => Some(name.clone()),
        Some(_) => return Err(wrong_name("the server's name is not a text".to_owned())),
    };
    let entry =
        without_member(read.raw(), "name").map_err(|error| unreadable(error.to_string()))?;
    Ok((name, entry))
}

fn wrong_name(detail: String) -> Problem {
    let title = "The server needs a name";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", title, detail.clone())
        .remedy("send `name` as a text")
        .error(FieldProblem { place: "name".to_owned(), problem: detail, remedy: None })
}

/// Makes a change, waits until it shows, and says how the server is doing.
async fn edit(
    service: &Service,
    name: String,
    action: Action,
    wanted: Wanted,
) -> Result<Response, Problem> {
    let live = &service.live;
    let condition = match wanted.condition(live, Document::Servers, &name).await {
        Ok(condition) => condition,
        // Somebody else's server is somebody else's, whatever the condition.
        Err(problem) if problem.document().code == "PreconditionFailed" => {
            return Err(read_only(service, &name).map_or(problem, Problem::from));
        }
        Err(problem) => return Err(problem),
    };
    let edit = Edit { document: Document::Servers, name: name.clone(), action, condition };
    let Edited { what, tag, .. } = live.edit(edit).await?;
    let status = match what {
        Happened::Removed => return Ok(StatusCode::NO_CONTENT.into_response()),
        Happened::Added => StatusCode::CREATED,
        Happened::Replaced => StatusCode::OK,
    };
    // Removed by somebody else since: what was asked for happened all the same.
    let Some(info) = live.runtime().settled(&name).await else {
        return Ok(status.into_response());
    };
    let location = (status == StatusCode::CREATED)
        .then(|| HeaderValue::from_str(&format!("/api/v1/servers/{}", encoded(&name))).ok())
        .flatten()
        .map(|value| (LOCATION, value));
    let headers: Vec<_> = location.into_iter().chain(tag.and_then(|tag| etag(&tag))).collect();
    Ok((status, AppendHeaders(headers), Json(Server::of(info, live))).into_response())
}

/// The server is configured in a file that people write.
fn read_only(service: &Service, name: &str) -> Option<EditError> {
    let config = service.live.runtime().config();
    let server = config.servers.iter().find(|server| server.name == name)?;
    let is_ours = service.live.is_in_registry(Document::Servers, name);
    let file = server.place.file.to_string();
    (!is_ours).then(|| EditError::ReadOnly { name: name.to_owned(), file })
}

/// A name as a part of an address.
fn encoded(name: &str) -> String {
    let part = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    name.bytes().map(part).collect()
}
