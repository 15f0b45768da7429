//! Prompts of MCP servers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use haft::json::Arguments;
use haft::{Message, PromptInfo};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::failure_problem::ServerFailed;
use super::servers::unknown;
use super::{Routes, Service, failure_problem, visible};
use crate::serve::{self, Caller, FieldProblem, Path, Problem, Query};

pub(super) fn routes() -> Routes {
    Routes {
        reading: OpenApiRouter::new().routes(routes!(list)),
        calling: OpenApiRouter::new().routes(routes!(get)),
        ..Routes::default()
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Which {
    /// Only this server's.
    server: Option<String>,
}

/// The prompts of the servers that answered.
#[derive(Debug, Serialize, ToSchema)]
struct Prompts {
    /// In the order of the servers.
    #[schema(value_type = Vec<Prompt>)]
    prompts: Vec<PromptInfo>,
}

/// A prompt and the server that has it.
#[derive(ToSchema)]
#[allow(dead_code, reason = "only described; the library's own type is sent")]
struct Prompt {
    /// The server.
    server: String,
    /// Its name there.
    name: String,
    /// A name for people.
    title: Option<String>,
    /// Its purpose.
    description: String,
    /// Its arguments: `name`, `description`, `required`.
    arguments: Vec<serde_json::Map<String, serde_json::Value>>,
}

/// Arguments to fill in.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"arguments": {"city": "Seoul"}}))]
struct Filling {
    /// A string for each argument.
    #[serde(default)]
    #[schema(value_type = Object, required = false)]
    arguments: Option<Box<RawValue>>,
}

/// A prompt, filled in.
#[derive(Debug, Serialize, ToSchema)]
struct Filled {
    /// The messages of a chat: each with `role` and `content`.
    #[schema(value_type = Vec<Object>)]
    messages: Vec<Message>,
}

/// The prompts of the servers. Those that start late are connected first.
#[utoipa::path(
    get, path = "/api/v1/prompts", operation_id = "list_prompts", tag = "prompts", params(Which),
    responses(
        (status = 200, description = "The prompts of the servers that answered.", body = Prompts),
        (status = 404, description = "There is no such server."),
    )
)]
async fn list(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<Prompts>, Problem> {
    let runtime = service.live.runtime();
    let servers = visible::servers(&caller, runtime.servers());
    if let Some(name) = which.server.as_ref().filter(|name| !has(&servers, name)) {
        return Err(unknown(name, &servers));
    }
    runtime.discover().await;
    let mut prompts = runtime.prompts();
    prompts.retain(|prompt| has(&servers, &prompt.server));
    prompts.retain(|prompt| which.server.as_ref().is_none_or(|server| prompt.server == *server));
    Ok(Json(Prompts { prompts }))
}

/// A prompt with its arguments filled in, as messages of a chat.
#[utoipa::path(
    post, path = "/api/v1/prompts/{server}/{name}", operation_id = "get_prompt", tag = "prompts",
    params(("server" = String, Path, description = "The server."), ("name" = String, Path, description = "The prompt's name.")),
    request_body = Filling,
    responses(
        (status = 200, description = "The messages.", body = Filled),
        (status = 404, description = "There is no such server or prompt."),
        (status = 422, description = "An argument is missing or not a string."),
        ServerFailed,
    )
)]
async fn get(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path((server, name)): Path<(String, String)>,
    body: serve::Json<Filling>,
) -> Result<Json<Filled>, Problem> {
    let runtime = service.live.runtime();
    let servers = visible::servers(&caller, runtime.servers());
    if !has(&servers, &server) {
        return Err(unknown(&server, &servers));
    }
    let text = body.0.arguments.as_deref().map_or("{}", RawValue::get);
    let arguments = Arguments::parse(text).map_err(|problem| wrong("arguments", problem))?;
    let of_server = runtime.prompts().into_iter().filter(|prompt| prompt.server == server);
    let known: Vec<PromptInfo> = of_server.collect();
    // What a server did not list it may have all the same; where it listed something, that is all.
    match known.iter().find(|prompt| prompt.name == name) {
        Some(prompt) => check(prompt, &arguments)?,
        None if known.is_empty() => {}
        None => return Err(unknown_prompt(&server, &name, &known)),
    }
    let messages = runtime.prompt(&server, &name, arguments.raw()).await;
    Ok(Json(Filled { messages: messages.map_err(failure_problem::problem)? }))
}

fn has(servers: &[haft::ServerInfo], name: &str) -> bool {
    servers.iter().any(|server| server.name == name)
}

/// Arguments of prompts are strings, and required ones must be present.
fn check(prompt: &PromptInfo, arguments: &Arguments) -> Result<(), Problem> {
    let value = arguments.value();
    if let Some((name, _)) = value.as_object().into_iter().flatten().find(|(_, it)| !it.is_string())
    {
        return Err(wrong(&format!("arguments.{name}"), "it is not a string".to_owned()));
    }
    let is_missing = |name: &str| value.get(name).is_none();
    match prompt.arguments.iter().find(|it| it.required && is_missing(&it.name)) {
        None => Ok(()),
        Some(missing) => {
            Err(wrong(&format!("arguments.{}", missing.name), "it is missing".to_owned()))
        }
    }
}

fn wrong(place: &str, problem: String) -> Problem {
    let detail = format!("`{place}`: {problem}");
    let title = "The arguments do not fit the prompt";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "ValidationError", title, detail)
        .remedy(
            "`GET /api/v1/prompts` lists the arguments of each prompt; every argument is a string",
        )
        .error(FieldProblem { place: place.to_owned(), problem, remedy: None })
}

fn unknown_prompt(server: &str, name: &str, known: &[PromptInfo]) -> Problem {
    let problem = Problem::not_found(format!("`{server}` has no prompt `{name}`"));
    match haft_text::nearest(name, known.iter().map(|prompt| prompt.name.as_str())) {
        Some(nearest) => problem.remedy(format!("did you mean `{nearest}`?")),
        None => problem.remedy("`GET /api/v1/prompts` lists the prompts there are"),
    }
}
