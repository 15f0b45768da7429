//! Profiles: the parts of the toolbox that the gateway shows, each with its tools.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use haft::config::choices::Surface;
use haft::registry::ToolSource;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Routes, Service};
use crate::serve::Caller;

pub(super) fn routes() -> Routes {
    Routes { reading: OpenApiRouter::new().routes(routes!(list)), ..Routes::default() }
}

/// The profiles of the configuration.
#[derive(Debug, Serialize, ToSchema)]
struct ProfileList {
    /// In the order of the configuration.
    profiles: Vec<ProfileSummary>,
}

/// A profile and its tools.
#[derive(Debug, Serialize, ToSchema)]
struct ProfileSummary {
    /// Its name.
    name: String,
    /// The path of its MCP endpoint.
    endpoint: String,
    /// The presentation of its tools: `all` or `search`.
    #[schema(value_type = String)]
    surface: Surface,
    /// The tools that it shows now.
    tools: Vec<ProfileTool>,
}

/// A tool of a profile.
#[derive(Debug, Serialize, ToSchema)]
struct ProfileTool {
    /// The name under which it is called.
    name: String,
    /// Its purpose.
    description: String,
    /// The MCP server that has it.
    server: Option<String>,
}

/// Lists the profiles with the tools that each shows now.
///
/// A key that is bound to a profile sees its own only.
#[utoipa::path(
    get, path = "/api/v1/profiles", operation_id = "list_profiles", tag = "configuration",
    responses((status = 200, description = "The profiles.", body = ProfileList))
)]
async fn list(State(service): State<Arc<Service>>, caller: Caller) -> Json<ProfileList> {
    let runtime = service.live.runtime();
    let (config, tools) = (runtime.config(), runtime.tools());
    let is_visible = |name: &str| caller.profile.as_deref().is_none_or(|bound| bound == name);
    let visible = config.profiles.iter().filter(|profile| is_visible(&profile.name));
    let profiles = visible.map(|profile| {
        let shown = tools.iter().filter_map(|tool| {
            let server = match &tool.source {
                ToolSource::Mcp { mcp_name, .. } => Some(mcp_name.clone()),
                ToolSource::Local => None,
            };
            let is_shown = profile.shows_tool(server.as_deref(), &tool.name);
            let (name, description) = (tool.name.clone(), tool.description.clone());
            is_shown.then_some(ProfileTool { name, description, server })
        });
        ProfileSummary {
            name: profile.name.clone(),
            endpoint: format!("/mcp/{}", profile.name),
            surface: profile.surface.value,
            tools: shown.collect(),
        }
    });
    Json(ProfileList { profiles: profiles.collect() })
}
