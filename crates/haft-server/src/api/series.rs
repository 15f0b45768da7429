//! The last hour as a time series, for charts.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Routes, Service};
use crate::telemetry::series::{Point, STEP};

pub(super) fn routes() -> Routes {
    Routes { reading: OpenApiRouter::new().routes(routes!(series)), ..Routes::default() }
}

/// The last hour in steps of equal length.
#[derive(Debug, Serialize, ToSchema)]
struct TimeSeries {
    /// The length of a step in seconds.
    step_secs: u64,
    /// The steps, the oldest first.
    points: Vec<SeriesPoint>,
}

/// One step.
#[derive(Debug, Serialize, ToSchema)]
struct SeriesPoint {
    /// The end of the step, RFC 3339.
    at: String,
    /// The number of calls that ended.
    calls: u32,
    /// The number of them that failed.
    errors: u32,
    /// The median duration in milliseconds, without time in queues. `null` if no call ended.
    p50_ms: Option<f64>,
    /// The 95th percentile of the duration.
    p95_ms: Option<f64>,
    /// Running calls at the end of the step.
    in_flight: u32,
    /// Calls waiting in queues at the end of the step.
    waiting: u32,
}

impl From<Point> for SeriesPoint {
    fn from(point: Point) -> Self {
        let Point { at, calls, errors, p50_ms, p95_ms, in_flight, waiting } = point;
        Self { at: at.to_string(), calls, errors, p50_ms, p95_ms, in_flight, waiting }
    }
}

/// Returns calls, errors, durations and load of the last hour.
#[utoipa::path(
    get, path = "/api/v1/series", operation_id = "get_series", tag = "health",
    responses((status = 200, description = "The last hour.", body = TimeSeries))
)]
async fn series(State(service): State<Arc<Service>>) -> Json<TimeSeries> {
    let points = service.telemetry.series().points().into_iter().map(SeriesPoint::from).collect();
    Json(TimeSeries { step_secs: STEP.as_secs(), points })
}
