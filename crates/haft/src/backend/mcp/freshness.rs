//! When the lists of a server have to be read again.
//!
//! A server of the modern era says how long its lists may be kept (`ttlMs`). Others announce changes, or say nothing: their
//! lists are read again after a day. Lists of servers that start late come from an earlier run, so the age counts from
//! when they were read there.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::connection::Connection;
use super::health::Reason;
use crate::config::choices::ListChanged;

/// The age at which lists without a time limit of their own are read again.
pub const LIST_AGE_MAX: Duration = Duration::from_hours(24);
/// The time that a refresh may take beyond the time of its requests.
const REFRESH_WAIT_MARGIN: Duration = Duration::from_secs(5);

/// When the lists of a server were read.
#[derive(Default)]
pub(super) struct ReadAt(Mutex<Option<SystemTime>>);

impl ReadAt {
    pub(super) fn new(read_at: Option<SystemTime>) -> Self {
        Self(Mutex::new(read_at))
    }

    pub(super) fn set_now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(SystemTime::now());
    }

    /// The age of the lists. Lists from the future are older than any limit: the clock was set back since.
    fn age(&self) -> Option<Duration> {
        let read_at = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        Some(SystemTime::now().duration_since(read_at).unwrap_or(Duration::MAX))
    }
}

impl Connection {
    /// Whether there are lists that must not be used any longer without reading them again.
    pub fn has_stale_lists(&self) -> bool {
        let Some(lists) = self.lists() else { return false };
        // The operator wants the lists as they are.
        if self.config.list_changed.value == ListChanged::Ignore {
            return false;
        }
        let Some(age) = self.read_at.age() else { return false };
        match lists.ttl_ms {
            // The server promises nothing. One that announces changes need not be asked each time, and for one that is not
            // connected a process would be started for each look at its tools.
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
        let mut refreshes = self.refreshes.subscribe();
        let seen = *refreshes.borrow_and_update();
        let Some(client) = self.ready() else {
            // Connecting reads the lists.
            return self.client().await.map(drop);
        };
        self.stale.notify_one();
        let limit = self.config.request_timeout.value.saturating_add(REFRESH_WAIT_MARGIN);
        let waiting = async {
            // A server that fails meanwhile is reported by its supervisor.
            let _ = refreshes.wait_for(|refreshes| *refreshes > seen).await;
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            () = client.wait_ended() => {}
            _ = tokio::time::timeout(limit, waiting) => {}
        }
        Ok(())
    }
}
