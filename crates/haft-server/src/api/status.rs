//! Everything at a glance: how long, how much, how busy, how healthy.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use haft::record::LogHealth;
use haft::{LoadStats, ToolLoadStats};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::config::Following;
use super::{Routes, Service};

pub(super) fn routes() -> Routes {
    Routes { reading: OpenApiRouter::new().routes(routes!(status)), ..Routes::default() }
}

/// The service at a glance.
#[derive(Debug, Serialize, ToSchema)]
struct Glance {
    /// Haft's version.
    #[schema(value_type = String)]
    version: &'static str,
    /// Since when it serves.
    #[schema(format = DateTime)]
    started: String,
    /// Number of offered tools.
    tools: usize,
    /// Number of configured servers.
    servers: usize,
    /// Number of servers in each state.
    servers_by_state: BTreeMap<String, usize>,
    /// The current load.
    calls: Busy,
    /// State of the execution log.
    log: LogState,
    /// State of the file watcher.
    live: Following,
    /// The model that runs of the agent use, if one is configured.
    #[schema(required = false, example = "openai::gpt-5")]
    model: Option<String>,
}

/// The load of the toolbox. Calls start and end while it is read, so the numbers need not add up.
#[derive(Debug, Serialize, ToSchema)]
struct Busy {
    /// Number of running calls.
    in_flight: u32,
    /// Number of calls that wait for a slot of their tool or of the toolbox.
    waiting: u32,
    /// Number of calls that may run at once.
    max_concurrent: u32,
    /// The same for each tool.
    tools: Vec<BusyTool>,
}

/// The load of one tool.
#[derive(Debug, Serialize, ToSchema)]
struct BusyTool {
    /// The name under which it is offered.
    tool: String,
    /// Number of slots in use.
    in_flight: u32,
    /// Number of calls that wait for a slot.
    waiting: u32,
    /// Number of slots.
    max_instances: u32,
}

/// State of the execution log.
#[derive(Debug, Default, Serialize, ToSchema)]
struct LogState {
    /// True if the last write worked.
    is_working: bool,
    /// The problem.
    problem: Option<String>,
    /// The remedy.
    remedy: Option<String>,
    /// A problem ahead: the disk is nearly full.
    warning: Option<String>,
    /// Since when.
    #[schema(format = DateTime)]
    since: Option<String>,
    /// Number of entries that wait in memory until it recovers.
    entries_kept: usize,
    /// Number of entries lost since the start.
    entries_lost: u64,
}

impl LogState {
    fn of(health: Option<LogHealth>) -> Self {
        match health {
            None => Self { is_working: true, ..Self::default() },
            Some(LogHealth::Working { entries_lost, low_space }) => Self {
                is_working: true,
                entries_lost,
                warning: low_space.map(|low_space| low_space.to_string()),
                ..Self::default()
            },
            Some(LogHealth::Failing { since, problem, entries_kept, entries_lost }) => Self {
                is_working: false,
                problem: Some(problem.problem()),
                remedy: Some(problem.remedy()),
                since: Some(since.to_string()),
                warning: None,
                entries_kept,
                entries_lost,
            },
        }
    }
}

impl Busy {
    fn of(LoadStats { in_flight, waiting, max_concurrent, tools }: LoadStats) -> Self {
        let tool = |ToolLoadStats { tool, in_flight, waiting, max_instances }| BusyTool {
            tool,
            in_flight,
            waiting,
            max_instances,
        };
        let tools = tools.into_iter().map(tool).collect();
        Self { in_flight, waiting, max_concurrent, tools }
    }
}

/// The service at a glance: version, tools, servers, how busy it is and how long the queues are, log, files.
#[utoipa::path(
    get, path = "/api/v1/status", operation_id = "get_status", tag = "health",
    responses((status = 200, description = "How it is.", body = Glance))
)]
async fn status(State(service): State<Arc<Service>>) -> Json<Glance> {
    let runtime = service.live.runtime();
    let servers = runtime.servers();
    let mut servers_by_state = BTreeMap::new();
    for server in &servers {
        let state = serde_json::to_value(server.state).unwrap_or_default();
        let state = state.as_str().unwrap_or_default().to_owned();
        *servers_by_state.entry(state).or_default() += 1;
    }
    Json(Glance {
        version: env!("CARGO_PKG_VERSION"),
        started: service.started.to_string(),
        tools: runtime.tools().len(),
        servers: servers.len(),
        servers_by_state,
        calls: Busy::of(runtime.load_stats()),
        log: LogState::of(runtime.log_health()),
        live: Following::of(service.live.status()),
        model: runtime.config().agent.model.as_ref().map(|model| model.value.clone()),
    })
}
