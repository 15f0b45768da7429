//! Liveness and readiness of the service.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use haft::config::choices::{OnLogFailure, Start};
use haft::record::LogHealth;
use haft::{ServerInfo, ServerState};
use haft_postgres::DatabaseHealth;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Routes, Service};
use crate::serve::Caller;

/// A problem of shipping the log is reported after this time; shorter ones end without help.
const SHIP_PROBLEM_AFTER: Duration = Duration::from_secs(5);
/// The length of a reason.
const REASON_BYTES_MAX: usize = 160;

pub(super) fn routes() -> Routes {
    let open = OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz));
    Routes { reading: open, ..Routes::default() }
}

/// The service lives.
#[derive(Debug, Serialize, ToSchema)]
struct Alive {
    /// Always `ok`.
    #[schema(value_type = String, example = "ok")]
    status: &'static str,
}

/// True if the service can do its work.
#[derive(Debug, Serialize, ToSchema)]
struct Readiness {
    /// The overall state.
    status: ReadyStatus,
    /// The failing parts, with reasons. Omitted for a caller without a key if the service needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    reasons: Option<Vec<Reason>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ReadyStatus {
    /// Everything works.
    Ready,
    /// Some servers have not been tried yet.
    Starting,
    /// Calls are taken, and something does not work.
    Degraded,
    /// The service ends. Calls are taken for `api.drain_delay`; send them elsewhere.
    Draining,
    /// No call is taken.
    Unready,
}

/// One thing that does not work.
#[derive(Debug, Serialize, ToSchema)]
struct Reason {
    /// The part: `log`, `configuration`, `keys`, `shared` (the database), `server:NAME`.
    what: String,
    /// Why.
    why: String,
}

/// True if the service lives.
#[utoipa::path(
    get, path = "/healthz", operation_id = "get_health", tag = "health",
    responses((status = 200, description = "It lives.", body = Alive))
)]
async fn healthz() -> Json<Alive> {
    Json(Alive { status: "ok" })
}

/// True if the service can do its work, and what does not work.
///
/// Answers without a key. Where the service needs a key, `reasons` is only for callers that send one.
#[utoipa::path(
    get, path = "/readyz", operation_id = "get_readiness", tag = "health",
    responses(
        (status = 200, description = "Calls are taken.", body = Readiness),
        (status = 503, description = "No call is taken, or the service is starting (some servers have not been tried yet) or ending.", body = Readiness),
    )
)]
async fn readyz(
    State(service): State<Arc<Service>>,
    caller: Option<Extension<Caller>>,
) -> (StatusCode, Json<Readiness>) {
    // A server that has just answered counts as tried, so its tools must be there too.
    service.live.runtime().register_changes().await;
    let mut readiness = readiness(&service);
    if caller.is_none() {
        readiness.reasons = None;
    }
    let status = match readiness.status {
        ReadyStatus::Ready | ReadyStatus::Degraded => StatusCode::OK,
        ReadyStatus::Starting | ReadyStatus::Draining | ReadyStatus::Unready => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    (status, Json(readiness))
}

fn readiness(service: &Service) -> Readiness {
    let runtime = service.live.runtime();
    let mut reasons = Vec::new();
    let mut note = |what: String, why: String| reasons.push(Reason { what, why: brief(&why) });
    if let Some(problem) = service.live.status().problem {
        note("configuration".to_owned(), problem.text);
    }
    if let Some(trouble) = service.keys.last_error() {
        note("keys".to_owned(), trouble);
    }
    if let Some(database) = &service.shared {
        let DatabaseHealth { age, problem, lost_commits } = database.health();
        if let Some((problem, _)) = problem {
            let age = age.as_secs();
            note("shared".to_owned(), format!("last confirmed {age} s ago: {problem}"));
        }
        if lost_commits {
            let why = "the database lost commits within the last hour, as in a failover";
            note("shared".to_owned(), why.to_owned());
        }
    }
    if let Some(problem) = not_shipped(service) {
        note("log".to_owned(), format!("entries wait on the disk: {problem}"));
    }
    let servers = runtime.servers();
    let is_starting = service.is_starting(&servers);
    for server in servers {
        if is_starting && is_untried(&server) {
            note(format!("server:{}", server.name), "it is being connected".to_owned());
        }
        let is_down = match server.state {
            ServerState::Misconfigured
            | ServerState::Unavailable
            | ServerState::Degraded
            | ServerState::Stopped => true,
            ServerState::Disabled
            | ServerState::Configured
            | ServerState::Connecting
            | ServerState::Ready => false,
        };
        if is_down {
            let why = server.cause.unwrap_or_else(|| "it does not answer".to_owned());
            note(format!("server:{}", server.name), why);
        }
    }
    let log = runtime.log_health();
    let is_logged = log.as_ref().is_none_or(LogHealth::is_working) || !needs_log(service);
    let takes_calls = is_logged && service.keys.stale_for().is_none();
    match log {
        Some(LogHealth::Failing { problem, .. }) => note("log".to_owned(), problem.problem()),
        Some(LogHealth::Working { low_space: Some(low_space), .. }) => {
            note("log".to_owned(), low_space.to_string());
        }
        Some(LogHealth::Working { low_space: None, .. }) | None => {}
    }
    let status = match (takes_calls, reasons.is_empty()) {
        (false, _) => ReadyStatus::Unready,
        (true, _) if service.is_draining.load(Ordering::Relaxed) => ReadyStatus::Draining,
        (true, _) if is_starting => ReadyStatus::Starting,
        (true, true) => ReadyStatus::Ready,
        (true, false) => ReadyStatus::Degraded,
    };
    Readiness { status, reasons: Some(reasons) }
}

/// The problem of shipping the log, if it lasts.
fn not_shipped(service: &Service) -> Option<String> {
    let problem = service.log.as_ref()?.status()?.problem?;
    (problem.since.elapsed() >= SHIP_PROBLEM_AFTER).then_some(problem.text)
}

impl Service {
    /// True until every eager server has been tried once. Servers that come later do not matter.
    fn is_starting(&self, servers: &[ServerInfo]) -> bool {
        if !servers.iter().any(is_untried) {
            self.has_started.store(true, Ordering::Relaxed);
        }
        !self.has_started.load(Ordering::Relaxed)
    }
}

/// True if an eager server has neither answered nor failed yet.
fn is_untried(server: &ServerInfo) -> bool {
    server.start == Start::Eager
        && server.was_tried == Some(false)
        && matches!(server.state, ServerState::Configured | ServerState::Connecting)
}

/// The first line of a reason; `/api/v1/status` and the others have the rest.
fn brief(why: &str) -> String {
    let line = why.lines().next().unwrap_or_default();
    let cut = line.floor_char_boundary(REASON_BYTES_MAX);
    if cut < line.len() { format!("{}...", &line[..cut]) } else { line.to_owned() }
}

/// Returns true if calls are refused while they cannot be recorded.
fn needs_log(service: &Service) -> bool {
    match service.live.runtime().config().log.on_failure.value {
        OnLogFailure::Refuse => true,
        OnLogFailure::Degrade => false,
    }
}
