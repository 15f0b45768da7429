//! How a server is doing, and why.

use jiff::Timestamp;

pub use crate::server_state::ServerState;

/// The state of a server with what led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The state.
    pub state: ServerState,
    /// Why it is in that state, where there is something to say.
    pub reason: Option<String>,
    /// Since when.
    pub since: Timestamp,
    /// How many connections in a row were tried again.
    pub retries: u32,
}

impl Health {
    pub(super) fn new(state: ServerState) -> Self {
        Self { state, reason: None, since: Timestamp::now(), retries: 0 }
    }
}
