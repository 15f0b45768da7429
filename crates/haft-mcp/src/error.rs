//! Why a request failed: the server's own error, the way to it, or the protocol between.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// JSON-RPC: the method does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the parameters are wrong.
pub const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC: the receiver failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// 2026-07-28: a header contradicts the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// 2026-07-28: the client lacks a capability that the request needs.
pub const MISSING_CAPABILITY: i64 = -32021;
/// 2026-07-28: the protocol version is not spoken here.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// An error the other side answered with, as it was sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RpcError {
    /// The JSON-RPC code.
    pub code: i64,
    /// The other side's message.
    #[serde(default)]
    pub message: String,
    /// Whatever else it sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// An error of ours, for the other side.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}

/// The connection failed, or this one exchange over it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    /// The kind of failure.
    pub kind: Failure,
    /// The failure, the item it concerns, and the cause.
    pub message: String,
    /// True if the server can have seen the message.
    pub sent: Sent,
    /// The server's `Retry-After`.
    pub retry_after: Option<Duration>,
}

/// The kinds of failure that are handled differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The program or address does not exist, or may not be used. Trying again changes nothing.
    NotFound,
    /// No listener, an unknown host name, no network.
    Unreachable,
    /// The certificate or the handshake is wrong. Trying again changes nothing.
    Tls,
    /// The connection ended: the process exited, the socket closed.
    Closed,
    /// Something took too long.
    Timeout,
    /// A stream of events was silent for longer than `sse_read_timeout`.
    StreamTimeout,
    /// The server wants credentials, or better ones.
    AuthRequired,
    /// The legacy session is not known to the server any more.
    SessionExpired,
    /// Another HTTP status than success.
    Status(u16),
    /// A redirect that must not be followed.
    Redirect,
    /// Received bytes that are not MCP: too long, too deep, not UTF-8, not JSON.
    Protocol,
    /// There is no memory for what the server sends.
    OverBudget,
}

/// True if the server can have acted on a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sent {
    /// Surely not: it never left, or was refused before anything was done with it.
    No,
    /// Perhaps.
    Maybe,
}

impl TransportError {
    /// A failure before anything was sent.
    pub fn unsent(kind: Failure, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), sent: Sent::No, retry_after: None }
    }

    /// A failure after the message may have arrived.
    pub fn after_sending(kind: Failure, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), sent: Sent::Maybe, retry_after: None }
    }

    /// Returns true if trying again may help.
    pub fn is_transient(&self) -> bool {
        match self.kind {
            Failure::Unreachable
            | Failure::Closed
            | Failure::Timeout
            | Failure::StreamTimeout
            | Failure::SessionExpired => true,
            Failure::Status(status) => matches!(status, 408 | 425 | 429 | 500..=599),
            Failure::NotFound
            | Failure::Tls
            | Failure::AuthRequired
            | Failure::Redirect
            | Failure::OverBudget
            | Failure::Protocol => false,
        }
    }

    /// Returns true if the connection as a whole is of no more use.
    pub fn ends_connection(&self) -> bool {
        match self.kind {
            Failure::NotFound
            | Failure::Unreachable
            | Failure::Tls
            | Failure::Closed
            | Failure::SessionExpired => true,
            Failure::Timeout
            | Failure::StreamTimeout
            | Failure::AuthRequired
            | Failure::Status(_)
            | Failure::Redirect
            | Failure::OverBudget
            | Failure::Protocol => false,
        }
    }
}

/// Why a request has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RequestError {
    /// The server answered with an error.
    #[error("{0}")]
    Rpc(RpcError),
    /// The connection failed.
    #[error("{0}")]
    Transport(TransportError),
    /// The answer cannot be understood.
    #[error("{message}")]
    Protocol {
        /// The problem, and the message it concerns.
        message: String,
        /// The kind of fault, which decides what can be done about it.
        fault: Fault,
    },
    /// No answer in time. The server was sent a cancellation.
    #[error("`{method}` was not answered within {after:?}")]
    Timeout {
        /// The requested method.
        method: String,
        /// The limit that ended the wait.
        after: Duration,
    },
}

/// The faults of a message that call for different remedies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It is not text in the expected encoding.
    Encoding,
    /// It answers a request, but its `id` has another type than the request's.
    ResponseId,
    /// Anything else.
    Other,
}

impl RequestError {
    /// An answer that cannot be understood.
    pub fn protocol(message: impl Into<String>) -> Self {
        Self::faulty(Fault::Other, message)
    }

    /// An answer with a fault of a known kind.
    pub fn faulty(fault: Fault, message: impl Into<String>) -> Self {
        Self::Protocol { message: message.into(), fault }
    }

    /// Returns true if the server can have acted on the request.
    pub fn sent(&self) -> Sent {
        match self {
            Self::Transport(error) => error.sent,
            Self::Rpc(_) | Self::Protocol { .. } | Self::Timeout { .. } => Sent::Maybe,
        }
    }
}

impl From<TransportError> for RequestError {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}

impl From<RpcError> for RequestError {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}
