//! Calling tools: one at a time, or several at once.
//!
//! Every call is answered with its envelope. The HTTP status is 200 if the tool ran, even if it failed; any other
//! status gives the reason why it did not run.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json as JsonAnswer;
use axum::body::Bytes;
use axum::extract::{FromRequestParts, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use haft::ErrorBody;
use haft::{CallRefusal, Code, Envelope, NAME_BYTES_MAX, Stage, ToolCall, TraceContext};
use haft_bounds::effort;
use haft_bounds::json::Budget;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::call_events;
use super::remedy;
use super::schemas::EnvelopeSchema;
use super::{Routes, Service};
use crate::serve::{
    BodyLimits as _, CALL_COPIES, CallJson, Caller, DirectRequest, Path, Problem, RequestMemory,
    Response as DirectResponse, ResponseBody, long_name, parse_json, read_bytes, require_json,
};

/// Largest number of calls in a batch.
const BATCH_MAX: usize = 100;
/// Size of an ordinary answer, so that the buffer is not moved while it grows.
const ANSWER_BYTES_USUAL: usize = 512;
/// Room for the headers of an answer. hyper uses it again for the headers of the next request.
const ANSWER_HEADERS: usize = 14;
/// Longest session name, and longest user request, in characters.
const SESSION_CHARS_MAX: usize = 256;
const REQUEST_CHARS_MAX: usize = 4000;
/// When to come again where a tool is busy, and where the server ends.
const BUSY_SECS: u64 = 1;
const AWAY_SECS: u64 = 5;

pub(super) fn routes() -> Routes {
    let calling = OpenApiRouter::new().routes(routes!(call)).routes(routes!(batch));
    Routes { calling, ..Routes::default() }
}

/// Arguments and options of a call.
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
    /// The user's request in plain words; the log keeps it if `log.requests` is on.
    #[serde(default)]
    #[schema(max_length = 4000)]
    request: Option<String>,
    /// True if a person approved this call, for a tool with `approval: ask` or a rule that asks. Counts from a key
    /// with the scope `approve` or `admin`, and from others only with `policy.approvals: caller`.
    #[serde(default)]
    approved: bool,
}

/// Several calls.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"calls": [{"tool": "greet", "arguments": {"name": "you"}}]}))]
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
    /// The user's request in plain words; the log keeps it if `log.requests` is on.
    #[serde(default)]
    #[schema(max_length = 4000)]
    request: Option<String>,
    /// True if a person approved this call, for a tool with `approval: ask` or a rule that asks. Counts from a key
    /// with the scope `approve` or `admin`, and from others only with `policy.approvals: caller`.
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
/// Every response of type `application/json` is the envelope, whatever the status. 200 means that the tool ran, even
/// if it failed or timed out: see `status` and `error.code`. With `Accept: text/event-stream` the status is always
/// 200, and the events are `started` (with the execution id), `progress`, and `result` (the envelope). A client that
/// disconnects cancels its call.
#[utoipa::path(
    post, path = "/api/v1/tools/{name}/call", operation_id = "call_tool", tag = "calls", request_body = CallRequest,
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
        (status = 403, description = "The call was not approved, or the key may not approve it.", body = EnvelopeSchema),
        (status = 404, description = "There is no such tool.", body = EnvelopeSchema),
        (status = 422, description = "The arguments do not fit the tool's schema.", body = EnvelopeSchema),
        (status = 429, description = "The key, the server or the tool has reached its rate or quota.", body = EnvelopeSchema,
         headers(("Retry-After" = u64, description = "When to come again."))),
        (status = 503, description = "The tool is busy, the log cannot be written, or Haft is ending.", body = EnvelopeSchema,
         headers(("Retry-After" = u64, description = "When to come again."))),
    )
)]
async fn call(
    State(service): State<Arc<Service>>,
    Path(tool): Path<String>,
    caller: Caller,
    CallHeaders { trace, events, memory }: CallHeaders,
    CallJson(request): CallJson<CallRequest>,
) -> Result<Response, Problem> {
    let call_headers = CallHeaders { trace, events, memory };
    let answer = run(&service, &caller, tool, call_headers, request).await?;
    Ok(answer.map(ResponseBody::into_routed))
}

/// The tool of a path that [`call_direct`] answers. A name with escaped characters is left to the router.
pub(super) fn direct_tool(path: &str) -> Option<&str> {
    let tool = path.strip_prefix("/api/v1/tools/")?.strip_suffix("/call")?;
    (!tool.is_empty() && !tool.contains(['/', '%'])).then_some(tool)
}

/// Calls a tool for a request that the router has not seen.
pub(super) async fn call_direct(
    service: &Arc<Service>,
    request: DirectRequest,
) -> Result<DirectResponse, Problem> {
    let DirectRequest { uri, headers, body, caller, memory } = request;
    let tool = direct_tool(uri.path()).ok_or_else(Problem::internal)?.to_owned();
    require_json(&headers)?;
    let body = read_bytes(&headers, body, memory.as_ref(), CALL_COPIES).await?;
    let budget = Budget::nodes(service.nodes_max());
    let call = parse_json(body, memory.clone(), CALL_COPIES, budget).await?;
    let call_headers =
        CallHeaders { trace: trace(&headers), events: wants_events(&headers), memory };
    run(service, &caller, tool, call_headers, call).await
}

async fn run(
    service: &Arc<Service>,
    caller: &Caller,
    tool: String,
    call_headers: CallHeaders,
    request: CallRequest,
) -> Result<DirectResponse, Problem> {
    let CallRequest { arguments, session, request, approved } = request;
    let call = BatchCall { tool, arguments, session, request, approved };
    let memory = call_headers.memory.map(|memory| memory.hand_over()).unwrap_or_default();
    let call = call
        .prepare(service, caller, Approver::of(service, caller), call_headers.trace)?
        .with_memory(memory);
    if call_headers.events {
        return Ok(call_events::stream(service.live.runtime().clone(), call).map(Into::into));
    }
    let mut envelope = service.live.runtime().call(call).await;
    remedy::render(&mut envelope);
    answer(&envelope)
}

/// Calls several tools.
///
/// Each call is recorded and answered by itself, and one that fails stops no other. Calls run in order;
/// neighbours whose tools are `parallel_capable` run at the same time.
#[utoipa::path(
    post, path = "/api/v1/calls", operation_id = "call_tools", tag = "calls", request_body = BatchRequest,
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
    CallHeaders { trace, memory, .. }: CallHeaders,
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
    let mut results = service.live.runtime().call_batch(calls?).await;
    results.iter_mut().for_each(remedy::render);
    Ok(JsonAnswer(BatchAnswer { results }))
}

fn no_arguments() -> Box<RawValue> {
    // Two characters that are JSON.
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The remedy for tools with `approval: ask`, for a caller that approves its own calls and for one that does not.
const ASK_AND_SEND: &str = "ask a person and send `\"approved\": true` beside the arguments";
const ASK_OPERATOR: &str = "this caller cannot approve its own calls: call the tool at `/mcp`, where an approver \
                            answers in the inbox, send `\"approved\": true` with a key of the scope `approve` or \
                            `admin`, let the operator set `policy.approvals: caller`";

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
        let bytes_max = service.live.runtime().config().gateway.output_bytes_max.value;
        // Once out of the body and once into the shared allocation.
        effort::copying(arguments.get());
        effort::copying(arguments.get());
        let mut call = ToolCall::from_json(tool, arguments)
            .caller(&*caller.name)
            .owner(&*caller.owner)
            .scope(caller.scope.into())
            .output_limit(bytes_max, &*caller.owner);
        call = match approver {
            Approver::Caller if approved => call.approved(),
            Approver::Caller => call.approval_hint(ASK_AND_SEND),
            // The request cannot override this: the call is denied if its tool needs an approval.
            Approver::Operator => call.approval_hint(ASK_OPERATOR),
        };
        if let Some(session) = session {
            limit("session", &session, SESSION_CHARS_MAX)?;
            call = call.session(session);
        }
        if let Some(request) = request {
            limit("request", &request, REQUEST_CHARS_MAX)?;
            call = call.user_request(request);
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

/// The headers that concern a call. Extracted here, because a handler that takes `HeaderMap` copies all headers.
struct CallHeaders {
    trace: Option<TraceContext>,
    events: bool,
    /// The memory of a large request.
    memory: Option<RequestMemory>,
}

impl<S: Send + Sync> FromRequestParts<S> for CallHeaders {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let memory = parts.extensions.get::<RequestMemory>().cloned();
        Ok(Self { trace: trace(&parts.headers), events: wants_events(&parts.headers), memory })
    }
}

/// The trace of a request, if its headers are valid. An invalid trace does not reject the request.
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

fn answer(envelope: &Envelope) -> Result<DirectResponse, Problem> {
    let (status, retry) = status(envelope.error.as_ref());
    let mut body = Vec::with_capacity(ANSWER_BYTES_USUAL);
    // Strings and JSON always serialize.
    serde_json::to_writer(&mut body, envelope).map_err(|_| Problem::internal())?;
    let mut headers = HeaderMap::with_capacity(ANSWER_HEADERS);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(secs) = retry {
        headers.insert(RETRY_AFTER, HeaderValue::from(secs));
    }
    let mut response = DirectResponse::new(Bytes::from(body).into());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// The HTTP status of a call, and the seconds after which a retry makes sense.
fn status(error: Option<&ErrorBody>) -> (StatusCode, Option<u64>) {
    let Some(error) = error else { return (StatusCode::OK, None) };
    match error.stage {
        Stage::Refused(CallRefusal::UnknownTool) => (StatusCode::NOT_FOUND, None),
        Stage::Refused(
            CallRefusal::NotApproved | CallRefusal::DefinitionChanged | CallRefusal::Denied,
        ) => (StatusCode::FORBIDDEN, None),
        Stage::Refused(CallRefusal::Invalid) => (StatusCode::UNPROCESSABLE_ENTITY, None),
        Stage::Refused(CallRefusal::Unreadable) => (StatusCode::BAD_REQUEST, None),
        Stage::Refused(CallRefusal::Busy) => (StatusCode::SERVICE_UNAVAILABLE, Some(BUSY_SECS)),
        Stage::Refused(CallRefusal::RateLimited(wait)) => {
            (StatusCode::TOO_MANY_REQUESTS, Some(whole_seconds(wait)))
        }
        Stage::Refused(CallRefusal::NotLogged) => {
            (StatusCode::SERVICE_UNAVAILABLE, Some(AWAY_SECS))
        }
        Stage::Failed | Stage::OutcomeUnknown if error.code == Code::Stopping => {
            (StatusCode::SERVICE_UNAVAILABLE, Some(AWAY_SECS))
        }
        // The tool ran, and the envelope has its failure.
        Stage::Failed | Stage::OutcomeUnknown => (StatusCode::OK, None),
    }
}

/// Seconds for `Retry-After`, rounded up: a client that waits for them is not refused again.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use haft::{CallError, ToolFailure};
    use serde_json::Value;

    use super::*;

    fn status_of(error: &CallError) -> u16 {
        status(Some(&ErrorBody::from(error))).0.as_u16()
    }

    /// The status follows the stage of the call, not the details of its error: a tool that ran and failed without
    /// details is answered with 200, a call that was refused is not.
    #[test]
    fn the_status_depends_on_the_stage() {
        let (message, remedy, details) = (String::new, None, Value::Null);
        let refused = ToolFailure::Refused {
            message: message(),
            remedy: remedy.clone(),
            details: details.clone(),
        };
        let unavailable = ToolFailure::Unavailable { message: message(), remedy, details };
        for failure in [refused, unavailable, ToolFailure::execution("")] {
            let failed = CallError::Failed { tool: message(), failure: Box::new(failure) };
            assert_eq!(status_of(&failed), 200, "{failed:?}");
        }
        let tool = message;
        let cases = [
            (CallError::UnknownTool { tool: tool(), nearest: None }, 404),
            (CallError::Refused { tool: tool(), reason: None }, 403),
            (CallError::InvalidInput { tool: tool(), violations: Vec::new() }, 422),
            (CallError::UnreadableInput { tool: tool(), problem: String::new() }, 400),
            (CallError::LogUnavailable { tool: tool(), problem: String::new() }, 503),
            (CallError::Stopping { tool: tool() }, 503),
            (CallError::Cancelled { tool: tool() }, 200),
        ];
        for (error, expected) in cases {
            assert_eq!(status_of(&error), expected, "{error:?}");
        }
    }
}
