//! The HTTP API: endpoints over a live toolbox, and the document that describes them.
//!
//! Each file is one subject and declares for each endpoint who may use it: `Routes`.

mod audit;
mod audited;
mod call_events;
mod calls;
mod config;
mod contract;
mod conversations;
mod direct;
mod document;
mod edit_problem;
mod entry;
mod failure_problem;
mod gather;
mod health;
mod inbox;
mod inbox_events;
mod inbox_merged;
mod index;
mod keys;
mod lock;
mod log;
mod metrics;
mod owner;
mod precondition;
mod profiles;
mod prompts;
mod registry_entry;
mod remedy;
mod replicas;
mod resources;
mod revision;
mod running;
mod runs;
mod schemas;
mod series;
mod servers;
mod session;
mod status;
mod tools;
mod tools_list;
mod tools_search;
mod visible;

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use haft::live::Live;
use haft_postgres::Database;
use jiff::Timestamp;
use utoipa_axum::router::OpenApiRouter;

use crate::audit::AuditLog;
use crate::console;
use crate::gateway::Mount;
use crate::keys::Keyring;
use crate::runs::Runs;
use crate::serve::{
    BodyLimits, Caller, CheckedService, GuardSettings, HttpService, Peers, Sessions,
};
pub use crate::shared_log::SharedLog;
use crate::sign_ins::SignIns;
use crate::telemetry::Telemetry;
pub use direct::DirectCalls;
use document::{Document, Who};

/// Shared state of the endpoints.
pub struct Service {
    /// The toolbox.
    pub live: Live,
    /// The keys that give access.
    pub keys: Arc<Keyring>,
    /// Metrics and traces of calls.
    pub telemetry: Arc<Telemetry>,
    /// The agent's runs.
    pub runs: Runs,
    /// The sessions of the web console.
    pub sessions: Arc<Sessions>,
    /// Sign-ins at remote servers that wait for a browser.
    pub sign_ins: Arc<SignIns>,
    /// The log of admin actions.
    pub audit: Arc<AuditLog>,
    /// The database that it shares with other replicas.
    pub shared: Option<Database>,
    /// The execution log of all replicas.
    pub log: Option<SharedLog>,
    /// The other replicas, if the service has several.
    pub peers: Option<Peers>,
    /// Since when it serves.
    pub started: Timestamp,
    /// True once every eager server has been tried.
    has_started: AtomicBool,
    /// True after SIGTERM: no new request should come here.
    pub(crate) is_draining: AtomicBool,
}

impl Service {
    /// A service for a toolbox whose calls `telemetry` observes.
    pub fn new(
        live: Live,
        keys: Arc<Keyring>,
        telemetry: Arc<Telemetry>,
        shared: Option<Database>,
    ) -> Arc<Self> {
        Self::of_replica(live, keys, telemetry, shared, None)
    }

    /// The same as one of several replicas, which reach each other.
    pub fn of_replica(
        live: Live,
        keys: Arc<Keyring>,
        telemetry: Arc<Telemetry>,
        shared: Option<Database>,
        peers: Option<Peers>,
    ) -> Arc<Self> {
        let own = peers.as_ref().map(Peers::own).unwrap_or_default();
        let runs = Runs::of_replica(own, shared.clone());
        let (sessions, sign_ins) = (Arc::default(), Arc::default());
        let (started, has_started) = (Timestamp::now(), AtomicBool::new(false));
        let audit = Arc::new(AuditLog::of(&live.runtime().config()));
        let log = shared.clone().map(|database| SharedLog::new(database, live.runtime()));
        Arc::new(Self {
            live,
            keys,
            telemetry,
            runs,
            sessions,
            sign_ins,
            audit,
            shared,
            log,
            peers,
            started,
            has_started,
            is_draining: AtomicBool::new(false),
        })
    }

    /// Reads the configuration again for a signal, if the audit log can record it.
    pub(crate) async fn reload_on_signal(self: &Arc<Self>) {
        audited::reload(self).await;
    }

    /// Returns true if the service itself speaks TLS.
    fn is_tls(&self) -> bool {
        self.live.runtime().config().api.tls.is_some()
    }

    /// Returns true if a caller may approve calls of tools with `approval: ask`, its own or those of others.
    fn may_approve(&self, caller: &Caller) -> bool {
        let config = self.live.runtime().config();
        caller.may_approve(config.policy.approvals.as_ref().map(|approvals| approvals.value))
    }
}

impl BodyLimits for Arc<Service> {
    fn nodes_max(&self) -> usize {
        self.live.runtime().config().limits.nodes_max()
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

/// The whole service, ready to be served. `gateway` has its own endpoints, for callers of tools.
pub fn http_service(
    service: &Arc<Service>,
    guard: &GuardSettings,
    gateway: Option<Mount>,
) -> CheckedService<DirectCalls> {
    let parts: [fn() -> Routes; _] = [
        audit::routes,
        calls::routes,
        config::routes,
        contract::routes,
        conversations::routes,
        health::routes,
        inbox::routes,
        index::routes,
        keys::routes,
        lock::routes,
        metrics::routes,
        log::routes,
        profiles::routes,
        prompts::routes,
        replicas::routes,
        resources::routes,
        running::routes,
        runs::routes,
        series::routes,
        servers::routes,
        session::routes,
        status::routes,
        tools::routes,
        tools_list::routes,
        tools_search::routes,
    ];
    let Routes { reading, calling, admin } =
        parts.iter().fold(Routes::default(), |routes, part| routes.and(part()));
    let mut document = Document::new();
    let mut plain = |routes: OpenApiRouter<Arc<Service>>, who: Who| {
        let (plain, part) = routes.split_for_parts();
        document.add(&part, who);
        let recorded = from_fn_with_state(Arc::clone(service), audited::record);
        let plain = plain.with_state(Arc::clone(service)).layer(recorded);
        match &service.peers {
            // Around the record: the owner keeps it.
            Some(peers) => plain
                .layer(from_fn_with_state(peers.clone(), owner::forward))
                .layer(from_fn_with_state(service.live.clone(), revision::follow)),
            None => plain,
        }
    };
    let reading = plain(reading, Who::Reading);
    let calling = plain(calling, Who::Calling);
    let admin = plain(admin, Who::Admin);
    let paths = document.paths();
    let json = Arc::<str>::from(document.as_value().to_string());
    let json_kind = [(CONTENT_TYPE, "application/json")];
    let documents =
        Router::new().route("/api/openapi.json", get(move || ready((json_kind, json.to_string()))));
    let page_routes = console::routes(
        Arc::clone(&service.sessions),
        Arc::clone(&service.sign_ins),
        service.is_tls(),
    );
    HttpService::new(guard, Arc::clone(&service.keys))
        .with_sessions(Arc::clone(&service.sessions))
        .counted(service.live.runtime().memory().clone())
        .reading(reading.merge(documents).merge(page_routes))
        .calling(calling.merge(gateway.as_ref().map(Mount::routes).unwrap_or_default()))
        .admin(admin)
        .documented(paths.into_iter().chain(["/mcp".to_owned(), "/mcp/{profile}".to_owned()]))
        .with_direct(DirectCalls::new(Arc::clone(service), gateway))
}
