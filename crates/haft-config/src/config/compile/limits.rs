//! `limits`.

use super::{count, pick};
use crate::config::limits::{IN_FLIGHT_BYTES_DEFAULT, IN_FLIGHT_BYTES_MIN, LimitsConfig};
use crate::config::parse::NODES_MAX;
use crate::config::place::{Place, Problems};
use crate::config::raw_limits::RawLimits;

/// With fewer, not even a handshake or the list of a server's tools could be read.
const NODES_MIN: u32 = 1_000;

pub(super) fn limits(raw: Option<RawLimits>, problems: &mut Problems) -> LimitsConfig {
    let RawLimits { message_nodes_max, in_flight_bytes_max, .. } =
        raw.unwrap_or_else(|| RawLimits::empty(Place::whole("")));
    let nodes = message_nodes_max.map(count);
    if let Some(at) = nodes.as_ref().filter(|at| at.value < NODES_MIN) {
        let problem = format!("{} values and keys are too few for a message", at.value);
        problems.error(&at.place, problem, format!("write {NODES_MIN} or more"));
    }
    let bytes = in_flight_bytes_max.map(count);
    if let Some(at) = bytes.as_ref().filter(|at| at.value < IN_FLIGHT_BYTES_MIN) {
        let problem = format!("`in_flight_bytes_max` is below {IN_FLIGHT_BYTES_MIN}");
        let remedy = format!("write {IN_FLIGHT_BYTES_MIN} (16 MiB) or more");
        problems.error(&at.place, problem, remedy);
    }
    LimitsConfig {
        message_nodes_max: pick(nodes, u32::try_from(NODES_MAX).unwrap_or(u32::MAX)),
        in_flight_bytes_max: pick(bytes, IN_FLIGHT_BYTES_DEFAULT),
    }
}
