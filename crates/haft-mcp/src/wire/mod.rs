//! Messages as bytes: pure functions, no I/O.

mod depth;
mod incoming;
mod outgoing;
mod salvage;

pub use depth::nests_deeper_than;
pub use incoming::{Incoming, Malformed, parse};
pub(crate) use outgoing::push_quoted;
pub use outgoing::{empty_response, error_response, notification, on_one_line, request, response};
pub use salvage::{looks_like_message, salvage_id};
