//! Which tools fit a request: `GET /api/v1/tools/search`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::put;
use haft::select::{Decision, Missing, Ranked};
use haft::{Runtime, ServerInfo, ServerState};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::visible::servers;
use super::{Routes, Service, contract, tools};
use crate::serve::{Caller, Path, Problem, Query};

/// Largest number of tools in one answer.
const LIMIT_MAX: usize = 100;
const LIMIT_DEFAULT: usize = 8;
/// The name of this path's last part, which a tool may have too.
const SEARCH: &str = "search";

pub(super) fn routes() -> Routes {
    let reading = OpenApiRouter::new().routes(routes!(search)).routes(routes!(short));
    // A tool may have the name of this path. What is not a search is about that tool, as on `/api/v1/tools/{name}`,
    // where it is documented.
    let named = || Path(SEARCH.to_owned());
    let change =
        put(move |state, precondition, entry| tools::put(state, named(), precondition, entry))
            .delete(move |state, precondition| tools::remove(state, named(), precondition));
    let change_short =
        put(move |state, precondition, entry| tools::put(state, named(), precondition, entry))
            .delete(move |state, precondition| contract::remove(state, named(), precondition));
    let admin = OpenApiRouter::new()
        .route("/api/v1/tools/search", change)
        .route("/tools/search", change_short);
    Routes { reading, admin, ..Routes::default() }
}

/// Query parameters of a search.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SearchQuery {
    /// The request, in plain words.
    #[param(required = true, min_length = 1)]
    q: Option<String>,
    /// Largest number of tools.
    #[param(minimum = 1, maximum = 100, default = 8)]
    limit: Option<usize>,
}

/// The tools that fit a request, and what to do.
#[derive(Debug, Serialize, ToSchema)]
struct Found {
    /// The recommended step if no model decides.
    decision: Verdict,
    /// Parameters that the best tool needs and the request does not give. Only with `ask_human`.
    #[schema(value_type = Vec<MissingSchema>)]
    missing: Vec<Missing>,
    /// The tools, best first.
    tools: Vec<FoundTool>,
    /// Servers whose tools are not known yet and not among the candidates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    missing_servers: Vec<String>,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SearchDecision)]
enum Verdict {
    /// The best tool fits.
    UseTool,
    /// None fits.
    NoTool,
    /// The best tool fits, and something has to be asked for first.
    AskHuman,
}

/// A tool and how well it fits.
#[derive(Debug, Serialize, ToSchema)]
struct FoundTool {
    #[serde(flatten)]
    #[schema(value_type = RankedSchema)]
    ranked: Ranked,
    /// Its purpose.
    description: String,
}

/// The score of a tool.
#[derive(Serialize, ToSchema)]
#[schema(as = RankedTool)]
struct RankedSchema {
    /// The name under which it is called.
    tool: String,
    /// Higher is better. Comparable within one request, not between requests.
    score: f32,
    /// Parts of the score.
    why: WhySchema,
}

/// Parts of a tool's score.
#[derive(Serialize, ToSchema)]
#[schema(as = Why)]
struct WhySchema {
    /// Words of the request that the tool has too.
    words: Vec<String>,
    /// Their weight, relative to a tool that matches every word.
    lexical: f32,
    /// Similarity in meaning: -1 to 1.
    semantic: f32,
}

/// A required parameter without a value in the request.
#[derive(Serialize, ToSchema)]
#[schema(as = MissingParameter)]
struct MissingSchema {
    /// Its name.
    name: String,
    /// Its purpose.
    #[schema(required = false)]
    description: String,
}

/// Ranks the tools for a request in plain words.
///
/// Offline, by names, descriptions, parameters and examples. `decision` is the recommended step if no model decides.
/// Without `q`, this is the tool named `search`, if there is one.
#[utoipa::path(
    get, path = "/api/v1/tools/search", operation_id = "search_tools", tag = "tools", params(SearchQuery),
    responses(
        (status = 200, description = "The tools, best first.", body = Found),
        (status = 400, description = "The query cannot be read."),
        (status = 404, description = "There is no `q`, and no tool is named `search`."),
    )
)]
async fn search(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Query(SearchQuery { q, limit }): Query<SearchQuery>,
) -> Result<Response, Problem> {
    let Some(request) = q else {
        let shown = tools::show(State(service), caller, Path(SEARCH.to_owned())).await;
        let remedy = "describe the task: /api/v1/tools/search?q=...";
        return shown.map(IntoResponse::into_response).map_err(|none| none.remedy(remedy));
    };
    let limit = limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is not between 1 and {LIMIT_MAX}")));
    }
    if request.trim().is_empty() {
        return Err(Problem::bad_request("`q` is empty").remedy("describe the task"));
    }
    let runtime = service.live.runtime();
    let (decision, missing, ranked) = if caller.lists.is_whole() {
        decide(runtime, &request, limit).await
    } else {
        // As if there were no other tools.
        let shows = |server: Option<&str>, name: &str| caller.lists.shows_tool(server, name);
        let choices = runtime.choose_among(&request, limit, shows).await;
        let decision = if choices.fits { Verdict::UseTool } else { Verdict::NoTool };
        (decision, Vec::new(), choices.ranked)
    };
    let described = |ranked: Ranked| FoundTool {
        description: runtime.tool(&ranked.tool).map(|it| it.description).unwrap_or_default(),
        ranked,
    };
    let tools = ranked.into_iter().map(described).collect();
    let is_missing =
        |server: &ServerInfo| server.tools.is_none() && server.state != ServerState::Disabled;
    let servers = servers(&caller, runtime.servers()).into_iter().filter(is_missing);
    let missing_servers = servers.map(|server| server.name).collect();
    Ok(Json(Found { decision, missing, tools, missing_servers }).into_response())
}

async fn decide(
    runtime: &Runtime,
    request: &str,
    limit: usize,
) -> (Verdict, Vec<Missing>, Vec<Ranked>) {
    match runtime.decide(request, limit).await {
        Decision::UseTool { ranked } => (Verdict::UseTool, Vec::new(), ranked),
        Decision::NoTool => (Verdict::NoTool, Vec::new(), runtime.select(request, limit).await),
        Decision::AskHuman { ranked, missing } => (Verdict::AskHuman, missing, ranked),
    }
}

/// Ranks the tools for a request: `GET /api/v1/tools/search` by its short name.
#[utoipa::path(
    get, path = "/tools/search", operation_id = "search_tools_short", tag = "short paths", params(SearchQuery),
    responses(
        (status = 200, description = "The tools, best first.", body = Found),
        (status = 400, description = "The query cannot be read."),
        (status = 404, description = "There is no `q`, and no tool is named `search`."),
    )
)]
async fn short(
    state: State<Arc<Service>>,
    caller: Caller,
    wanted: Query<SearchQuery>,
) -> Result<Response, Problem> {
    search(state, caller, wanted).await
}
