//! Calling tools: one at a time, or several at once.
//!
//! Every call is answered with its envelope, whatever became of it. The HTTP status says whether the
//! tool had its turn: 200 if it had, also where it failed then; else why it had not.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json as JsonAnswer;
use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use haft::record::LogHealth;
use haft::{Code, Envelope, NAME_BYTES_MAX, ToolCall, TraceContext};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::call_events;
use super::schemas::EnvelopeSchema;
use super::{Routes, Service};
use crate::serve::{CallJson, Caller, Path, Problem, RequestMemory, long_name};

/// How many calls a batch may have.
const BATCH_MAX: usize = 100;
/// What an ordinary answer has, so that it is not moved while it grows.
const ANSWER_BYTES_USUAL: usize = 512;
/// How long the name of a session may be, and what a person asked for.
const SESSION_CHARS_MAX: usize = 256;
const REQUEST_CHARS_MAX: usize = 4000;
/// When to come again where a tool is busy, and where the server ends.
const BUSY_SECS: u64 = 1;
const AWAY_SECS: u64 = 5;

pub(super) fn routes() -> Routes {
    let calling = OpenApiRouter::new().routes(routes!(call)).routes(routes!(batch));
    Routes { calling, ..Routes::default() }
}

/// What to call a tool with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"arguments": {"name": "you"}}))]
struct CallRequest {
    /// The arguments. They reach the tool as they were written.
    #[serde(default = "no_arguments")]
    #[schema(value_type = Object, required = false)]
    arguments: Box<RawValue>,
    /// The session or run the call belongs to; the log keeps it.
    #[serde(default)]
    #[schema(max_length = 256)]
    session: Option<String>,
    /// What a person asked for, in their words; the log keeps it where `log.requests` is on.
    #[serde(default)]
    #[schema(max_length = 4000)]
    request: Option<String>,
    /// Whether a person agreed to this call, for a tool with `approval: ask`. A call key may say so only with
    /// `policy.approvals: caller`.
    #[serde(default)]
    approved: bool,
}

/// Several calls.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BatchRequest {
    /// The calls. Neighbours run at the same time where their tools may.
    #[schema(max_items = 100)]
    calls: Vec<BatchCall>,
}

/// One of several calls.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BatchCall {
    /// The tool's name.
    #[schema(max_length = 256)]
    tool: String,
    /// The arguments. They reach the tool as they were written.
    #[serde(default = "no_arguments")]
    #[schema(value_type = Object, required = false)]
    arguments: Box<RawValue>,
    /// The session or run the call belongs to; the log keeps it.
    #[serde(default)]
    #[schema(max_length = 256)]
    session: Option<String>,
    /// What a person asked for, in their words; the log keeps it where `log.requests` is on.
    #[serde(default)]
    #[schema(max_length = 4000)]
    request: Option<String>,
    /// Whether a person agreed to this call, for a tool with `approval: ask`. A call key may say so only with
    /// `policy.approvals: caller`.
    #[serde(default)]
    approved: bool,
}

/// The answers, in the order of the calls.
#[derive(Debug, Serialize, ToSchema)]
struct BatchAnswer {
    /// One envelope for each call.
    #[schema(value_type = Vec<EnvelopeSchema>)]
    results: Vec<Envelope>,
}

/// Calls a tool.
///
/// Every answer with a body of type `application/json` is the envelope, whatever the status. 200 means that the
/// tool had its turn, also where it failed or took too long: `status` and `error.code` say so. With
/// `Accept: text/event-stream` the status is always 200, and the events are `started` (with the execution
/// id), `progress`, and `result` (the envelope). A client that goes away cancels its call.
#[utoipa::path(
    post, path = "/api/v1/tools/{name}/call", tag = "calls", request_body = CallRequest,
    params(
        ("name" = String, Path, description = "The tool's name."),
        ("traceparent" = Option<String>, Header, description = "The W3C trace the call belongs to."),
        ("tracestate" = Option<String>, Header, description = "What vendors add to that trace."),
    ),
    responses(
        (status = 200, description = "The tool had its turn.", content(
            (EnvelopeSchema = "application/json"), (String = "text/event-stream"),
        )),
        (status = 400, description = "The arguments or the body cannot be read.", body = EnvelopeSchema),
        (status = 403, description = "Nobody agreed to the call, or the key may not agree to it.", body = EnvelopeSchema),
        (status = 404, description = "There is no such tool.", body = EnvelopeSchema),
        (status = 422, description = "The arguments do not fit the tool's schema.", body = EnvelopeSchema),
        (status = 503, description = "The tool is busy, the log cannot be written, or Haft is ending.", body = EnvelopeSchema,
         headers(("Retry-After" = u64, description = "When to come again."))),
    )
)]
async fn call(
    State(service): State<Arc<Service>>,
    Path(tool): Path<String>,
    caller: Caller,
    Wishes { trace, events, memory }: Wishes,
    CallJson(request): CallJson<CallRequest>,
) -> Result<Response, Problem> {
    let CallRequest { arguments, session, request, approved } = request;
    let call = BatchCall { tool, arguments, session, request, approved };
    let memory = memory.map(|memory| memory.hand_over()).unwrap_or_default();
    let call = call
        .prepare(&service, &caller, Approver::of(&service, &caller), trace)?
        .with_memory(memory);
    if events {
        return Ok(call_events::stream(service.live.runtime().clone(), call));
    }
    let envelope = service.live.runtime().call(call).await;
    Ok(answer(&service, &envelope))
}

/// Calls several tools.
///
/// Each call is recorded and answered by itself, and one that fails stops no other. Calls run in order;
/// neighbours whose tools are `parallel_capable` run at the same time.
#[utoipa::path(
    post, path = "/api/v1/calls", tag = "calls", request_body = BatchRequest,
    params(
        ("traceparent" = Option<String>, Header, description = "The W3C trace the calls belong to."),
        ("tracestate" = Option<String>, Header, description = "What vendors add to that trace."),
    ),
    responses(
        (status = 200, description = "The answers, in the order of the calls.", body = BatchAnswer),
        (status = 400, description = "The body cannot be read, or there are too many calls."),
    )
)]
async fn batch(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Wishes { trace, memory, .. }: Wishes,
    CallJson(BatchRequest { calls }): CallJson<BatchRequest>,
) -> Result<JsonAnswer<BatchAnswer>, Problem> {
    if calls.len() > BATCH_MAX {
        return Err(Problem::bad_request(format!(
            "there are {} calls, and a batch has {BATCH_MAX} at most",
            calls.len()
        ))
        .remedy("send several batches"));
    }
    let memory = memory.map(|memory| memory.hand_over()).unwrap_or_default();
    let approver = Approver::of(&service, &caller);
    let prepare = |call: BatchCall| {
        let call = call.prepare(&service, &caller, approver, trace.clone())?;
        Ok(call.with_memory(memory.clone()))
    };
    let calls: Result<Vec<ToolCall>, Problem> = calls.into_iter().map(prepare).collect();
    let results = service.live.runtime().call_batch(calls?).await;
    Ok(JsonAnswer(BatchAnswer { results }))
}

fn no_arguments() -> Box<RawValue> {
    // Two characters that are JSON.
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The remedy for tools with `approval: ask`, for a caller that approves its own calls and for one that does not.
const ASK_AND_SEND: &str = "ask a person and send `\"approved\": true` beside the arguments";
const ASK_OPERATOR: &str = "this key cannot approve its own calls: call the tool at `/mcp`, where the operator \
                            answers in the inbox, send `\"approved\": true` with an admin key, let the operator \
                            set `policy.approvals: caller`";

/// Approver of the calls in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Approver {
    /// The caller itself.
    Caller,
    /// The operator.
    Operator,
}

impl Approver {
    fn of(service: &Service, caller: &Caller) -> Self {
        if service.may_approve(caller) { Self::Caller } else { Self::Operator }
    }
}

impl BatchCall {
    fn prepare(
        self,
        service: &Service,
        caller: &Caller,
        approver: Approver,
        trace: Option<TraceContext>,
    ) -> Result<ToolCall, Problem> {
        let Self { tool, arguments, session, request, approved } = self;
        if tool.len() > NAME_BYTES_MAX {
            return Err(long_name("the name of the tool", tool.len()));
        }
        let arguments: Box<str> = arguments.into();
        let mut call = ToolCall::from_text(tool, arguments).caller(&*caller.name);
        call = match approver {
            Approver::Caller if approved => call.approved(),
            Approver::Caller => call.how_to_agree(ASK_AND_SEND),
            // Whatever the request says: the call is denied if its tool needs an approval.
            Approver::Operator => call.how_to_agree(ASK_OPERATOR),
        };
        if let Some(session) = session {
            limit("session", &session, SESSION_CHARS_MAX)?;
            call = call.session(session);
        }
        if let Some(request) = request {
            limit("request", &request, REQUEST_CHARS_MAX)?;
            call = call.request(request);
        }
        if let Some(trace) = service.telemetry.begin(trace) {
            call = call.trace_context(trace);
        }
        Ok(call)
    }
}

fn limit(field: &str, text: &str, chars_max: usize) -> Result<(), Problem> {
    if text.chars().count() <= chars_max {
        return Ok(());
    }
    Err(Problem::bad_request(format!("`{field}` has more than {chars_max} characters")))
}

/// What the headers of a call ask for. Read where they lie: a handler that takes the headers themselves
/// gets a copy of all of them.
struct Wishes {
    trace: Option<TraceContext>,
    events: bool,
    /// The memory of a large request.
    memory: Option<RequestMemory>,
}

impl<S: Send + Sync> FromRequestParts<S> for Wishes {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let memory = parts.extensions.get::<RequestMemory>().cloned();
        Ok(Self { trace: trace(&parts.headers), events: wants_events(&parts.headers), memory })
    }
}

/// The trace of a request, where its headers follow the rules. One that does not is no reason to refuse.
fn trace(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all("traceparent").iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else { return None };
    let states: Vec<&str> =
        headers.get_all("tracestate").iter().filter_map(|state| state.to_str().ok()).collect();
    let state = (!states.is_empty()).then(|| states.join(","));
    TraceContext::parse(parent.to_str().ok()?, state.as_deref())
}

pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = values.flat_map(|value| value.split(','));
    kinds.any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("text/event-stream")
    })
}

fn answer(service: &Service, envelope: &Envelope) -> Response {
    let can_log = || {
        let log = service.live.runtime().log_health();
        log.as_ref().is_none_or(LogHealth::is_working)
    };
    let (status, retry) = status(envelope, can_log);
    let mut body = Vec::with_capacity(ANSWER_BYTES_USUAL);
    // Texts and JSON always serialize.
    if serde_json::to_writer(&mut body, envelope).is_err() {
        return Problem::internal().into_response();
    }
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(secs) = retry {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(secs));
    }
    response
}

/// The HTTP status of a call, and when to come again.
fn status(envelope: &Envelope, can_log: impl FnOnce() -> bool) -> (StatusCode, Option<u64>) {
    let Some(error) = &envelope.error else { return (StatusCode::OK, None) };
    match error.code {
        Code::UnknownTool => (StatusCode::NOT_FOUND, None),
        // A tool whose question a person refused had its turn, and says what they said.
        Code::Denied if error.details.is_null() => (StatusCode::FORBIDDEN, None),
        Code::ValidationError if error.details.get("violations").is_some() => {
            (StatusCode::UNPROCESSABLE_ENTITY, None)
        }
        Code::ValidationError => (StatusCode::BAD_REQUEST, None),
        Code::Busy => (StatusCode::SERVICE_UNAVAILABLE, Some(BUSY_SECS)),
        Code::Stopping => (StatusCode::SERVICE_UNAVAILABLE, Some(AWAY_SECS)),
        // Refused because it could not be recorded: the tool did not run. A tool that found its server
        // out of reach did.
        Code::ServiceUnavailable if error.details.is_null() && !can_log() => {
            (StatusCode::SERVICE_UNAVAILABLE, Some(AWAY_SECS))
        }
        Code::Denied
        | Code::ServiceUnavailable
        | Code::OutputValidationError
        | Code::Timeout
        | Code::Cancelled
        | Code::ToolExecutionError
        | Code::ProtocolError
        | Code::OutcomeUnknown => (StatusCode::OK, None),
    }
}
