//! The state of a server and its reason.

use std::fmt;

use haft_config::Remedy;
use jiff::Timestamp;

pub use crate::server_state::ServerState;

/// The state of a server with what led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// The state.
    pub state: ServerState,
    /// The reason of that state, if any.
    pub reason: Option<Reason>,
    /// The time of the last change.
    pub since: Timestamp,
    /// Number of consecutive reconnection attempts.
    pub retries: u32,
}

/// The reason of a server's state. `Display` is for the operator: it adds the last line of the
/// process's standard error.
///
/// A server is shared, so that line may concern the call of another caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// The cause, for every caller.
    pub cause: String,
    /// The last line of standard error, for the operator.
    pub last_words: Option<String>,
    /// The remedy, if the cause has one beyond looking at the server.
    pub remedy: Option<Remedy>,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)?;
        match &self.last_words {
            Some(line) => write!(f, "; its last words: {line}"),
            None => Ok(()),
        }
    }
}

impl From<String> for Reason {
    fn from(cause: String) -> Self {
        Self { cause, last_words: None, remedy: None }
    }
}

impl Health {
    pub(super) fn new(state: ServerState) -> Self {
        Self { state, reason: None, since: Timestamp::now(), retries: 0 }
    }
}
