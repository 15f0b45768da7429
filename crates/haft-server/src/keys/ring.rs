//! The keys of a running server: verified without a lock, read again when the file changes.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::file::{KeyEntry, KeyError, KeyFile};
use super::key::{KeyDigest, Scope};
use super::used::{self, Notes};

/// How old the server's knowledge of the file may be when a request comes.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often the last use of keys is written down.
const NOTE_EVERY: Duration = Duration::from_mins(1);

/// The keys as they are now.
#[derive(Debug)]
pub struct Keyring {
    file: KeyFile,
    keys: ArcSwap<Vec<Held>>,
    /// Cancelled as soon as requests need a key.
    open: Arc<CancellationToken>,
    /// Whether there has been a key since the start. Never taken back: deleting the file or revoking the
    /// last key must not open a server that was closed.
    is_closed: AtomicBool,
    looked: Mutex<Looked>,
    used: Mutex<Notes>,
}

/// A key, and what ends with it.
#[derive(Debug)]
struct Held {
    key: KeyEntry,
    id: Arc<str>,
    ended: Arc<CancellationToken>,
}

/// What was found in the file.
#[derive(Debug)]
struct Looked {
    at: Instant,
    content: Found,
    /// Why what was found is not what holds.
    trouble: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Bytes(Vec<u8>),
    Trouble(String),
}

/// Who a key belongs to.
#[derive(Debug, Clone)]
pub struct Holder {
    /// The key's name.
    pub name: String,
    /// What tells it from every other key, also from one that had or will have its name. No secret.
    pub id: Arc<str>,
    /// What it permits.
    pub scope: Scope,
    /// The profile it is bound to.
    pub profile: Option<String>,
    /// When it was made.
    pub created: Timestamp,
    /// Cancelled when the key is revoked or permits something else. Shared, because each clone of a token
    /// takes a lock.
    pub ended: Arc<CancellationToken>,
}

impl Keyring {
    /// Reads the keys. A file that cannot be read ends the start: going on without keys would open what
    /// they close.
    pub fn open(file: KeyFile) -> Result<Self, KeyError> {
        let (content, keys) = match file.read()? {
            Some(bytes) => {
                let keys = file.parse(&bytes)?;
                (Found::Bytes(bytes), keys)
            }
            None => (Found::Nothing, Vec::new()),
        };
        Ok(Self {
            file,
            is_closed: AtomicBool::new(!keys.is_empty()),
            keys: ArcSwap::from_pointee(keys.into_iter().map(Held::new).collect()),
            open: Arc::default(),
            looked: Mutex::new(Looked { at: Instant::now(), content, trouble: None }),
            used: Mutex::default(),
        })
    }

    /// Whether requests need a key: there is one, or there was one since the start.
    pub fn is_closed(&self) -> bool {
        self.refresh();
        self.is_closed.load(Ordering::Acquire)
    }

    /// Whether there is any key right now.
    pub fn is_empty(&self) -> bool {
        self.refresh();
        self.keys.load().is_empty()
    }

    /// What is wrong with the file, where the keys are those from before.
    pub fn trouble(&self) -> Option<String> {
        self.refresh();
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).trouble.clone()
    }

    /// Returns the holder of a key. Takes as long for a wrong key as for a right one.
    ///
    /// An unknown key may be a new one, so the file is read again for it.
    pub fn verify(&self, presented: &str) -> Option<Holder> {
        self.verify_known(presented).or_else(|| self.verify_new(presented))
    }

    /// Returns the holder of a key that was in the file when it was last read.
    pub(crate) fn verify_known(&self, presented: &str) -> Option<Holder> {
        self.refresh();
        self.find(KeyDigest::of_presented(presented)?)
    }

    /// Reads the file now and returns the holder of a key. Each call costs a read, so callers limit how often
    /// a client can cause one.
    pub(crate) fn verify_new(&self, presented: &str) -> Option<Holder> {
        let digest = KeyDigest::of_presented(presented)?;
        self.look_if_older_than(Duration::ZERO);
        self.find(digest)
    }

    fn find(&self, digest: KeyDigest) -> Option<Holder> {
        let keys = self.keys.load();
        let mut found = u32::MAX;
        for (place, held) in (0_u32..).zip(keys.iter()) {
            let is_it: Choice = held.key.digest.0.ct_eq(&digest.0);
            found.conditional_assign(&place, is_it);
        }
        let Held { key, id, ended } = keys.get(usize::try_from(found).ok()?)?;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(digest, Timestamp::now());
        Some(Holder {
            name: key.name.clone(),
            id: Arc::clone(id),
            scope: key.scope,
            profile: key.profile.clone(),
            created: key.created,
            ended: Arc::clone(ended),
        })
    }

    /// Cancelled as soon as requests need a key: whoever came without one has had its time.
    pub fn while_open(&self) -> Arc<CancellationToken> {
        Arc::clone(&self.open)
    }

    /// Looks at the file now and then until `stop`, so that what a key holds open ends with it, also where no
    /// request comes.
    pub async fn follow(self: Arc<Self>, stop: CancellationToken) {
        let mut due = interval(LOOK_EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(due.tick()).await.is_some() {
            let ring = Arc::clone(&self);
            // A look that panics is as good as none.
            let _ = tokio::task::spawn_blocking(move || ring.refresh()).await;
        }
    }

    /// Writes down when keys were used, about once a minute, until `stop`, and then once more.
    pub async fn note_use(self: Arc<Self>, stop: CancellationToken) {
        let mut due = interval(NOTE_EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_last = tokio::select! {
                () = stop.cancelled() => true,
                _ = due.tick() => false,
            };
            let ring = Arc::clone(&self);
            // Writing waits for the disk and for `haft keys`, which no other request should.
            let written = tokio::task::spawn_blocking(move || ring.write_use()).await;
            if let Ok(Err(error)) = written {
                tracing::warn!("the last use of keys is not written down: {error}");
            }
            if is_last {
                return;
            }
        }
    }

    fn write_use(&self) -> Result<(), KeyError> {
        let news = mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner));
        if news.is_empty() {
            return Ok(());
        }
        let keys: Vec<KeyEntry> = self.keys.load().iter().map(|held| held.key.clone()).collect();
        used::add(&self.file, &news, &keys).inspect_err(|_| {
            // The next attempt has them too; what was noted meanwhile is later.
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            for (digest, time) in &news {
                used.entry(*digest).or_insert(*time);
            }
        })
    }

    /// Looks at the file where the last look is too old. The content is compared, not its time stamp,
    /// which two writes may share; the file is small. One request reads, the others go on meanwhile.
    fn refresh(&self) {
        self.look_if_older_than(LOOK_EVERY);
    }

    fn look_if_older_than(&self, age: Duration) {
        let mut looked = match self.looked.try_lock() {
            Ok(looked) => looked,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if looked.at.elapsed() < age {
            return;
        }
        let (content, keys) = match self.file.read() {
            Ok(None) => (Found::Nothing, Ok(Vec::new())),
            Ok(Some(bytes)) => {
                let keys = self.file.parse(&bytes);
                (Found::Bytes(bytes), keys)
            }
            Err(error) => (Found::Trouble(chain(&error)), Err(error)),
        };
        looked.at = Instant::now();
        if looked.content == content {
            return;
        }
        looked.content = content;
        looked.trouble = keys.as_ref().err().map(chain);
        match keys {
            Ok(keys) => self.publish(keys),
            Err(error) => {
                // Somebody made keys, and which they are is not known: nobody is let in without one.
                self.close();
                tracing::error!(
                    "the keys are as they were before: {}; {}",
                    chain(&error),
                    error.remedy()
                );
            }
        }
    }

    fn publish(&self, keys: Vec<KeyEntry>) {
        if keys.is_empty() && self.is_closed.load(Ordering::Acquire) {
            tracing::warn!(
                "there is no key any more: every request is refused until there is one, or the \
                 server starts anew"
            );
        }
        let is_closing = !keys.is_empty();
        tracing::info!(keys = keys.len(), "read the keys again");
        let before = self.keys.load_full();
        let held = keys.into_iter().map(|key| match before.iter().find(|held| held.key == key) {
            Some(Held { key, id, ended }) => {
                Held { key: key.clone(), id: Arc::clone(id), ended: Arc::clone(ended) }
            }
            None => Held::new(key),
        });
        let held = Arc::new(held.collect::<Vec<Held>>());
        self.keys.store(Arc::clone(&held));
        // Stored first: a client that sees its stream end can use the new key at once. A request that is let in
        // without a key between the two ends with the token that closing cancels.
        if is_closing {
            self.close();
        }
        for old in before.iter().filter(|old| !held.iter().any(|held| held.key == old.key)) {
            old.ended.cancel();
        }
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.open.cancel();
    }
}

impl Held {
    fn new(key: KeyEntry) -> Self {
        let id = key.digest.short().into();
        Self { key, id, ended: Arc::default() }
    }
}

/// An error with its cause.
pub(crate) fn chain(error: &KeyError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
