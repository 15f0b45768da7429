//! Options of an endpoint.

use std::time::Duration;

use crate::budget::KeptBytes;
use crate::limits::Limits;
use crate::server::replica::Replica;

/// Options for serving clients over HTTP.
#[derive(Debug, Clone)]
pub struct EndpointOptions {
    /// Limits on messages.
    pub limits: Limits,
    /// Largest number of sessions of the legacy era.
    pub sessions_max: usize,
    /// Longest time that a session may be idle.
    pub session_idle: Duration,
    /// Counts the answers that are kept for clients which have not read them.
    pub kept_bytes: KeptBytes,
    /// This replica, if the service has several.
    pub replica: Option<Replica>,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            sessions_max: 1_000,
            session_idle: Duration::from_mins(30),
            kept_bytes: KeptBytes::default(),
            replica: None,
        }
    }
}
