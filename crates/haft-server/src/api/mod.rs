//! The HTTP API: endpoints over a live toolbox, and the document that describes them.
//!
//! Each file is one subject and says for each endpoint who may use it: [`Routes`].

mod config;
mod edit_problem;
mod failure_problem;
mod health;
mod if_match;
mod log;
mod prompts;
mod refusals;
mod resources;
mod servers;
mod status;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use haft::live::Live;
use jiff::Timestamp;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::keys::Keyring;
use crate::serve::{Frame, GuardSettings};

/// What the endpoints work with.
pub struct Service {
    /// The toolbox.
    pub live: Live,
    /// Who may use it.
    pub keys: Arc<Keyring>,
    /// Since when it serves.
    pub started: Timestamp,
}

impl Service {
    /// A service for a toolbox.
    pub fn new(live: Live, keys: Arc<Keyring>) -> Arc<Self> {
        Arc::new(Self { live, keys, started: Timestamp::now() })
    }
}

/// Endpoints, by who may use them.
#[derive(Default)]
struct Routes {
    /// Every caller; methods other than GET and HEAD are for admins.
    reading: OpenApiRouter<Arc<Service>>,
    /// Every caller, whatever the method.
    calling: OpenApiRouter<Arc<Service>>,
    /// Admins.
    admin: OpenApiRouter<Arc<Service>>,
}

impl Routes {
    fn and(self, other: Self) -> Self {
        Self {
            reading: self.reading.merge(other.reading),
            calling: self.calling.merge(other.calling),
            admin: self.admin.merge(other.admin),
        }
    }
}

#[derive(OpenApi)]
#[openapi(info(
    title = "Haft",
    description = "One handle on every tool an LLM agent may use: call tools, manage the registry, read the log."
))]
struct Document;

/// The whole service, ready to be served.
pub fn router(service: &Arc<Service>, guard: &GuardSettings) -> Router {
    let all = vec![
        health::routes(),
        status::routes(),
        servers::routes(),
        prompts::routes(),
        resources::routes(),
        log::routes(),
        config::routes(),
    ]
    .into_iter()
    .fold(Routes::default(), Routes::and);
    let mut document = Document::openapi();
    let mut plain = |routes: OpenApiRouter<Arc<Service>>| {
        let (router, part) = routes.split_for_parts();
        document.merge(part);
        router.with_state(Arc::clone(service))
    };
    let (reading, calling, admin) = (plain(all.reading), plain(all.calling), plain(all.admin));
    let paths: Vec<String> = document.paths.paths.keys().cloned().collect();
    let document = Arc::new(document.to_json().unwrap_or_default());
    let json = [(axum::http::header::CONTENT_TYPE, "application/json")];
    let documents = Router::new().route(
        "/api/openapi.json",
        get(move || std::future::ready((json, document.as_str().to_owned()))),
    );
    Frame::new(guard, Arc::clone(&service.keys))
        .reading(reading.merge(documents))
        .calling(calling)
        .admin(admin)
        .documented(paths)
        .into_router()
}
