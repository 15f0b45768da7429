//! Everything at a glance: how long, how much, how busy, how healthy.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use haft::record::LogHealth;
use haft::{Figures, ToolFigures};
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
    /// How many tools are offered.
    tools: usize,
    /// How many servers are configured.
    servers: usize,
    /// How many of them are in which state.
    servers_by_state: BTreeMap<String, usize>,
    /// How busy it is.
    calls: Busy,
    /// How the execution log is doing.
    log: LogState,
    /// How following the files goes.
    live: Following,
}

/// How busy the toolbox is. Calls come and go while it is looked at, so the numbers need not add up.
#[derive(Debug, Serialize, ToSchema)]
struct Busy {
    /// How many calls run.
    in_flight: u32,
    /// How many wait, for a slot of their tool or for one of the toolbox.
    waiting: u32,
    /// How many may run at once.
    max_concurrent: u32,
    /// The same for each tool.
    tools: Vec<BusyTool>,
}

/// How busy one tool is.
#[derive(Debug, Serialize, ToSchema)]
struct BusyTool {
    /// The name under which it is offered.
    tool: String,
    /// How many of its slots are taken.
    in_flight: u32,
    /// How many calls wait for one.
    waiting: u32,
    /// How many slots it has.
    max_instances: u32,
}

/// How the execution log is doing.
#[derive(Debug, Default, Serialize, ToSchema)]
struct LogState {
    /// Whether the last write worked.
    is_working: bool,
    /// What is wrong.
    problem: Option<String>,
    /// What to do about it.
    remedy: Option<String>,
    /// What will be wrong soon: the disk is nearly full.
    warning: Option<String>,
    /// Since when.
    #[schema(format = DateTime)]
    since: Option<String>,
    /// How many entries wait in memory until it recovers.
    entries_kept: usize,
    /// How many entries are lost since the start.
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
    fn of(Figures { in_flight, waiting, max_concurrent, tools }: Figures) -> Self {
        let tool = |ToolFigures { tool, in_flight, waiting, max_instances }| BusyTool {
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
    get, path = "/api/v1/status", tag = "health",
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
        calls: Busy::of(runtime.figures()),
        log: LogState::of(runtime.log_health()),
        live: Following::of(service.live.status()),
    })
}
