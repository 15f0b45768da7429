//! Figures for Prometheus.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use haft_postgres::Database;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Routes, Service};
use crate::telemetry::METRICS_CONTENT_TYPE;

pub(super) fn routes() -> Routes {
    Routes { reading: OpenApiRouter::new().routes(routes!(metrics)), ..Routes::default() }
}

/// Number of calls per tool, their outcomes, and the current load, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", operation_id = "get_metrics", tag = "health",
    responses((
        status = 200, description = "Prometheus's text format.",
        body = String, content_type = "text/plain"
    ))
)]
async fn metrics(State(service): State<Arc<Service>>) -> Response {
    let shared = service.shared.as_ref().map(Database::health);
    let page = service.telemetry.report(&service.live, shared.as_ref());
    ([(CONTENT_TYPE, METRICS_CONTENT_TYPE)], page).into_response()
}
