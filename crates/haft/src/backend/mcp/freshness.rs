//! The age of lists, after which they are read again.
//!
//! A server of the modern era limits the age itself (`ttlMs`). Others announce changes, or do neither: their lists are
//! read again after a day. Lists of servers that start at first use come from an earlier run, so their age counts from
//! the time of that run.

use std::time::Duration;

use super::connection::Connection;
use super::health::Reason;
use crate::config::choices::{ListChanged, Start};

/// The age at which lists without their own time limit are read again.
pub const LIST_AGE_MAX: Duration = Duration::from_hours(24);
/// The time that a refresh may take beyond the time of its requests.
const REFRESH_WAIT_MARGIN: Duration = Duration::from_secs(5);

impl Connection {
    /// True if there are lists, and they are too old to be used without reading them again.
    pub fn has_stale_lists(&self) -> bool {
        let Some(known) = self.known_lists() else { return false };
        // An eager server is being connected, which reads its lists.
        if known.is_cached() && self.config.start.value == Start::Eager {
            return false;
        }
        // The operator wants the lists as they are.
        if self.config.list_changed.value == ListChanged::Ignore {
            return false;
        }
        let age = known.age();
        match known.lists.ttl_ms {
            // The server guarantees nothing. One that announces changes need not be polled, and for
            // one that is not connected each access to its tools would start a process.
            Some(0) => match self.ready() {
                Some(client) => !client.identity().announces("tools") || age >= LIST_AGE_MAX,
                None => age >= LIST_AGE_MAX,
            },
            Some(ttl_ms) => age >= Duration::from_millis(ttl_ms),
            None => age >= LIST_AGE_MAX,
        }
    }

    /// Reads lists that are too old again, and waits for that; a server that is not connected is connected for it. If that
    /// fails, the old lists stay in use.
    pub async fn refresh_stale_lists(&self) -> Result<(), Reason> {
        if !self.has_stale_lists() {
            return Ok(());
        }
        let mut published = self.published.clone();
        let seen = published.borrow_and_update().status.list_reads;
        let Some(client) = self.ready() else {
            // Connecting reads the lists.
            return self.connect().await;
        };
        self.events.commands.lists_changed();
        let limit = self.config.request_timeout.value.saturating_add(REFRESH_WAIT_MARGIN);
        let waiting = async {
            // The supervisor reports a server that fails meanwhile.
            let _ = published.wait_for(|published| published.status.list_reads > seen).await;
        };
        tokio::select! {
            biased;
            () = self.stop_token().cancelled() => {}
            () = client.wait_ended() => {}
            _ = tokio::time::timeout(limit, waiting) => {}
        }
        Ok(())
    }
}
