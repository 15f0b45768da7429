//! Inputs and outputs of the state machine.

use std::time::Duration;

use crate::backend::mcp::health::Reason;

/// An input of the machine: a command, the result of a job, or the passing of time.
#[derive(Debug, Clone)]
pub(in crate::backend::mcp) enum Event<C, L> {
    /// A caller needs the server. It has seen that `after` rounds are over.
    Connect { after: u64 },
    /// A caller wants a new connection, whatever the state of the old one.
    Reconnect { ticket: u64 },
    /// The lists of the server changed, or are too old.
    ListsChanged,
    /// The connection that this attempt made is lost.
    Lost { attempt: u64 },
    /// The connection ends for good.
    Stop,
    /// The time of `Machine::deadline` has come.
    DeadlineReached,
    /// The result of [`Job::Attempt`].
    Attempted(Result<Connected<C, L>, AttemptError>),
    /// The result of [`Job::ExamineLoss`].
    LossExamined { reason: Reason, is_session_expired: bool },
    /// The result of [`Job::ReadLists`].
    ListsRead(Result<Listed<L>, ReadError>),
    /// The result of [`Job::Close`].
    Closed,
}

/// A connected server.
#[derive(Debug, Clone)]
pub(in crate::backend::mcp) struct Connected<C, L> {
    pub(in crate::backend::mcp) client: C,
    pub(in crate::backend::mcp) listed: Listed<L>,
}

/// The lists of a server, and what is missing in them.
#[derive(Debug, Clone)]
pub(in crate::backend::mcp) struct Listed<L> {
    pub(in crate::backend::mcp) lists: L,
    pub(in crate::backend::mcp) gap: Option<Reason>,
}

/// A failed attempt to connect.
#[derive(Debug, Clone)]
pub(in crate::backend::mcp) struct AttemptError {
    pub(in crate::backend::mcp) reason: Reason,
    /// True if another attempt may help.
    pub(in crate::backend::mcp) is_transient: bool,
    /// The pause that the server asks for.
    pub(in crate::backend::mcp) retry_after: Option<Duration>,
}

/// Reasons why lists could not be read.
#[derive(Debug, Clone)]
pub(in crate::backend::mcp) enum ReadError {
    /// The connection ended; its loss is a separate event.
    Ended,
    /// The server failed to list.
    Failed(Reason),
}

/// The work that the supervisor has to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::backend::mcp) enum Job {
    /// Connect and read the lists.
    Attempt {
        /// Never used twice.
        number: u64,
        /// True if it begins a round, which has its own time limit.
        begins_round: bool,
    },
    /// Find out why the connection was lost, and remove what is left of it.
    ExamineLoss,
    /// Read the lists again.
    ReadLists,
    /// Close the connection, and remove what is left of it or of an attempt.
    Close,
}
