//! What a native file says about limits of the whole process: `limits`.

use super::quantity::Count;
use super::read::record;

record! {
    /// `limits`.
    pub struct RawLimits("`limits`", Reject) {
        /// How many values and keys one message may have: a request, a server's message, a piece of a model's
        /// answer, a registry file; 100000 by default.
        message_nodes_max("message_nodes_max"): Count,
        /// How many bytes of memory everything in flight may take: request bodies, arguments, answers, the log's
        /// queue. 268435456 (256 MiB) by default, at least 16777216.
        in_flight_bytes_max("in_flight_bytes_max"): Count,
    }
}
