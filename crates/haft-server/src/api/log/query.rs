//! Looking calls up. Files are read on threads of their own, and answers sent as they are read: one call is in
//! memory at a time.

use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use haft::record::{CallIter, Filter, LoggedCall, read};
use serde::Serialize;
use tokio::sync::mpsc::{self, Sender};
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use super::shared::SharedCalls;
use super::{Service, Which, dir, unreadable};
use crate::api::edit_problem::{DATABASE_FOR, come_again};
use crate::explanation::Explanation;
use crate::serve::{Path, Problem, Query};

/// Calls that may be read ahead of a slow client.
const AHEAD_MAX: usize = 4;

/// Calls of the log.
#[derive(ToSchema)]
#[allow(dead_code, reason = "only described: an answer is written call by call")]
struct LoggedCalls {
    /// The calls, each as the log holds it.
    #[schema(value_type = Vec<Object>)]
    calls: Vec<LoggedCall>,
    /// Number of unreadable lines, which are left out.
    malformed: u64,
    /// Files that could not be read.
    unreadable: Vec<String>,
}

/// The fields after the calls.
#[derive(Serialize)]
pub(super) struct Rest {
    pub(super) malformed: u64,
    pub(super) unreadable: Vec<String>,
}

/// The newest calls that fit.
#[utoipa::path(
    get, path = "/api/v1/log", operation_id = "list_log", tag = "log", params(Which),
    responses(
        (status = 200, description = "The calls.", body = LoggedCalls),
        (status = 503, description = "The log cannot be read."),
    )
)]
pub(super) async fn list(
    State(service): State<Arc<Service>>,
    Query(which): Query<Which>,
) -> Result<Response, Problem> {
    let is_newest_first = which.newest_first == Some(true);
    let (dir, filter) = (dir(&service), which.filter()?);
    let unreadable_rows = match SharedCalls::find(&service, &filter, is_newest_first).await {
        Some(Ok(calls)) => return Ok(calls.answer()),
        Some(Err(error)) => vec![format!("the calls of other replicas are missing: {error}")],
        None => Vec::new(),
    };
    let calls = spawn_blocking(move || read(&dir, &filter)).await;
    let calls = calls.map_err(|_| Problem::internal())?.map_err(|error| unreadable(&error))?;
    let calls = if is_newest_first { calls.newest_first() } else { calls };
    let (sender, receiver) = mpsc::channel(AHEAD_MAX);
    // Ends with the client: nothing can be sent then.
    drop(spawn_blocking(move || write(calls, unreadable_rows, &sender)));
    let parts = stream::unfold(receiver, async |mut receiver| {
        Some((Ok::<Bytes, io::Error>(receiver.recv().await?), receiver))
    });
    Ok(([(CONTENT_TYPE, "application/json")], Body::from_stream(parts)).into_response())
}

/// Writes the document, part by part, for as long as the client reads.
fn write(mut calls: CallIter, mut unreadable: Vec<String>, to: &Sender<Bytes>) -> Option<()> {
    let mut before = "{\"calls\":[";
    for call in calls.by_ref() {
        let call = match call {
            Ok(call) => call,
            Err(error) => {
                unreadable.push(error.problem());
                continue;
            }
        };
        let mut text = before.as_bytes().to_vec();
        serde_json::to_writer(&mut text, &call).ok()?;
        to.blocking_send(text.into()).ok()?;
        before = ",";
    }
    let rest = Rest { malformed: calls.malformed(), unreadable };
    let rest = serde_json::to_string(&rest).ok()?;
    // The bracket of the calls is closed; the rest continues where its brace would open.
    let begun = if before == "," { "" } else { before };
    let text = format!("{begun}],{}", rest.strip_prefix('{')?);
    to.blocking_send(text.into()).ok()
}

/// One call with its whole input and output.
#[utoipa::path(
    get, path = "/api/v1/log/{execution_id}", operation_id = "get_log_entry", tag = "log",
    params(("execution_id" = String, Path, description = "The id the call was answered with.")),
    responses(
        (status = 200, description = "The call as the log holds it.", body = Object),
        (status = 404, description = "There is no such call."),
        (status = 503, description = "The log cannot be read."),
    )
)]
pub(super) async fn show(
    State(service): State<Arc<Service>>,
    Path(id): Path<String>,
) -> Result<axum::Json<LoggedCall>, Problem> {
    find(&service, id).await.map(axum::Json)
}

/// The rule that decided on a call, with its file and line and the values it looked at.
#[utoipa::path(
    get, path = "/api/v1/log/{execution_id}/why", operation_id = "explain_log_entry", tag = "log",
    params(("execution_id" = String, Path, description = "The id the call was answered with.")),
    responses(
        (status = 200, description = "The decision on the call.", body = Explanation),
        (status = 404, description = "There is no such call."),
        (status = 503, description = "The log cannot be read."),
    )
)]
pub(super) async fn why(
    State(service): State<Arc<Service>>,
    Path(id): Path<String>,
) -> Result<axum::Json<Explanation>, Problem> {
    find(&service, id).await.map(|call| axum::Json(Explanation::of(&call)))
}

async fn find(service: &Service, id: String) -> Result<LoggedCall, Problem> {
    let dir = dir(service);
    let filter = Filter { execution_id: Some(id.clone()), limit: Some(1), ..Filter::default() };
    let mut missing = None;
    if let Some(found) = SharedCalls::find(service, &filter, true).await {
        let found = match found {
            Ok(calls) => calls.only().await,
            Err(error) => Err(error),
        };
        match found {
            Ok(Some(call)) => return Ok(call),
            Ok(None) => {}
            Err(error) => missing = Some(error),
        }
    }
    // The file has what is not shipped yet.
    let found = spawn_blocking(move || read(&dir, &filter).map(|mut calls| calls.next())).await;
    let found = found.map_err(|_| Problem::internal())?.map_err(|error| unreadable(&error))?;
    match (found, missing) {
        (Some(call), _) => call.map_err(|error| unreadable(&error)),
        (None, Some(error)) => {
            let detail = format!("no call of this replica has the id `{id}`, and {error}");
            Err(come_again(Problem::unavailable(detail), DATABASE_FOR).remedy(error.remedy()))
        }
        (None, None) => Err(Problem::not_found(format!("no call has the id `{id}`"))
            .remedy("`GET /api/v1/log` shows the newest calls with their ids")),
    }
}
