//! The one way in: what every request passes, in this order.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::LINK;
use axum::http::{HeaderValue, Method, Request, StatusCode};
use axum::response::IntoResponse as _;
use futures_util::FutureExt as _;
use haft::NAME_BYTES_MAX;
use haft::memory::MemoryBudget;
use tower::ServiceExt as _;

use super::access::{Access, Caller};
use super::activity::RequestBody;
use super::body::{Response, routed};
use super::direct::{DirectEndpoints, DirectRequest, RouterOnly};
use super::guard::Guard;
use super::identification::{Attempt, Refusal, answers_without_keys};
use super::listener::{Connection, end_stream};
use super::memory::{RequestMemory, ResponseMemory};
use super::problem::{DOCS_LINK, Problem, long_name};
use super::request_id::RequestId;

/// The whole service, for [`Listener::serve`](super::Listener::serve): the checks, and the endpoints behind them.
#[derive(Debug)]
pub struct CheckedService<D = RouterOnly> {
    pub(super) checks: Checks,
    pub(super) router: Router,
    pub(super) direct: D,
}

/// The rules for every request, whichever way its endpoint is found.
#[derive(Debug)]
pub(super) struct Checks {
    pub(super) guard: Guard,
    pub(super) access: Access,
    pub(super) memory: Option<MemoryBudget>,
}

impl<D: DirectEndpoints> CheckedService<D> {
    pub(super) async fn answer(
        &self,
        connection: &Connection,
        request: Request<RequestBody>,
    ) -> Response {
        let id = RequestId::of(request.headers());
        let page = match self.checks.guard.check(&request, connection) {
            Ok(page) => page,
            Err(problem) => return id.finish(routed(problem.into_response())),
        };
        if let Some(permission) = page.as_ref().and_then(|page| page.preflight(&request)) {
            return id.finish(permission);
        }
        let answer = id.scope(self.pass(connection, request, &id)).await;
        let answer = answer.unwrap_or_else(|problem| routed(problem.into_response()));
        let answer = with_docs(id.finish(answer));
        match page {
            Some(page) => page.permit(answer),
            None => answer,
        }
    }

    async fn pass(
        &self,
        connection: &Connection,
        request: Request<RequestBody>,
        id: &RequestId,
    ) -> Result<Response, Problem> {
        let Checks { access, memory, .. } = &self.checks;
        // Boxed, as is the next one: a service with a file of keys must not carry these futures with every request.
        if access.has_shared_keys() {
            Box::pin(access.ensure_current(answers_without_keys(request.uri().path()))).await?;
        }
        let identified = match access.identify(&request, connection, Attempt::First) {
            Err(Refusal::MayBeNew) => {
                Box::pin(access.refresh()).await?;
                access.identify(&request, connection, Attempt::AfterRefresh)
            }
            identified => identified,
        };
        let Some(caller) = identified? else {
            return Box::pin(self.route(connection, request, id, None, None)).await;
        };
        let path = request.uri().path();
        caller.require_path(path)?;
        check_names(path)?;
        let ended = Arc::clone(&caller.ended);
        let memory = memory.as_ref();
        let of_response = memory.map(|it| ResponseMemory::of(&request, it, &caller.name));
        // Held here too, so that it lasts until the answer is there.
        let of_request = memory.and_then(|it| RequestMemory::of(&request, it, &caller.name));
        let is_direct = request.method() == Method::POST && self.direct.answers(path);
        let held = of_request.clone();
        let answer = async {
            if is_direct {
                let (parts, body) = request.into_parts();
                let (uri, headers, memory) = (parts.uri, parts.headers, of_request);
                let request = DirectRequest { uri, headers, body, caller, memory };
                // On the heap: it takes 20 KB, and every future around it is moved several times.
                caught(Box::pin(self.direct.answer(request))).await?
            } else {
                // On the heap likewise, so that calls, which do not come this way, need not carry it.
                Box::pin(self.route(connection, request, id, Some(caller), of_request)).await
            }
        };
        // Dropped with what it waits for: a call that takes long is cancelled, as when its client goes away.
        let answer = tokio::select! {
            biased;
            answer = answer => answer.map(|answer| end_stream(answer, &ended)),
            () = ended.cancelled() => Err(no_longer()),
        }?;
        drop(held);
        match of_response {
            Some(memory) => memory.count(answer),
            None => Ok(answer),
        }
    }

    async fn route(
        &self,
        connection: &Connection,
        request: Request<RequestBody>,
        id: &RequestId,
        caller: Option<Caller>,
        memory: Option<RequestMemory>,
    ) -> Result<Response, Problem> {
        let mut request = request.map(Body::new);
        let extensions = request.extensions_mut();
        extensions.insert(connection.clone());
        extensions.insert(id.clone());
        if let Some(caller) = caller {
            extensions.insert(caller);
        }
        if let Some(memory) = memory {
            extensions.insert(memory);
        }
        let answer = caught(self.router.clone().oneshot(request)).await?;
        Ok(match answer {
            Ok(response) => routed(response),
            Err(never) => match never {},
        })
    }
}

/// Names the documentation in the answer for something that does not exist.
fn with_docs(mut answer: Response) -> Response {
    if answer.status() == StatusCode::NOT_FOUND {
        answer.headers_mut().insert(LINK, HeaderValue::from_static(DOCS_LINK));
    }
    answer
}

async fn caught<T>(answer: impl Future<Output = T>) -> Result<T, Problem> {
    // What a handler leaves half done when it panics is its own; nothing of ours is shared with it.
    AssertUnwindSafe(answer).catch_unwind().await.map_err(|panic| {
        tracing::error!("a request ended in a panic: {}", text(&*panic));
        Problem::internal()
    })
}

/// Refuses a path with a part that is longer than any name, before anything compares it.
fn check_names(path: &str) -> Result<(), Problem> {
    // An escaped byte takes three characters.
    let bytes = |part: &str| {
        part.len() - 2 * part.bytes().filter(|byte| *byte == b'%').count().min(part.len() / 3)
    };
    if path.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    match path.split('/').map(bytes).find(|bytes| *bytes > NAME_BYTES_MAX) {
        None => Ok(()),
        Some(bytes) => Err(long_name("a part of the path", bytes)),
    }
}

fn no_longer() -> Problem {
    Problem::unauthorized("the keys were changed, and the request is no longer permitted")
        .remedy("`haft keys list` shows which keys there are, `haft keys create` makes one")
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}
