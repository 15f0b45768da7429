//! Which tools there are: `GET /api/v1/tools`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::ETAG;
use haft::ToolInfo;
use haft::registry::ToolSource;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::precondition::etag;
use super::schemas::ToolInfoSchema;
use super::visible::shows_tool;
use super::{Routes, Service};
use crate::gateway::LATE_WAIT_MAX;
use crate::serve::{Caller, Problem, Query};

/// Largest number of tools in one answer.
const LIMIT_MAX: usize = 1000;
const LIMIT_DEFAULT: usize = 100;

pub(super) fn routes() -> Routes {
    Routes { reading: OpenApiRouter::new().routes(routes!(list)), ..Routes::default() }
}

/// Which tools to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ToolListQuery {
    /// Words to look for in names and descriptions. The best match comes first. For a request in plain words there is
    /// `/api/v1/tools/search`.
    q: Option<String>,
    /// Only tools of this MCP server.
    server: Option<String>,
    /// Only tools that run here, or only those of MCP servers.
    #[param(inline)]
    source: Option<SourceFilter>,
    /// Largest number of tools.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<usize>,
    /// Start of the page: `next` of the previous answer.
    #[param(pattern = "^[0-9]{1,9}$")]
    cursor: Option<String>,
}

/// Where a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ToolSource)]
pub(super) enum SourceFilter {
    /// It runs here.
    Local,
    /// An MCP server has it.
    Mcp,
}

/// Tools, and how many there are.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ToolList {
    /// The tools of this page.
    #[schema(value_type = Vec<ToolInfoSchema>)]
    tools: Vec<ToolInfo>,
    /// Number of tools on all pages.
    total: usize,
    /// The `cursor` of the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Lists the tools that are offered.
///
/// Local tools first, then by server; with `q` the best match first. `ETag` is the registry's revision.
#[utoipa::path(
    get, path = "/api/v1/tools", operation_id = "list_tools", tag = "tools", params(ToolListQuery),
    responses(
        (status = 200, description = "The tools.", body = ToolList,
         headers(("ETag" = String, description = "The registry's revision."))),
        (status = 400, description = "The query cannot be read."),
    )
)]
pub(super) async fn list(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Query(query): Query<ToolListQuery>,
) -> Result<(HeaderMap, Json<ToolList>), Problem> {
    let limit = query.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is not between 1 and {LIMIT_MAX}")));
    }
    let from = match query.cursor.as_deref().map(str::parse::<usize>) {
        None => 0,
        Some(Ok(from)) => from,
        Some(Err(_)) => {
            return Err(Problem::bad_request("`cursor` is none of ours")
                .remedy("send `next` of the answer before, or leave it out"));
        }
    };
    let _ = timeout(LATE_WAIT_MAX, service.live.runtime().refresh_stale_lists()).await;
    let mut tools = service.live.runtime().tools();
    // Listed, so that operators see them. Their definitions are withheld.
    tools.extend(service.live.runtime().unapproved_tools());
    tools.retain(|tool| query.fits(tool) && shows_tool(&caller, tool));
    if let Some(words) = &query.q {
        tools = ranked(tools, words);
    }
    let total = tools.len();
    let until = from.saturating_add(limit);
    let tools = tools.into_iter().skip(from).take(limit).collect();
    let next = (until < total).then(|| until.to_string());
    let mut headers = HeaderMap::new();
    if let Some(revision) = service.live.status().revision {
        headers.insert(ETAG, etag(revision.as_str()));
    }
    Ok((headers, Json(ToolList { tools, total, next })))
}

impl ToolListQuery {
    fn fits(&self, tool: &ToolInfo) -> bool {
        let (source, server) = match &tool.source {
            ToolSource::Local => (SourceFilter::Local, None),
            ToolSource::Mcp { mcp_name, .. } => (SourceFilter::Mcp, Some(mcp_name)),
        };
        self.source.is_none_or(|query| query == source)
            && self.server.as_ref().is_none_or(|query| Some(query) == server)
    }
}

/// The tools that have any of the words, those with more and better matches first.
fn ranked(tools: Vec<ToolInfo>, words: &str) -> Vec<ToolInfo> {
    let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
    if words.is_empty() {
        return tools;
    }
    let score = |tool: &ToolInfo| -> u32 {
        let (name, text) = (tool.name.to_lowercase(), tool.description.to_lowercase());
        words.iter().map(|word| score(&name, &text, word)).sum()
    };
    let mut found: Vec<(u32, ToolInfo)> = tools
        .into_iter()
        .map(|tool| (score(&tool), tool))
        .filter(|(score, _)| *score > 0)
        .collect();
    // Stable: what is equally good stays in the usual order.
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().map(|(_, tool)| tool).collect()
}

/// Score of one word: highest for the whole name, then a word of it, a part of it, the description.
fn score(name: &str, text: &str, word: &str) -> u32 {
    let mut parts = name.split(|it: char| !it.is_alphanumeric());
    if name == word {
        16
    } else if parts.any(|part| part == word) {
        8
    } else if name.contains(word) {
        4
    } else if text.split(|it: char| !it.is_alphanumeric()).any(|part| part == word) {
        2
    } else {
        u32::from(text.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::score;

    #[test]
    fn names_count_more_than_descriptions() {
        let scores = ["weather", "get_weather", "weathercock", "x"]
            .map(|name| score(name, "reports the weather", "weather"));
        assert_eq!(scores, [16, 8, 4, 2]);
        assert_eq!((score("x", "unweathered", "weather"), score("x", "y", "weather")), (1, 0));
    }
}
