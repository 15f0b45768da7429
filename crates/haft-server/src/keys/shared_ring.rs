//! The keys of a running server whose storage is a database.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::entry::KeyEntry;
use super::error::KeyError;
use super::freshness::{KeySource, SharedSource};
use super::ring::{Found, Keyring};
use super::shared::SharedKeys;
use super::store::StoredKey;

/// The longest interval between looks at the counter of changes.
const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Keyring {
    /// Reads the keys in a database. Requests always need one, also while there is none. Keys that were not confirmed for
    /// `stale_max` are not accepted. The keys change only while [`follow`](Self::follow) runs.
    pub async fn open_shared(store: SharedKeys, stale_max: Duration) -> Result<Self, KeyError> {
        let (source, keys) = SharedSource::open(store, stale_max).await?;
        let keys = keys.into_iter().map(|key| key.entry).collect();
        Ok(Self::new(KeySource::Shared(source), keys, Found::Nothing, true))
    }

    /// Returns true if the keys are in a database that replicas share. Requests need a key then, also while there is none.
    pub fn is_shared(&self) -> bool {
        matches!(self.source, KeySource::Shared(_))
    }

    /// Makes sure that the keys of a database are current enough to decide by. Returns their age if they are not.
    pub(crate) async fn ensure_current(&self) -> Result<(), Duration> {
        let KeySource::Shared(shared) = &self.source else { return Ok(()) };
        if shared.must_wait() {
            shared.wait(&|keys| self.replace(keys)).await;
        }
        shared.stale_for().map_or(Ok(()), Err)
    }

    /// Reads the keys of a database now.
    pub(crate) async fn refresh_shared(&self) -> Result<(), KeyError> {
        let KeySource::Shared(shared) = &self.source else { return Ok(()) };
        shared.refresh(&|keys| self.replace(keys)).await
    }

    /// Returns the age of the keys of a database if they are too old to be accepted.
    pub(crate) fn stale_for(&self) -> Option<Duration> {
        match &self.source {
            KeySource::File(_) => None,
            KeySource::Shared(shared) => shared.stale_for(),
        }
    }

    /// Publishes keys that were read, if they differ.
    fn replace(&self, keys: Vec<StoredKey>) {
        let keys: Vec<KeyEntry> = keys.into_iter().map(|key| key.entry).collect();
        if !self.keys.load().is_of(&keys) {
            self.publish(keys);
        }
    }

    /// Reads the keys of a database again whenever its counter changes, until `stop`.
    pub(super) async fn follow_shared(&self, shared: &SharedSource, stop: CancellationToken) {
        let mut topics = shared.store.database().topics();
        let mut is_failing = false;
        loop {
            let changed = timeout(LOOK_EVERY, topics.changed());
            if stop.run_until_cancelled(changed).await.is_none() {
                return;
            }
            topics.mark_unchanged();
            match shared.follow(&|keys| self.replace(keys)).await {
                Ok(()) => is_failing = false,
                Err(error) if !is_failing => {
                    tracing::warn!("the keys are as they were before: {error}; {}", error.remedy());
                    is_failing = true;
                }
                Err(_) => {}
            }
            self.end_expired();
        }
    }
}
