//! The native keys of process-wide limits: `limits`.

use super::quantity::Count;
use super::read::record;

record! {
    /// `limits`.
    pub struct RawLimits("`limits`", Reject) {
        /// Maximum number of values and keys in one message: a request, a server's message, an
        /// event of a model's answer, a registry file; 100000 by default.
        message_nodes_max("message_nodes_max"): Count,
        /// Memory limit for data in flight, in bytes: request bodies, arguments, answers, the log's
        /// queue. 268435456 (256 MiB) by default, at least 16777216.
        in_flight_bytes_max("in_flight_bytes_max"): Count,
    }
}
