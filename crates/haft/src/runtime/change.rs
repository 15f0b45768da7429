//! A change of the configuration in two steps: built beside the old state, then put in its place.
//! Between the two the caller makes it durable.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;

use super::snapshot::Snapshot;
use super::start;
use super::{Inner, Runtime, ServerInfo, StartError};
use crate::config::Config;

/// A changed toolbox that nobody uses yet. Dropped, it leaves nothing behind.
pub(crate) struct Change {
    inner: Arc<Inner>,
    old: Arc<Snapshot>,
    new: Option<Snapshot>,
    /// One configuration is applied at a time.
    _one_at_a_time: OwnedMutexGuard<()>,
}

impl Runtime {
    /// Builds what a configuration means beside the state in use. Connects and starts nothing.
    pub(crate) async fn prepare(&self, config: Config) -> Result<Change, StartError> {
        let inner = Arc::clone(&self.inner);
        let one_at_a_time = Arc::clone(&inner.applying).lock_owned().await;
        let old = inner.snapshot.load_full();
        // Rare, and large: the future of a prepared change need not carry it.
        let new = Box::pin(start::rebuild(config, &inner.parts, &old)).await?;
        // What the old state had to bear, the new one may have too.
        let is_new = |it: &&String| !old.violations.contains(it);
        let texts: Vec<String> = new.violations.iter().filter(is_new).cloned().collect();
        let change = Change { inner, old, new: Some(new), _one_at_a_time: one_at_a_time };
        if texts.is_empty() { Ok(change) } else { Err(StartError::Strict { texts }) }
    }

    /// The configuration in use.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(self.inner.snapshot.load().config())
    }

    /// Waits until a server that is being connected has answered or failed once, and takes over its
    /// tools. Nothing for a server that is not configured.
    pub async fn settled(&self, server: &str) -> Option<ServerInfo> {
        self.inner.snapshot.load_full().fleet.first_attempt(server).await;
        self.inner.refresh().await;
        self.servers().into_iter().find(|info| info.name == server)
    }
}

impl Change {
    /// Puts the new state in place of the old one in one step, then connects what is new.
    pub(crate) async fn publish(mut self) {
        let Some(new) = self.new.take() else { return };
        start::tell_news(&self.old, &new);
        start::remember(&new, &self.inner.parts, Some(&self.old.known)).await;
        new.fleet.begin(&self.old.fleet);
        self.inner.publish(new, Arc::clone(&self.old));
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        let Some(new) = self.new.take() else { return };
        let old = Arc::clone(&self.old);
        self.inner.background.spawn(async move { new.fleet.retire(&old.fleet).await });
    }
}
