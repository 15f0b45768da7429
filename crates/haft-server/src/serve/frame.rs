//! The one way in: what every request passes, in this order.

use std::any::Any;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{Method, Uri};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt as _;
use haft::NAME_BYTES_MAX;
use haft::memory::MemoryBudget;
use tracing::Instrument as _;

use super::access::{Access, admin_only, admin_to_write};
use super::extract::BODY_BYTES_MAX;
use super::guard::{Guard, GuardSettings};
use super::listener::end_stream;
use super::memory::{RequestMemory, ResponseMemory};
use super::problem::{Problem, long_name};
use super::request_id::RequestId;
use crate::keys::Keyring;

/// The endpoints of a service, each under a rule for who may use it. There is no way to add one without.
///
/// Routes of one path may be split between the rules by their methods. The routers must not have a
/// fallback of their own.
#[derive(Debug)]
pub struct Frame {
    gate: Gate,
    reading: Router,
    calling: Router,
    admin: Router,
    paths: Vec<String>,
}

impl Frame {
    /// A frame without endpoints.
    pub fn new(guard: &GuardSettings, keys: Arc<Keyring>) -> Self {
        Self {
            gate: Gate { guard: Guard::new(guard), access: Access::new(keys), memory: None },
            reading: Router::new(),
            calling: Router::new(),
            admin: Router::new(),
            paths: Vec::new(),
        }
    }

    /// Counts requests and responses as memory in flight.
    #[must_use]
    pub fn counted(mut self, memory: MemoryBudget) -> Self {
        self.gate.memory = Some(memory);
        self
    }

    /// Adds what every caller may read. Methods other than GET and HEAD are for admins.
    #[must_use]
    pub fn reading(mut self, routes: Router) -> Self {
        self.reading = self.reading.merge(routes);
        self
    }

    /// Adds what every caller may use, whatever the method: calling tools.
    #[must_use]
    pub fn calling(mut self, routes: Router) -> Self {
        self.calling = self.calling.merge(routes);
        self
    }

    /// Adds what only admins may use.
    #[must_use]
    pub fn admin(mut self, routes: Router) -> Self {
        self.admin = self.admin.merge(routes);
        self
    }

    /// Names the documented paths, for whoever asks for one that does not exist.
    #[must_use]
    pub fn documented(mut self, paths: impl IntoIterator<Item = String>) -> Self {
        self.paths.extend(paths);
        self
    }

    /// The whole service, for [`Listener::serve`](super::Listener::serve).
    pub fn into_router(self) -> Router {
        let Self { gate, reading, calling, admin, paths } = self;
        let mut router = calling;
        // A layer on a router without routes is refused by axum.
        if reading.has_routes() {
            router = router.merge(reading.route_layer(from_fn(admin_to_write)));
        }
        if admin.has_routes() {
            router = router.merge(admin.route_layer(from_fn(admin_only)));
        }
        router
            .method_not_allowed_fallback(wrong_method)
            .fallback(move |uri: Uri| std::future::ready(unknown_path(&paths, &uri)))
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
            .layer(from_fn_with_state(Arc::new(gate), through))
    }
}

#[derive(Debug)]
struct Gate {
    guard: Guard,
    access: Access,
    memory: Option<MemoryBudget>,
}

async fn through(State(gate): State<Arc<Gate>>, mut request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers());
    request.extensions_mut().insert(id.clone());
    // Of the highest level, so that lines of every level carry the id whatever is shown.
    let span = tracing::error_span!("request", request_id = id.as_str());
    let page = match gate.guard.check(&request) {
        Ok(page) => page,
        Err(problem) => return id.finish(problem.into_response()),
    };
    if let Some(permission) = page.as_ref().and_then(|page| page.preflight(&request)) {
        return id.finish(permission);
    }
    let answer = gate.pass(request, next).instrument(span).await;
    let answer = id.finish(answer.unwrap_or_else(IntoResponse::into_response));
    match page {
        Some(page) => page.permit(answer),
        None => answer,
    }
}

impl Gate {
    async fn pass(&self, mut request: Request, next: Next) -> Result<Response, Problem> {
        let Some(caller) = self.access.identify(&request)? else {
            return answer(request, next).await;
        };
        caller.require_path(request.uri().path())?;
        check_names(request.uri().path())?;
        let ended = Arc::clone(&caller.ended);
        let memory = self.memory.as_ref();
        let of_response = memory.map(|it| ResponseMemory::of(&request, it, &caller.name));
        // Held here too, so that it lasts until the answer is there.
        let of_request = memory.and_then(|it| RequestMemory::of(&request, it, &caller.name));
        if let Some(of_request) = &of_request {
            request.extensions_mut().insert(of_request.clone());
        }
        request.extensions_mut().insert(caller);
        // Dropped with what it waits for: a call that takes long is cancelled, as when its client goes away.
        let answer = tokio::select! {
            biased;
            answer = answer(request, next) => answer.map(|answer| end_stream(answer, &ended)),
            () = ended.cancelled() => Err(no_longer()),
        }?;
        match of_response {
            Some(memory) => memory.count(answer),
            None => Ok(answer),
        }
    }
}

async fn answer(request: Request, next: Next) -> Result<Response, Problem> {
    // What a handler leaves half done when it panics is its own; nothing of ours is shared with it.
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    answer.map_err(|panic| {
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
    match path.split('/').map(bytes).find(|bytes| *bytes > NAME_BYTES_MAX) {
        None => Ok(()),
        Some(bytes) => Err(long_name("a part of the path", bytes)),
    }
}

fn no_longer() -> Problem {
    Problem::unauthorized("the keys were changed, and the request may not go on")
        .remedy("`haft keys list` shows which keys there are, `haft keys create` makes one")
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    Problem::method_not_allowed(format!("`{}` does not answer `{method}`", uri.path()))
        .remedy("use one of the methods in the header `Allow`")
}

fn unknown_path(paths: &[String], uri: &Uri) -> Result<Infallible, Problem> {
    let problem = Problem::not_found(format!("there is no path `{}`", uri.path()));
    Err(match haft::nearest(uri.path(), paths.iter().map(String::as_str)) {
        Some(nearest) => problem.remedy(format!("did you mean `{nearest}`?")),
        None if paths.is_empty() => problem,
        None => problem.remedy("the documentation lists every path"),
    })
}
