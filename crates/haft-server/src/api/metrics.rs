//! Figures for Prometheus.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use haft_postgres::Database;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Routes, Service, SharedLog};
use crate::telemetry::{METRICS_CONTENT_TYPE, shipping_report};

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
    let mut page = service.telemetry.report(&service.live, shared.as_ref());
    if let Some(status) = service.log.as_ref().and_then(SharedLog::status) {
        page.push_str(&shipping_report(&status));
    }
    ([(CONTENT_TYPE, METRICS_CONTENT_TYPE)], page).into_response()
}
