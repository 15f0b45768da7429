//! The state of shipping, for health checks and metrics.

use std::time::Instant;

/// The state of a [`Shipper`](super::Shipper).
#[derive(Debug, Clone, Default)]
pub struct ShipStatus {
    /// Number of entries shipped since the start.
    pub entries: u64,
    /// Number of lines left out since the start: they are not entries, or the sink refused them. They stay in the file.
    pub skipped: u64,
    /// Number of bytes that wait to be shipped.
    pub waiting_bytes: u64,
    /// The problem, while nothing is shipped.
    pub problem: Option<ShipProblem>,
}

/// A problem of shipping.
#[derive(Debug, Clone)]
pub struct ShipProblem {
    /// The problem with its remedy.
    pub text: String,
    /// Its beginning.
    pub since: Instant,
}
