//! The keys of one reading of the file: their secrets, holders and limits.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use haft::{AccessLists, CallerAccess};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::entry::{KeyEntry, PreviousSecret};
use super::key::{KeyDigest, Scope};

/// Separates the name of a key from its id. No name contains it.
pub(crate) const OWNER_MARK: &str = "#";
/// Begins the name of each caller with a key.
pub(super) const KEY_MARK: &str = "key:";

/// The keys of one reading of the file.
#[derive(Debug, Default)]
pub(super) struct HeldKeys {
    /// The secrets; a key that was rotated has two for a while.
    pub(super) secrets: Vec<Held>,
    /// The limits of each key, by its owner.
    pub(super) limits: HashMap<Arc<str>, KeyLimits>,
}

#[derive(Debug)]
pub(super) struct KeyLimits {
    pub(super) access: Arc<CallerAccess>,
    pub(super) expires: Option<Timestamp>,
}

/// A secret of a key, and what belongs to it for as long as it is in the file.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) digest: KeyDigest,
    pub(super) key: Arc<KeyEntry>,
    pub(super) holder: Arc<Holder>,
}

/// The holder of a key.
#[derive(Debug)]
pub struct Holder {
    /// The key's name after `key:`.
    pub name: Arc<str>,
    /// The name plus a part that distinguishes the key from every other, also from an earlier or later one of its
    /// name. Not a secret.
    pub owner: Arc<str>,
    /// Its permissions.
    pub scope: Scope,
    /// The profile it is bound to.
    pub profile: Option<Arc<str>>,
    /// When it was made.
    pub created: Timestamp,
    /// The tools and servers that it sees.
    pub lists: Arc<AccessLists>,
    /// From then on the secret is refused.
    pub expires: Option<Timestamp>,
    /// Cancelled when the key is revoked, expires or permits something else. Shared, because each clone of a token
    /// takes a lock.
    pub ended: Arc<CancellationToken>,
    pub(super) last_use: Arc<LastUse>,
}

/// When a key was last used, in microseconds after 1970, and the use that was written down last.
#[derive(Debug, Default)]
pub(super) struct LastUse {
    at: AtomicI64,
    pub(super) written: AtomicI64,
}

impl HeldKeys {
    /// The keys of a file. Streams and sessions of a key stay open if it still permits the same.
    pub(super) fn new(keys: Vec<KeyEntry>, before: &Self) -> Self {
        let mut held = Self::default();
        for key in keys {
            let key = Arc::new(key);
            let current = Held::new(&key, key.digest, key.expires, before);
            let access = Arc::new(key.access());
            let limits = KeyLimits { access, expires: key.expires };
            held.limits.insert(Arc::clone(&current.holder.owner), limits);
            held.secrets.push(current);
            if let Some(PreviousSecret { digest, until }) = key.previous {
                let until = key.expires.map_or(until, |expires| expires.min(until));
                held.secrets.push(Held::new(&key, digest, Some(until), before));
            }
        }
        held
    }
}

impl HeldKeys {
    /// Returns true if they are these keys.
    pub(super) fn is_of(&self, keys: &[KeyEntry]) -> bool {
        let current = self.secrets.iter().filter(|held| held.digest == held.key.digest);
        current.map(|held| &*held.key).eq(keys)
    }
}

impl Held {
    fn new(
        key: &Arc<KeyEntry>,
        digest: KeyDigest,
        expires: Option<Timestamp>,
        before: &HeldKeys,
    ) -> Self {
        let before = before.secrets.iter().find(|it| it.digest == digest);
        let before = before.filter(|it| it.key.permits_same(key) && !it.holder.is_expired());
        let name = [KEY_MARK, &key.name].concat();
        let holder = Arc::new(Holder {
            owner: [&name, OWNER_MARK, &key.id].concat().into(),
            name: name.into(),
            scope: key.scope,
            profile: key.profile.as_deref().map(Into::into),
            created: key.created,
            lists: Arc::new(key.lists.clone()),
            expires,
            ended: before.map(|it| Arc::clone(&it.holder.ended)).unwrap_or_default(),
            last_use: before.map(|it| Arc::clone(&it.holder.last_use)).unwrap_or_default(),
        });
        Self { digest, key: Arc::clone(key), holder }
    }
}

impl Holder {
    /// The holder, unless its time is over. Notes the use.
    pub(super) fn live(self: &Arc<Self>) -> Option<Arc<Self>> {
        if self.is_expired() {
            return None;
        }
        self.last_use.at.store(Timestamp::now().as_microsecond(), Ordering::Relaxed);
        Some(Arc::clone(self))
    }

    /// Returns true if the time of the secret is over.
    pub fn is_expired(&self) -> bool {
        is_over(self.expires)
    }
}

pub(super) fn is_over(expires: Option<Timestamp>) -> bool {
    expires.is_some_and(|expires| expires <= Timestamp::now())
}

impl LastUse {
    /// The last use, unless it is written down.
    pub(super) fn unwritten(&self) -> Option<i64> {
        let at = self.at.load(Ordering::Relaxed);
        (at != self.written.load(Ordering::Relaxed)).then_some(at)
    }
}
