//! The live replicas of the service.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Routes, Service};
use crate::serve::ReplicaInfo;

pub(super) fn routes() -> Routes {
    Routes { admin: OpenApiRouter::new().routes(routes!(list)), ..Routes::default() }
}

/// The live replicas.
#[derive(Debug, Serialize, ToSchema)]
struct ReplicaList {
    /// The number of the replica that answers. Zero for a service on its own.
    own: u16,
    /// All of them, by number. Empty for a service on its own.
    replicas: Vec<ReplicaEntry>,
}

/// One replica, as it last reported itself.
#[derive(Debug, Serialize, ToSchema)]
struct ReplicaEntry {
    /// Its number. The ids of its calls, questions and runs end with it, in hexadecimal digits.
    number: u16,
    /// Where other replicas reach it.
    address: String,
    /// Its version of Haft.
    version: String,
    /// The revision of the registry that it uses.
    revision: Option<String>,
    /// A digest of its configuration. Replicas with the same configuration have the same.
    config: String,
    /// Its problem, such as a change of the registry that it cannot apply.
    problem: Option<String>,
    /// Milliseconds since its last heartbeat. A replica without one for ten seconds is not listed.
    seen_ms_ago: u64,
}

/// Lists the live replicas of the service.
#[utoipa::path(
    get, path = "/api/v1/replicas", operation_id = "list_replicas", tag = "health",
    responses((status = 200, description = "The replicas, by number.", body = ReplicaList))
)]
async fn list(State(service): State<Arc<Service>>) -> Json<ReplicaList> {
    let Some(peers) = &service.peers else {
        return Json(ReplicaList { own: 0, replicas: Vec::new() });
    };
    let replicas = peers.list().into_iter().map(ReplicaEntry::from).collect();
    Json(ReplicaList { own: peers.own().get(), replicas })
}

impl From<ReplicaInfo> for ReplicaEntry {
    fn from(info: ReplicaInfo) -> Self {
        let ReplicaInfo { number, address, version, revision, config, problem, age } = info;
        let seen_ms_ago = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let number = number.get();
        Self { number, address, version, revision, config, problem, seen_ms_ago }
    }
}
