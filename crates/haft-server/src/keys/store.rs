//! Storage of keys. A file by default; a database that several replicas share can replace it.

use std::fmt::Debug;
use std::io;
use std::time::Duration;

use haft::BoxFuture;
use jiff::Timestamp;
use tokio::task::spawn_blocking;

use super::entry::{KeyEntry, NewKey};
use super::error::KeyError;
use super::file::KeyFile;
use super::key::{Key, KeyDigest};
use super::used;

/// Stores the keys of a service. A change is durable when its future returns a key.
pub trait KeyStore: Debug + Send + Sync + 'static {
    /// Returns every key, in the order of their creation.
    fn list(&self) -> BoxFuture<'_, Result<Vec<StoredKey>, KeyError>>;

    /// Creates a key. Only the caller gets its secret.
    fn create(&self, new: NewKey) -> BoxFuture<'_, Result<(Key, KeyEntry), KeyError>>;

    /// Gives a key a new secret. The one before works for `overlap` more; one that an earlier rotation replaced ends
    /// now. `expires` counts from now; without it the expiry stays.
    fn rotate<'a>(
        &'a self,
        name: &'a str,
        overlap: Duration,
        expires: Option<Duration>,
    ) -> BoxFuture<'a, Result<(Key, KeyEntry), KeyError>>;

    /// Revokes a key.
    fn revoke<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<KeyEntry, KeyError>>;

    /// Notes the last use of keys, by their hash. The later time of each key stays. `keys` are those that exist.
    fn note_use(
        &self,
        uses: Vec<(KeyDigest, Timestamp)>,
        keys: Vec<KeyEntry>,
    ) -> BoxFuture<'_, Result<(), KeyError>>;

    /// The location of the keys, for people: a path, or the name of a database.
    fn location(&self) -> String;
}

/// A key and the time of its last use, at most a minute late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    /// The key.
    pub entry: KeyEntry,
    /// When it was last used.
    pub last_used: Option<Timestamp>,
}

impl KeyStore for KeyFile {
    fn list(&self) -> BoxFuture<'_, Result<Vec<StoredKey>, KeyError>> {
        Box::pin(on_thread(self, |file| {
            let keys = KeyFile::list(file)?;
            let used = file.last_used(&keys);
            let stored = |(entry, last_used)| StoredKey { entry, last_used };
            Ok(keys.into_iter().zip(used).map(stored).collect())
        }))
    }

    fn create(&self, new: NewKey) -> BoxFuture<'_, Result<(Key, KeyEntry), KeyError>> {
        Box::pin(on_thread(self, move |file| file.create_with(new)))
    }

    fn rotate<'a>(
        &'a self,
        name: &'a str,
        overlap: Duration,
        expires: Option<Duration>,
    ) -> BoxFuture<'a, Result<(Key, KeyEntry), KeyError>> {
        let name = name.to_owned();
        Box::pin(on_thread(self, move |file| KeyFile::rotate(file, &name, overlap, expires)))
    }

    fn revoke<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<KeyEntry, KeyError>> {
        let name = name.to_owned();
        Box::pin(on_thread(self, move |file| KeyFile::revoke(file, &name)))
    }

    fn note_use(
        &self,
        uses: Vec<(KeyDigest, Timestamp)>,
        keys: Vec<KeyEntry>,
    ) -> BoxFuture<'_, Result<(), KeyError>> {
        let uses = uses.into_iter().collect();
        Box::pin(on_thread(self, move |file| used::add(file, &uses, &keys)))
    }

    fn location(&self) -> String {
        self.path().display().to_string()
    }
}

/// Reads or changes the file on a thread that may wait for the disk and for other processes.
async fn on_thread<T: Send + 'static>(
    file: &KeyFile,
    work: impl FnOnce(&KeyFile) -> Result<T, KeyError> + Send + 'static,
) -> Result<T, KeyError> {
    let owned = file.clone();
    let done = spawn_blocking(move || work(&owned)).await;
    done.unwrap_or_else(|error| {
        let path = file.path().to_owned();
        Err(KeyError::Io { action: "use", path, source: io::Error::other(error) })
    })
}
