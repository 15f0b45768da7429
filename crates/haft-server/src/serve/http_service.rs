//! The endpoints of a service, each under a rule for who may use it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, Uri};
use axum::middleware::from_fn;
use haft::memory::MemoryBudget;

use super::access::{Access, admin_only, admin_to_write};
use super::checked_service::{CheckedService, Checks};
use super::direct::{DirectEndpoints, RouterOnly};
use super::extract::BODY_BYTES_MAX;
use super::guard::{Guard, GuardSettings};
use super::problem::{DOCS, Problem};
use super::sessions::Sessions;
use crate::keys::Keyring;

/// The endpoints of a service, each under a rule for who may use it. There is no way to add one without.
///
/// Routes of one path may be split between the rules by their methods. The routers must not have a
/// fallback of their own.
#[derive(Debug)]
pub struct HttpService {
    checks: Checks,
    reading: Router,
    calling: Router,
    admin: Router,
    paths: Vec<String>,
}

impl HttpService {
    /// A frame without endpoints.
    pub fn new(guard: &GuardSettings, keys: Arc<Keyring>) -> Self {
        Self {
            checks: Checks { guard: Guard::new(guard), access: Access::new(keys), memory: None },
            reading: Router::new(),
            calling: Router::new(),
            admin: Router::new(),
            paths: Vec::new(),
        }
    }

    /// Accepts the session cookies of the web console beside keys.
    #[must_use]
    pub fn with_sessions(mut self, sessions: Arc<Sessions>) -> Self {
        self.checks.access = self.checks.access.with_sessions(sessions);
        self
    }

    /// Counts requests and responses as memory in flight.
    #[must_use]
    pub fn counted(mut self, memory: MemoryBudget) -> Self {
        self.checks.memory = Some(memory);
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

    /// Names the documented paths, for requests of unknown ones.
    #[must_use]
    pub fn documented(mut self, paths: impl IntoIterator<Item = String>) -> Self {
        self.paths.extend(paths);
        self
    }

    /// The whole service, for [`Listener::serve`](super::Listener::serve).
    pub fn into_service(self) -> CheckedService {
        self.with_direct(RouterOnly)
    }

    /// The whole service. `direct` answers what it can for callers of tools, the router the rest.
    pub fn with_direct<D: DirectEndpoints>(self, direct: D) -> CheckedService<D> {
        let Self { checks, reading, calling, admin, paths } = self;
        let mut router = calling;
        // A layer on a router without routes is refused by axum.
        if reading.has_routes() {
            router = router.merge(reading.route_layer(from_fn(admin_to_write)));
        }
        if admin.has_routes() {
            router = router.merge(admin.route_layer(from_fn(admin_only)));
        }
        let router = router
            .method_not_allowed_fallback(wrong_method)
            .fallback(move |uri: Uri| std::future::ready(unknown_path(&paths, &uri)))
            .layer(DefaultBodyLimit::max(BODY_BYTES_MAX));
        CheckedService { checks, router, direct }
    }
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    Problem::method_not_allowed(format!("`{}` does not answer `{method}`", uri.path()))
        .remedy("use one of the methods in the header `Allow`")
}

fn unknown_path(paths: &[String], uri: &Uri) -> Result<Infallible, Problem> {
    let problem = Problem::not_found(format!("there is no path `{}`", uri.path()));
    Err(match haft_text::nearest(uri.path(), paths.iter().map(String::as_str)) {
        Some(nearest) => problem.remedy(format!("did you mean `{nearest}`?")),
        None if paths.is_empty() => problem,
        None => problem.remedy(format!("`{DOCS}` lists every path")),
    })
}
