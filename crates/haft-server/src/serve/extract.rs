//! What handlers read from requests, with problem documents for what cannot be read.

use haft_bounds::parse_error::describe;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use futures_util::StreamExt as _;
use haft::memory::parsed_bytes;
use haft_bounds::heavy;
use haft_bounds::json::{Budget, NODES_MAX};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::memory::RequestMemory;
use super::problem::{FieldProblem, Problem};

/// The largest body.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A body is there as it came and as what is read of it.
const BODY_COPIES: usize = 2;
/// Arguments are there as they came, as they are handed on, on their way to the tool, and parsed.
const CALL_COPIES: usize = 4;
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);
/// How much more is read of a body that is too large, and for how long: a client that is cut off while it
/// sends may never see the answer.
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

/// What a service limits in the bodies that its handlers read.
pub trait BodyLimits {
    /// How many values and keys a body may have.
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
    if !is_json(request.headers()) {
        let detail = "the body must be JSON, and `Content-Type` does not say so";
        return Err(
            Problem::unsupported_media_type(detail).remedy("send `Content-Type: application/json`")
        );
    }
    let memory = request.extensions().get::<RequestMemory>().cloned();
    let (_, body) = read_copies(request, copies).await?;
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
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// The headers and the whole body, within its limits.
pub(crate) async fn read_body(request: Request) -> Result<(HeaderMap, Vec<u8>), Problem> {
    read_copies(request, BODY_COPIES).await
}

/// The same, with memory for so many copies of the body.
async fn read_copies(request: Request, copies: usize) -> Result<(HeaderMap, Vec<u8>), Problem> {
    let (Parts { headers, extensions, .. }, body) = request.into_parts();
    let memory = extensions.get::<RequestMemory>();
    let announced = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse().ok());
    let mut is_too_large = announced.is_some_and(|bytes: usize| bytes > BODY_BYTES_MAX);
    let mut chunks = body.into_data_stream();
    let mut body = Vec::new();
    // What is announced is reserved at once, before the body is read.
    let announced = announced.filter(|_| !is_too_large).unwrap_or_default();
    let mut no_memory = memory.and_then(|memory| memory.cover(copies * announced).err());
    let reading = async {
        while !is_too_large
            && no_memory.is_none()
            && let Some(chunk) = chunks.next().await
        {
            let chunk = chunk.map_err(|_| Problem::bad_request("the body broke off"))?;
            is_too_large = body.len() + chunk.len() > BODY_BYTES_MAX;
            let bytes = copies * (body.len() + chunk.len());
            no_memory = memory.and_then(|memory| memory.cover(bytes).err());
            body.extend_from_slice(&chunk);
        }
        Ok(())
    };
    timeout(BODY_TIMEOUT, reading).await.unwrap_or_else(|_| {
        Err(Problem::request_timeout(format!("the body did not arrive within {BODY_TIMEOUT:?}")))
    })?;
    if !is_too_large && no_memory.is_none() {
        return Ok((headers, body));
    }
    drop(body);
    if let Some(memory) = memory {
        memory.release();
    }
    let drain = async {
        let mut bytes = 0;
        while bytes < DRAIN_BYTES_MAX
            && let Some(Ok(chunk)) = chunks.next().await
        {
            bytes += chunk.len();
        }
    };
    // Polite, and no more: the answer is the same.
    let _ = timeout(DRAIN_TIMEOUT, drain).await;
    if let Some(problem) = no_memory {
        return Err(problem);
    }
    Err(Problem::too_large(format!("the body is larger than {BODY_BYTES_MAX} bytes"))
        .remedy("send less at once"))
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
    .remedy("mend the body; the documentation shows what is expected")
    .error(FieldProblem { place, problem, remedy: None })
}
