//! Applies a configuration in two steps: prepare it beside the current state, then publish it. The
//! caller makes the change durable between the two.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::local_setup;
use super::snapshot::Snapshot;
use super::start;
use super::{Inner, Runtime, ServerInfo, StartError};
use crate::config::Config;

/// A prepared state that is not published yet. Dropping it discards the change.
pub(crate) struct Change {
    inner: Arc<Inner>,
    old: Arc<Snapshot>,
    new: Option<Snapshot>,
    /// Serializes configuration changes.
    _one_at_a_time: OwnedMutexGuard<()>,
}

impl Runtime {
    /// Builds the state of a configuration beside the current one. Connects and starts nothing.
    pub(crate) async fn prepare(&self, mut config: Config) -> Result<Change, StartError> {
        let inner = Arc::clone(&self.inner);
        // Before the lock: packages may take minutes to install, and servers change meanwhile.
        local_setup::prepare(&mut config, &inner.parts).await;
        let one_at_a_time = Arc::clone(&inner.applying).lock_owned().await;
        let old = inner.snapshot.load_full();
        // Boxed because it is rare and large.
        let new = Box::pin(start::rebuild(config, &inner.parts, &old)).await?;
        // Violations of the old state do not block the new one.
        let is_new = |it: &&String| !old.violations.contains(it);
        let texts: Vec<String> = new.violations.iter().filter(is_new).cloned().collect();
        let change = Change { inner, old, new: Some(new), _one_at_a_time: one_at_a_time };
        if texts.is_empty() { Ok(change) } else { Err(StartError::Strict { texts }) }
    }

    /// The configuration in use.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(self.inner.snapshot.load().config())
    }

    /// Waits until a connecting server has answered or failed once, and registers its tools.
    /// Returns `None` for a server that is not configured.
    pub async fn settled(&self, server: &str) -> Option<ServerInfo> {
        self.inner.snapshot.load_full().server_pool.first_attempt(server).await;
        self.inner.refresh().await;
        self.servers().into_iter().find(|info| info.name == server)
    }
}

impl Change {
    /// The configuration of the new state.
    pub(crate) fn config(&self) -> &Arc<Config> {
        self.new.as_ref().map_or_else(|| self.old.config(), Snapshot::config)
    }

    /// Replaces the old state in one step, then connects new servers.
    pub(crate) async fn publish(mut self) {
        let Some(new) = self.new.take() else { return };
        start::log_new_records(&self.old, &new);
        start::remember(&new, &self.inner.parts, Some(&self.old.known)).await;
        new.server_pool.begin(&self.old.server_pool);
        self.inner.publish(new, Arc::clone(&self.old));
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        let Some(new) = self.new.take() else { return };
        let old = Arc::clone(&self.old);
        self.inner.background.spawn(async move { new.server_pool.retire(&old.server_pool).await });
    }
}
