//! The calls in flight: listing them, and cancelling one.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use haft::RunningCall;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::gather::{Gather, Gathered, Identified, Listed};
use super::schemas::RunningCallSchema;
use super::{Routes, Service};
use crate::serve::{Caller, Path, Problem};

pub(super) fn routes() -> Routes {
    let calling = OpenApiRouter::new().routes(routes!(list)).routes(routes!(cancel));
    Routes { calling, ..Routes::default() }
}

/// The calls in flight.
#[derive(Debug, Serialize, ToSchema)]
struct RunningCalls {
    /// The oldest first.
    #[schema(value_type = Vec<RunningCallSchema>)]
    calls: Vec<Listed<RunningCall>>,
    /// Numbers of the replicas that did not answer within a second. Their calls are missing here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    replicas_missing: Vec<u16>,
}

impl Identified for RunningCall {
    fn id(&self) -> &str {
        &self.execution_id
    }
}

/// Lists the calls in flight.
///
/// An admin key sees all of them, a call key its own. Where the service has several replicas, the list is of all of them.
#[utoipa::path(
    get, path = "/api/v1/calls", operation_id = "list_running_calls", tag = "calls",
    responses((status = 200, description = "The calls in flight, the oldest first.", body = RunningCalls))
)]
async fn list(
    State(service): State<Arc<Service>>,
    caller: Caller,
    gather: Gather,
) -> Json<RunningCalls> {
    let own = visible(&service, &caller).collect();
    let Gathered { items, replicas_missing } = gather.list("calls", own).await;
    Json(RunningCalls { calls: items, replicas_missing })
}

/// Cancels a call in flight.
///
/// It ends with the code `Cancelled`; one that is about to answer may still do so. A call key can cancel
/// its own calls only.
#[utoipa::path(
    delete, path = "/api/v1/calls/{execution_id}", operation_id = "cancel_call", tag = "calls",
    params(("execution_id" = String, Path, description = "The call's id.")),
    responses(
        (status = 202, description = "It is being ended.", body = RunningCallSchema),
        (status = 404, description = "No such call is in flight."),
    )
)]
async fn cancel(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<RunningCall>), Problem> {
    let found = visible(&service, &caller).find(|call| call.execution_id == id);
    match found.filter(|call| service.live.runtime().cancel(&call.execution_id)) {
        Some(call) => Ok((StatusCode::ACCEPTED, Json(call))),
        None => Err(Problem::not_found(format!("no call `{id}` is in flight"))
            .remedy("`GET /api/v1/calls` lists those that are; the log has those that are over")),
    }
}

/// The calls that are a caller's business.
fn visible(service: &Service, caller: &Caller) -> impl Iterator<Item = RunningCall> {
    let calls = service.live.runtime().running().into_iter();
    calls.filter(|call| caller.may_see(call.caller.as_deref()))
}
