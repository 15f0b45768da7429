//! Runs of the agent: beginning one, following it, ending it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json as JsonAnswer;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use haft_agent::SessionStoreError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::calls::wants_events;
use super::gather::{Gather, Gathered, Identified, Listed};
use super::{Routes, Service};
use crate::keys::Scope;
use crate::runs::{Run, RunEvent, RunParams, RunSummary, StartRunError};
use crate::serve::{Caller, EndsByItself, Json, Path, Problem};

/// Interval of keep-alive comments on a silent stream.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// Retry delay if too many runs are active.
const BUSY: Duration = Duration::from_secs(5);

pub(super) fn routes() -> Routes {
    let calling = OpenApiRouter::new()
        .routes(routes!(begin, list))
        .routes(routes!(show, cancel))
        .routes(routes!(events));
    Routes { calling, ..Routes::default() }
}

/// The agent's task.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"input": "What is the weather in Seoul?"}))]
struct RunRequest {
    /// In words. `@URI` hands a server's resource to the model.
    #[schema(min_length = 1)]
    input: String,
    /// The conversation to continue: `session` of an earlier run.
    #[serde(default)]
    session: Option<String>,
    /// The system prompt, in place of `agent.system`.
    #[serde(default)]
    system: Option<String>,
    /// Limit on model requests, if lower than `agent.max_steps`.
    #[serde(default)]
    #[schema(minimum = 1)]
    max_steps: Option<u32>,
    /// True if every call of a tool with `approval: ask` counts as approved. Otherwise a person is asked in the
    /// inbox. Counts from a key with the scope `approve` or `admin`, and from others only
    /// with `policy.approvals: caller`.
    #[serde(default)]
    approved: bool,
}

/// The runs that are known.
#[derive(Debug, Serialize, ToSchema)]
struct RunList {
    /// The oldest first.
    #[schema(value_type = Vec<RunSummary>)]
    runs: Vec<Listed<RunSummary>>,
    /// Numbers of the replicas that did not answer within a second. Their runs are missing here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    replicas_missing: Vec<u16>,
}

impl Identified for RunSummary {
    fn id(&self) -> &str {
        &self.id
    }
}

/// Begins a run of the agent.
///
/// With `Accept: text/event-stream` the response is its events, as from `GET /api/v1/runs/{id}/events`, and
/// `Location` names the run; otherwise the run in its first state. The run continues without its client: `DELETE`
/// cancels it.
#[utoipa::path(
    post, path = "/api/v1/runs", operation_id = "start_run", tag = "runs", request_body = RunRequest,
    responses(
        (status = 200, description = "Its events.", body = String, content_type = "text/event-stream"),
        (status = 202, description = "The run is active.", body = RunSummary),
        (status = 400, description = "There is nothing to do, or a resource that is mentioned cannot be read."),
        (status = 403, description = "The key may not approve the calls of the run."),
        (status = 404, description = "There is no such conversation."),
        (status = 409, description = "The conversation is in use by another run."),
        (status = 429, description = "Too many runs are active."),
        (status = 503, description = "There is no model to ask."),
    )
)]
async fn begin(
    State(service): State<Arc<Service>>,
    caller: Caller,
    headers: HeaderMap,
    Json(request): Json<RunRequest>,
) -> Result<Response, Problem> {
    let RunRequest { input, session, system, max_steps, approved } = request;
    if input.trim().is_empty() {
        return Err(Problem::bad_request("`input` is empty").remedy("describe the task"));
    }
    if max_steps == Some(0) {
        return Err(
            Problem::bad_request("`max_steps` is zero").remedy("send 1 or more, or nothing")
        );
    }
    if approved && !service.may_approve(&caller) {
        let detail = format!("`{}` cannot approve the calls of its runs", caller.name);
        return Err(Problem::forbidden(detail).remedy(
            "leave `approved` out, so that the operator is asked in the inbox, use a key of the scope `approve` or `admin`, or \
             let the operator set `policy.approvals: caller`",
        ));
    }
    // The caller that creates the first key uses the service without one and would lose the run.
    let until = if caller.is_local() { Arc::default() } else { Arc::clone(&caller.ended) };
    let params = RunParams {
        input,
        caller: Arc::clone(&caller.name),
        owner: Arc::clone(&caller.owner),
        since: caller.since,
        until,
        is_admin: caller.scope == Scope::Admin,
        scope: caller.scope,
        lists: Arc::clone(&caller.lists),
        session,
        system,
        max_steps,
        approved,
    };
    let run = service.runs.begin(service.live.runtime(), params).await.map_err(problem)?;
    let location = [(LOCATION, format!("/api/v1/runs/{}", run.id()))];
    if wants_events(&headers) {
        return Ok((location, stream(run, 0)).into_response());
    }
    Ok((StatusCode::ACCEPTED, location, JsonAnswer(run.summary())).into_response())
}

/// Lists active runs and those that ended recently.
///
/// An admin key sees all of them, a call key its own. Where the service has several replicas, the list is of all of them.
#[utoipa::path(
    get, path = "/api/v1/runs", operation_id = "list_runs", tag = "runs",
    responses((status = 200, description = "The runs, the oldest first.", body = RunList))
)]
async fn list(
    State(service): State<Arc<Service>>,
    caller: Caller,
    gather: Gather,
) -> JsonAnswer<RunList> {
    let runs = service.runs.list();
    let visible = runs.iter().filter(|run| caller.may_see(Some(run.owner())));
    let own = visible.map(|run| run.summary()).collect();
    let Gathered { items, replicas_missing } = gather.list("runs", own).await;
    JsonAnswer(RunList { runs: items, replicas_missing })
}

/// Shows a run, with the questions that wait for a person.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}", operation_id = "get_run", tag = "runs",
    params(("id" = String, Path, description = "The run's id.")),
    responses(
        (status = 200, description = "The run.", body = RunSummary),
        (status = 404, description = "No such run is known."),
    )
)]
async fn show(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<JsonAnswer<RunSummary>, Problem> {
    Ok(JsonAnswer(find(&service, &caller, &id)?.summary()))
}

/// Follows a run.
///
/// Every event so far, then each as it happens: `turn.started`, `step.started`, `text.delta`, `reasoning.delta`,
/// `text.restarted` (the model request is retried, and the deltas of this text so far are void), `text.completed`,
/// `tool.started`, `tool.progress`, `tool.completed`, `question.asked`, `question.closed`, `warning`, and at the end
/// `turn.completed` or `turn.failed`. After a disconnect, send `Last-Event-ID` to resume without a gap.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/events", operation_id = "follow_run", tag = "runs",
    params(
        ("id" = String, Path, description = "The run's id."),
        ("Last-Event-ID" = Option<String>, Header, description = "The last event received."),
    ),
    responses(
        (status = 200, description = "Its events, until it ends.", body = String, content_type = "text/event-stream"),
        (status = 404, description = "No such run is known."),
    )
)]
async fn events(
    State(service): State<Arc<Service>>,
    caller: Caller,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let run = find(&service, &caller, &id)?;
    let after = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    Ok(stream(run, after.unwrap_or(0)))
}

/// Breaks a run off.
///
/// The status may still be `running` while the run ends.
#[utoipa::path(
    delete, path = "/api/v1/runs/{id}", operation_id = "cancel_run", tag = "runs",
    params(("id" = String, Path, description = "The run's id.")),
    responses(
        (status = 202, description = "It is being ended.", body = RunSummary),
        (status = 404, description = "No such run is known."),
        (status = 409, description = "It is over."),
    )
)]
async fn cancel(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, JsonAnswer<RunSummary>), Problem> {
    let run = find(&service, &caller, &id)?;
    if !run.cancel() {
        return Err(Problem::conflict(format!("the run `{id}` is over"))
            .remedy("`GET` shows what came of it"));
    }
    Ok((StatusCode::ACCEPTED, JsonAnswer(run.summary())))
}

fn find(service: &Service, caller: &Caller, id: &str) -> Result<Arc<Run>, Problem> {
    let run = service.runs.get(id).filter(|run| caller.may_see(Some(run.owner())));
    run.ok_or_else(|| {
        Problem::not_found(format!("no run `{id}` is known"))
            .remedy("`GET /api/v1/runs` lists those that are")
    })
}

/// The events of a run after the first `after`.
fn stream(run: Arc<Run>, after: usize) -> Response {
    let events = stream::unfold((run, after), async |(run, after)| {
        let run_event = run.event(after).await?;
        Some((Ok::<_, Infallible>(event(&run_event, after + 1)), (run, after + 1)))
    });
    let alive = KeepAlive::new().interval(ALIVE_EVERY);
    let mut response = Sse::new(events).keep_alive(alive).into_response();
    // When the service ends, so does the run, and its followers receive the final event.
    response.extensions_mut().insert(EndsByItself);
    response
}

fn event(told: &RunEvent, id: usize) -> Event {
    Event::default()
        .event(&told.name)
        .id(id.to_string())
        .data(haft_text::json_text::compact(&told.data))
}

fn problem(error: StartRunError) -> Problem {
    let text = error.to_string();
    match error {
        StartRunError::Model(error) => {
            let problem = Problem::unavailable(text);
            match error.remedy {
                Some(remedy) => problem.remedy(remedy),
                None => problem,
            }
        }
        StartRunError::Session(SessionStoreError::Unreadable { .. }) => {
            Problem::unavailable(text).remedy("begin a new conversation: leave `session` out")
        }
        StartRunError::Session(SessionStoreError::Unavailable { remedy, .. }) => {
            Problem::unavailable(text).remedy(remedy)
        }
        StartRunError::InUse(_) | StartRunError::Session(SessionStoreError::InUse(_)) => {
            Problem::conflict(text).remedy("wait for its end, or cancel it")
        }
        StartRunError::Session(_) => {
            Problem::not_found(text).remedy("send `session` of an earlier run, or leave it out")
        }
        StartRunError::Mentioned(_) => {
            Problem::bad_request(text).remedy("`GET /api/v1/resources` lists what there is")
        }
        StartRunError::Busy | StartRunError::BusyCaller(_) => {
            Problem::too_many_requests(text, BUSY).remedy("wait for the end of one, or cancel one")
        }
        StartRunError::Stopping => Problem::stopping(text),
    }
}
