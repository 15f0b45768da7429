//! The keys of a running server: verified without a lock, read again when the file changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use haft::{CallerDirectory, CallerStatus};
use jiff::Timestamp;
use parking_lot::Mutex;
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::entry::KeyEntry;
use super::error::KeyError;
use super::file::KeyFile;
use super::freshness::KeySource;
use super::held::{Held, HeldKeys, Holder, KEY_MARK, is_over};
use super::key::KeyDigest;
use super::store::KeyStore;
use super::used::Notes;

/// Largest age of the server's copy of the file when a request comes.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Interval between writes of the last use of keys.
const NOTE_EVERY: Duration = Duration::from_mins(1);

/// The keys as they are now.
#[derive(Debug)]
pub struct Keyring {
    pub(super) source: KeySource,
    pub(super) keys: ArcSwap<HeldKeys>,
    /// Cancelled as soon as requests need a key.
    open: Arc<CancellationToken>,
    /// True if there has been a key since the start. Never reset: deleting the file or revoking the last key must not
    /// open a server that was closed.
    is_closed: AtomicBool,
    looked: Mutex<Looked>,
    /// Counts how often the keys were replaced.
    replaced: AtomicU64,
}

/// The key that a connection has presented, so that its next requests need no hash. Holds for as long as the keys
/// are the same.
#[derive(Debug, Default)]
pub(crate) struct PresentedKey(Mutex<Option<Verified>>);

#[derive(Debug)]
struct Verified {
    text: Box<str>,
    replaced: u64,
    holder: Arc<Holder>,
}

/// The last read of the file.
#[derive(Debug)]
struct Looked {
    at: Instant,
    content: Found,
    /// Why what was found is not what holds.
    last_error: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Bytes(Vec<u8>),
    Unreadable(String),
}

impl Keyring {
    /// Reads the keys. An unreadable file ends the start: continuing without keys would open the server.
    pub fn open(file: KeyFile) -> Result<Self, KeyError> {
        let (content, keys) = match file.read()? {
            Some(bytes) => {
                let keys = file.parse(&bytes)?;
                (Found::Bytes(bytes), keys)
            }
            None => (Found::Nothing, Vec::new()),
        };
        let is_closed = !keys.is_empty();
        Ok(Self::new(KeySource::File(file), keys, content, is_closed))
    }

    pub(super) fn new(
        source: KeySource,
        keys: Vec<KeyEntry>,
        content: Found,
        is_closed: bool,
    ) -> Self {
        Self {
            source,
            is_closed: AtomicBool::new(is_closed),
            keys: ArcSwap::from_pointee(HeldKeys::new(keys, &HeldKeys::default())),
            open: Arc::default(),
            looked: Mutex::new(Looked { at: Instant::now(), content, last_error: None }),
            replaced: AtomicU64::new(0),
        }
    }

    /// The storage of the keys.
    pub fn store(&self) -> &dyn KeyStore {
        self.source.store()
    }

    /// Returns true if requests need a key: there is one, or there was one since the start.
    pub fn is_closed(&self) -> bool {
        self.refresh();
        self.is_closed.load(Ordering::Acquire)
    }

    /// Returns true if there is any key right now.
    pub fn is_empty(&self) -> bool {
        self.refresh();
        self.keys.load().secrets.is_empty()
    }

    /// The error of the last read, while the previous keys stay in use.
    pub fn last_error(&self) -> Option<String> {
        self.refresh();
        match &self.source {
            KeySource::File(_) => self.looked.lock().last_error.clone(),
            KeySource::Shared(shared) => shared.problem(),
        }
    }

    /// Returns the holder of a key. Takes as long for a wrong key as for a right one.
    ///
    /// An unknown key may be a new one, so the file is read again for it.
    pub fn verify(&self, presented: &str) -> Option<Arc<Holder>> {
        self.verify_known(presented).or_else(|| self.verify_new(presented))
    }

    /// Returns the holder of a key that was in the file when it was last read.
    pub(crate) fn verify_known(&self, presented: &str) -> Option<Arc<Holder>> {
        self.refresh();
        self.find(KeyDigest::of_presented(presented)?)
    }

    /// As [`verify_known`](Self::verify_known), for a connection that may have presented the same key before. Does not
    /// look at the file; [`is_closed`](Self::is_closed) has.
    pub(crate) fn verify_on(&self, last: &PresentedKey, presented: &str) -> Option<Arc<Holder>> {
        let mut last = last.0.lock();
        // Read before the keys are: a replacement in between is noticed by the next request.
        let replaced = self.replaced.load(Ordering::Acquire);
        if let Some(verified) = &*last
            && verified.replaced == replaced
            && bool::from(verified.text.as_bytes().ct_eq(presented.as_bytes()))
        {
            return verified.holder.live();
        }
        let holder = self.find(KeyDigest::of_presented(presented)?)?;
        *last = Some(Verified { text: presented.into(), replaced, holder: Arc::clone(&holder) });
        Some(holder)
    }

    /// Reads the file now and returns the holder of a key. Each call costs a read, so callers limit how often
    /// a client can cause one.
    pub(crate) fn verify_new(&self, presented: &str) -> Option<Arc<Holder>> {
        let digest = KeyDigest::of_presented(presented)?;
        self.look_if_older_than(Duration::ZERO);
        self.find(digest)
    }

    fn find(&self, digest: KeyDigest) -> Option<Arc<Holder>> {
        let keys = self.keys.load();
        let mut found = u32::MAX;
        for (place, held) in (0_u32..).zip(keys.secrets.iter()) {
            let is_it: Choice = held.digest.0.ct_eq(&digest.0);
            found.conditional_assign(&place, is_it);
        }
        keys.secrets.get(usize::try_from(found).ok()?)?.holder.live()
    }

    /// Returns the holder of a secret that is refused because its time is over, for the reason of the refusal.
    pub(crate) fn expired(&self, presented: &str) -> Option<Arc<Holder>> {
        let digest = KeyDigest::of_presented(presented)?;
        let keys = self.keys.load();
        let held = keys.secrets.iter().find(|held| bool::from(held.digest.0.ct_eq(&digest.0)))?;
        held.holder.is_expired().then(|| Arc::clone(&held.holder))
    }

    /// Ends what secrets hold open whose time is over.
    pub(super) fn end_expired(&self) {
        for held in self.keys.load().secrets.iter().filter(|held| held.holder.is_expired()) {
            if !held.holder.ended.is_cancelled() {
                tracing::info!(key = &*held.holder.name, "a key expired");
                held.holder.ended.cancel();
            }
        }
    }

    /// Cancelled as soon as requests need a key: streams that were opened without one end then.
    pub fn while_open(&self) -> Arc<CancellationToken> {
        Arc::clone(&self.open)
    }

    /// Looks at the file now and then until `stop`, so that what a key holds open ends with it, also where no
    /// request comes.
    pub async fn follow(self: Arc<Self>, stop: CancellationToken) {
        if let KeySource::Shared(shared) = &self.source {
            return self.follow_shared(shared, stop).await;
        }
        let mut due = interval(LOOK_EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(due.tick()).await.is_some() {
            let ring = Arc::clone(&self);
            // A look that panics is as good as none.
            let _ = tokio::task::spawn_blocking(move || ring.refresh()).await;
            self.end_expired();
        }
    }

    /// Writes the last use of keys about once a minute, until `stop`, and a last time then.
    pub async fn note_use(self: Arc<Self>, stop: CancellationToken) {
        let mut due = interval(NOTE_EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_last = tokio::select! {
                () = stop.cancelled() => true,
                _ = due.tick() => false,
            };
            if let Err(error) = self.write_use().await {
                tracing::warn!("the last use of keys is not written down: {error}");
            }
            if is_last {
                return;
            }
        }
    }

    async fn write_use(&self) -> Result<(), KeyError> {
        let held = self.keys.load_full();
        let held = &held.secrets;
        let uses = held.iter().filter_map(|held| Some((held, held.holder.last_use.unwritten()?)));
        let uses: Vec<(&Held, i64)> = uses.collect();
        let mut notes = Notes::default();
        for (held, at) in &uses {
            // The use of a secret before the last rotation is one of its key.
            let Ok(at) = Timestamp::from_microsecond(*at) else { continue };
            let latest = notes.entry(held.key.digest).or_insert(at);
            *latest = (*latest).max(at);
        }
        if notes.is_empty() {
            return Ok(());
        }
        let keys: Vec<KeyEntry> = held.iter().map(|held| KeyEntry::clone(&held.key)).collect();
        // After a failure the next attempt has them too.
        self.store().note_use(notes.into_iter().collect(), keys).await?;
        for (held, at) in uses {
            held.holder.last_use.written.store(at, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Reads the file again if the last read is too old. The content is compared, not its time stamp, which two
    /// writes may share; the file is small. One request reads, the others continue meanwhile.
    fn refresh(&self) {
        self.look_if_older_than(LOOK_EVERY);
    }

    fn look_if_older_than(&self, age: Duration) {
        let KeySource::File(file) = &self.source else { return };
        let Some(mut looked) = self.looked.try_lock() else { return };
        if looked.at.elapsed() < age {
            return;
        }
        let (content, keys) = match file.read() {
            Ok(None) => (Found::Nothing, Ok(Vec::new())),
            Ok(Some(bytes)) => {
                let keys = file.parse(&bytes);
                (Found::Bytes(bytes), keys)
            }
            Err(error) => (Found::Unreadable(chain(&error)), Err(error)),
        };
        looked.at = Instant::now();
        if looked.content == content {
            return;
        }
        looked.content = content;
        looked.last_error = keys.as_ref().err().map(chain);
        match keys {
            Ok(keys) => self.publish(keys),
            Err(error) => {
                // Keys exist, but they are unknown: requests without one are refused.
                self.close();
                tracing::error!(
                    "the keys are as they were before: {}; {}",
                    chain(&error),
                    error.remedy()
                );
            }
        }
    }

    pub(super) fn publish(&self, keys: Vec<KeyEntry>) {
        if keys.is_empty() && self.is_closed.load(Ordering::Acquire) {
            let until = if self.is_shared() { "" } else { ", or the server restarts" };
            tracing::warn!(
                "there is no key any more: every request is refused until there is one{until}"
            );
        }
        let is_closing = !keys.is_empty();
        tracing::info!(keys = keys.len(), "read the keys again");
        let before = self.keys.load_full();
        let held = Arc::new(HeldKeys::new(keys, &before));
        self.keys.store(Arc::clone(&held));
        // After the keys: a connection that reads the new number finds the new keys.
        self.replaced.fetch_add(1, Ordering::Release);
        // Stored first: a client that sees its stream end can use the new key at once. A request that is let in
        // without a key between the two ends with the token that closing cancels.
        if is_closing {
            self.close();
        }
        let goes_on = |old: &&Held| {
            held.secrets.iter().any(|held| Arc::ptr_eq(&held.holder.ended, &old.holder.ended))
        };
        for old in before.secrets.iter().filter(|old| !goes_on(old)) {
            old.holder.ended.cancel();
        }
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.open.cancel();
    }
}

impl CallerDirectory for Keyring {
    fn status(&self, owner: &str) -> CallerStatus {
        // Callers without a key, and those of an embedding program.
        if !owner.starts_with(KEY_MARK) {
            return CallerStatus::Unlimited;
        }
        match self.keys.load().limits.get(owner) {
            Some(limits) if !is_over(limits.expires) => {
                CallerStatus::Limited(Arc::clone(&limits.access))
            }
            Some(_) | None => CallerStatus::Ended,
        }
    }
}

/// An error with its cause.
pub(crate) fn chain(error: &KeyError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
