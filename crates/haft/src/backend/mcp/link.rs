//! The published state of one server connection. Only the supervisor writes it; everyone else reads or waits.

use tokio::time::Instant;

use super::health::{Reason, ServerState};

/// The connection to one server.
#[derive(Debug, Clone)]
pub(super) enum Link<C> {
    /// No caller needed the server yet.
    Idle,
    /// An attempt is running, or waits for its pause to end.
    Connecting {
        /// The number of the attempt in its round, from 1.
        attempt: u32,
        /// The reason why the previous attempt failed.
        last_error: Option<Reason>,
    },
    /// The server is connected. Its lists are in [`Status::lists`], because they outlive the connection.
    Ready {
        /// The client of this connection.
        client: C,
        /// The missing parts, if the server is degraded.
        gap: Option<Reason>,
    },
    /// The server is not connected, and no attempt is running.
    Down {
        /// The reason.
        reason: Reason,
        /// The retries that were made before giving up.
        retries: u32,
        /// The time of the supervisor's next attempt.
        retry_at: Option<Instant>,
    },
    /// The connection was stopped for good.
    Stopped,
}

impl<C> Link<C> {
    /// The state, its reason and the number of retries, as they are shown.
    pub(super) fn health(&self) -> (ServerState, Option<&Reason>, u32) {
        match self {
            Self::Idle => (ServerState::Configured, None, 0),
            Self::Connecting { attempt, last_error } => {
                (ServerState::Connecting, last_error.as_ref(), attempt.saturating_sub(1))
            }
            Self::Ready { gap: None, .. } => (ServerState::Ready, None, 0),
            Self::Ready { gap: Some(gap), .. } => (ServerState::Degraded, Some(gap), 0),
            Self::Down { reason, retries, .. } => {
                (ServerState::Unavailable, Some(reason), *retries)
            }
            Self::Stopped => (ServerState::Stopped, None, 0),
        }
    }
}

/// The link with everything that callers wait for. The counters only grow, so a caller that notes one before it
/// sends a command cannot miss the change.
#[derive(Debug, Clone)]
pub(super) struct Status<C, L> {
    pub(super) link: Link<C>,
    /// The lists of the last connection, or of an earlier run.
    pub(super) lists: Option<L>,
    /// The rounds of attempts that are over, connected or not.
    pub(super) rounds: u64,
    /// The failed attempts that were followed by another one in their round.
    pub(super) failed_attempts: u64,
    /// Number of attempts to read the lists.
    pub(super) list_reads: u64,
    /// The reconnect commands whose first attempt is over.
    pub(super) reconnects: u64,
}

impl<C, L> Status<C, L> {
    pub(super) fn new(lists: Option<L>) -> Self {
        let link = Link::Idle;
        Self { link, lists, rounds: 0, failed_attempts: 0, list_reads: 0, reconnects: 0 }
    }
}
