//! Extractors of handlers, with problem documents for invalid requests.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use haft::memory::parsed_bytes;
use haft_bounds::effort;
use haft_bounds::heavy;
use haft_bounds::json::{Budget, NODES_MAX};
use haft_bounds::parse_error::describe;
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use tokio::time::{Sleep, sleep, timeout};

use super::memory::RequestMemory;
use super::problem::{FieldProblem, Problem};

/// The largest body.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A body is there as it came and as what is read of it.
pub(crate) const BODY_COPIES: usize = 2;
/// Arguments are there as they came, as they are handed on, on their way to the tool, and parsed.
pub(crate) const CALL_COPIES: usize = 4;
/// Time limit for the arrival of a body.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);
/// Additional bytes that are read of a body that is too large, and their time limit: a client that is cut off while
/// it sends may never see the answer.
const DRAIN_BYTES_MAX: usize = 8 * BODY_BYTES_MAX;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// A JSON body.
#[derive(Debug, Clone, Copy)]
pub struct Json<T>(pub T);

/// A JSON body with the arguments of calls, which stay text until they run. The memory that the calls need is
/// reserved with the body, all at once: reserved bit by bit, many requests would keep each other from the rest.
#[derive(Debug, Clone, Copy)]
pub struct CallJson<T>(pub T);

/// The part of the address after `?`.
#[derive(Debug, Clone, Copy)]
pub struct Query<T>(pub T);

/// The variable parts of the path.
#[derive(Debug, Clone, Copy)]
pub struct Path<T>(pub T);

/// Limits on the bodies that handlers read.
pub trait BodyLimits {
    /// Largest number of values and keys in a body.
    fn nodes_max(&self) -> usize;
}

impl BodyLimits for () {
    fn nodes_max(&self) -> usize {
        NODES_MAX
    }
}

impl<T, S> FromRequest<S> for Json<T>
where
    T: DeserializeOwned + Send + 'static,
    S: BodyLimits + Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        read_json(request, BODY_COPIES, Budget::nodes(state.nodes_max())).await.map(Self)
    }
}

impl<T, S> FromRequest<S> for CallJson<T>
where
    T: DeserializeOwned + Send + 'static,
    S: BodyLimits + Send + Sync,
{
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        read_json(request, CALL_COPIES, Budget::nodes(state.nodes_max())).await.map(Self)
    }
}

/// Reads a JSON object within `budget`. `copies` is how many times the body is held, its parsed form included.
async fn read_json<T>(request: Request, copies: usize, budget: Budget) -> Result<T, Problem>
where
    T: DeserializeOwned + Send + 'static,
{
    require_json(request.headers())?;
    let (Parts { headers, extensions, .. }, body) = request.into_parts();
    let memory = extensions.get::<RequestMemory>();
    let body = read_bytes(&headers, body, memory, copies).await?;
    parse_json(body, memory.cloned(), copies, budget).await
}

/// Refuses a body that is not announced as JSON.
pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    if is_json(headers) {
        return Ok(());
    }
    let detail = "the body must be JSON, and `Content-Type` must declare it";
    Err(Problem::unsupported_media_type(detail).remedy("send `Content-Type: application/json`"))
}

/// Reads a JSON object from the bytes of a body.
pub(crate) async fn parse_json<T>(
    body: Bytes,
    memory: Option<RequestMemory>,
    copies: usize,
    budget: Budget,
) -> Result<T, Problem>
where
    T: DeserializeOwned + Send + 'static,
{
    // A list would be taken for an object's values in the order in which we happen to name them.
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|first| *first != b'{') {
        let (title, detail) = ("The body cannot be read", "the body is not a JSON object");
        let status = axum::http::StatusCode::BAD_REQUEST;
        return Err(
            Problem::new(status, "InvalidBody", title, detail).remedy("send an object, `{...}`")
        );
    }
    heavy::run(body.len(), move || {
        budget.check(&body).map_err(|excess| {
            Problem::too_large(format!("the body has {excess}"))
                .remedy("send less at once, or let the operator raise `limits.message_nodes_max`")
        })?;
        if let Some(memory) = &memory {
            memory.cover((copies - 1) * body.len() + parsed_bytes(&body))?;
        }
        effort::parsing(&body);
        serde_json::from_slice(&body).map_err(|error| unreadable(&error))
    })
    .await
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        read.map(|axum::extract::Query(value)| Self(value)).map_err(|rejection| {
            Problem::bad_request(format!(
                "the query cannot be read: {}",
                describe(&rejection.body_text())
            ))
        })
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|axum::extract::Path(value)| Self(value)).map_err(|rejection| {
            Problem::bad_request(format!(
                "the path cannot be read: {}",
                describe(&rejection.body_text())
            ))
        })
    }
}

pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if kind == "application/json" {
        return true;
    }
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// The headers and the whole body, within its limits.
pub(crate) async fn read_body(request: Request) -> Result<(HeaderMap, Bytes), Problem> {
    let (Parts { headers, extensions, .. }, body) = request.into_parts();
    let memory = extensions.get::<RequestMemory>();
    let body = read_bytes(&headers, body, memory, BODY_COPIES).await?;
    Ok((headers, body))
}

/// The whole body, with memory for `copies` copies of it. One that arrives in one piece is not copied.
pub(crate) async fn read_bytes<B>(
    headers: &HeaderMap,
    mut body: B,
    memory: Option<&RequestMemory>,
    copies: usize,
) -> Result<Bytes, Problem>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let announced = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
    let is_too_large = announced.is_some_and(|bytes: usize| bytes > BODY_BYTES_MAX);
    // What is announced is reserved at once, before the body is read.
    let announced = announced.filter(|_| !is_too_large).unwrap_or_default();
    let problem = if is_too_large {
        Some(body_too_large())
    } else {
        memory.and_then(|memory| memory.cover(copies * announced).err())
    };
    let reading = async {
        match problem {
            Some(problem) => Err(Stopped::Refused(problem)),
            None => receive(&mut body, announced, memory, copies).await,
        }
    };
    let received = within(BODY_TIMEOUT, reading).await.unwrap_or_else(|| {
        let detail = format!("the body did not arrive within {BODY_TIMEOUT:?}");
        Err(Stopped::Broken(Problem::request_timeout(detail)))
    });
    match received {
        Ok(bytes) => Ok(bytes),
        Err(Stopped::Broken(problem)) => Err(problem),
        Err(Stopped::Refused(problem)) => {
            if let Some(memory) = memory {
                memory.release();
            }
            drain(body).await;
            Err(problem)
        }
    }
}

/// The end of a body that is not received in full.
enum Stopped {
    /// Nothing more arrives.
    Broken(Problem),
    /// The rest is not taken.
    Refused(Problem),
}

/// Collects a body of which `announced` bytes are expected.
async fn receive<B>(
    body: &mut B,
    announced: usize,
    memory: Option<&RequestMemory>,
    copies: usize,
) -> Result<Bytes, Stopped>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let mut first = Bytes::new();
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|_| Stopped::Broken(Problem::bad_request("the body broke off")))?;
        let Ok(chunk) = frame.into_data() else { continue };
        let length = first.len() + whole.len() + chunk.len();
        if length > BODY_BYTES_MAX {
            return Err(Stopped::Refused(body_too_large()));
        }
        if let Some(problem) = memory.and_then(|memory| memory.cover(copies * length).err()) {
            return Err(Stopped::Refused(problem));
        }
        if first.is_empty() && whole.is_empty() {
            first = chunk;
        } else {
            // In one block: one that grows leaves freed blocks of every size behind, which the allocator keeps for
            // the thread.
            whole.reserve_exact(announced.saturating_sub(whole.len()));
            whole.extend_from_slice(&first);
            first.clear();
            whole.extend_from_slice(&chunk);
        }
        if body.is_end_stream() {
            break;
        }
    }
    Ok(if whole.is_empty() { first } else { whole.into() })
}

/// Waits for `work`, for at most `limit`. The timer starts with the second wait: most bodies come with their head
/// and need none.
async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    let mut is_first = true;
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        if std::mem::take(&mut is_first) {
            // The connection hands over the body after this wait, and wakes its task for it in any case.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        timer.get_or_insert_with(|| Box::pin(sleep(limit))).as_mut().poll(cx).map(|()| None)
    })
    .await
}

/// Reads on for a while, so that the client sees the answer.
async fn drain<B: HttpBody<Data = Bytes> + Unpin>(mut body: B) {
    let drain = async {
        let mut bytes = 0;
        while bytes < DRAIN_BYTES_MAX
            && let Some(Ok(frame)) = body.frame().await
        {
            bytes += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    // Polite, and no more: the answer is the same.
    let _ = timeout(DRAIN_TIMEOUT, drain).await;
}

fn body_too_large() -> Problem {
    Problem::too_large(format!("the body is larger than {BODY_BYTES_MAX} bytes"))
        .remedy("send less at once")
}

fn unreadable(error: &serde_json::Error) -> Problem {
    let (line, column) = (error.line(), error.column());
    let place = format!("line {line}, column {column}");
    let text = describe(error);
    // The place stands in front, so it is not repeated at the end.
    let ending = format!(" at line {line} column {column}");
    let problem = text.strip_suffix(&ending).unwrap_or(&text).to_owned();
    let detail = format!("the body cannot be read: {place}: {problem}");
    Problem::new(
        axum::http::StatusCode::BAD_REQUEST,
        "InvalidBody",
        "The body cannot be read",
        detail,
    )
    .remedy("fix the body; the documentation shows the expected format")
    .error(FieldProblem { place, problem, remedy: None })
}
