//! Messages as bytes: pure functions, no I/O.

mod incoming;
mod outgoing;
mod parsed;
mod salvage;

pub use incoming::{Incoming, Malformed, parse};
pub(crate) use incoming::{parse_unchecked, request_id};
#[cfg(test)]
pub(crate) use outgoing::result_with;
pub use outgoing::{empty_response, error_response, notification, on_one_line, request, response};
pub(crate) use outgoing::{push_quoted, request_with, response_with};
pub(crate) use parsed::Content;
pub use parsed::Parsed;
pub use salvage::{looks_like_message, salvage_id};
