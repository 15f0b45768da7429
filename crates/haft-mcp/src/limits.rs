//! Limits on a server's messages before it is cut off.

use std::time::Duration;

use haft_bounds::json::{Budget, NODES_MAX};

/// The limits of one connection. Every one of them ends in an error that names it.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// One message: a line of stdio, a body, an event, a frame.
    pub message_bytes_max: usize,
    /// Deepest nesting of a message.
    pub depth_max: usize,
    /// Values and keys of one message.
    pub nodes_max: usize,
    /// Output that is not a message (prints, colours), since the last message.
    pub noise_bytes_max: u64,
    /// Unsolicited messages (notifications, requests, strange answers) within `RATE_SPAN`.
    pub unasked_max: u32,
    /// Requests of the server that may be in flight at once.
    pub server_requests_max: usize,
    /// Pages of one list.
    pub pages_max: usize,
    /// Items of one list.
    pub items_max: usize,
}

/// The span over which unasked messages are counted.
pub const RATE_SPAN: Duration = Duration::from_secs(10);

impl Limits {
    /// The budget of one message.
    pub fn budget(&self) -> Budget {
        Budget { nodes_max: self.nodes_max, depth_max: self.depth_max }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 8 * 1024 * 1024,
            depth_max: 64,
            nodes_max: NODES_MAX,
            noise_bytes_max: 16 * 1024 * 1024,
            unasked_max: 50_000,
            server_requests_max: 64,
            pages_max: 100,
            items_max: 1_000,
        }
    }
}
