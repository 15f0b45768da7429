//! The keys in the database that several replicas share.

use std::fmt;
use std::time::Duration;

use haft::BoxFuture;
use haft_postgres::{Database, DatabaseError, KeyInserted, KeyRow, NewKeyRow};
use jiff::Timestamp;

use super::entry::{KeyEntry, NewKey, RawKey};
use super::error::KeyError;
use super::file::KEYS_MAX;
use super::key::{Key, KeyDigest};
use super::store::{KeyStore, StoredKey};

/// Number of attempts at a rotation that another one overtakes.
const ROTATIONS_MAX: usize = 5;

/// The keys in a database.
#[derive(Clone)]
pub struct SharedKeys {
    database: Database,
}

impl fmt::Debug for SharedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKeys").finish_non_exhaustive()
    }
}

/// The keys of one reading.
pub(super) struct LoadedKeys {
    /// The counter of changes that they belong to.
    pub(super) seq: i64,
    pub(super) keys: Vec<StoredKey>,
    /// Reasons why some keys are left out: a newer Haft may have limits that this one would not enforce.
    pub(super) problem: Option<String>,
}

impl SharedKeys {
    /// The keys in this database.
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    pub(super) async fn load(&self) -> Result<LoadedKeys, KeyError> {
        let rows = self.database.keys().await.map_err(unavailable)?;
        let (mut keys, mut problem) = (Vec::with_capacity(rows.keys.len()), None);
        for row in rows.keys {
            match read(&row) {
                Ok(entry) => keys.push(StoredKey { entry, last_used: row.last_used }),
                Err(cause) => {
                    let name = row.name;
                    problem = Some(format!(
                        "the key `{name}` is refused, because it cannot be read: {cause}"
                    ));
                }
            }
        }
        Ok(LoadedKeys { seq: rows.seq, keys, problem })
    }

    async fn find(&self, name: &str) -> Result<KeyEntry, KeyError> {
        let keys = self.load().await?.keys;
        let found = keys.iter().find(|key| key.entry.name == name);
        let names = keys.iter().map(|key| key.entry.name.as_str());
        found.map(|key| key.entry.clone()).ok_or_else(|| KeyError::unknown(name, names))
    }

    /// Returns true if a key has this secret now.
    async fn has(&self, digest: KeyDigest) -> Result<bool, KeyError> {
        Ok(self.load().await?.keys.iter().any(|key| key.entry.digest == digest))
    }

    /// Stores a key that exists already, such as one of a file. Returns false if the database has it.
    pub(crate) async fn import(&self, entry: &KeyEntry) -> Result<bool, KeyError> {
        match self.insert(entry).await {
            Ok(()) => Ok(true),
            Err(KeyError::Taken { .. }) if self.has(entry.digest).await? => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn insert(&self, entry: &KeyEntry) -> Result<(), KeyError> {
        let (digest, text) = (entry.digest.hex(), text(entry)?);
        let row = row(entry, &digest, &text);
        let keys_max = i64::try_from(KEYS_MAX).unwrap_or(i64::MAX);
        match self.database.insert_key(&row, keys_max).await {
            Ok(KeyInserted::Inserted) => Ok(()),
            Ok(KeyInserted::Taken) => Err(KeyError::Taken { name: entry.name.clone() }),
            Ok(KeyInserted::TooMany) => Err(KeyError::TooMany),
            Err(error) => self.settle(error, entry.digest).await,
        }
    }

    /// Finds out whether a change took effect whose connection broke: its secret is there or not.
    async fn settle(&self, error: DatabaseError, digest: KeyDigest) -> Result<(), KeyError> {
        if !matches!(error, DatabaseError::Ambiguous { .. }) {
            return Err(unavailable(error));
        }
        match self.has(digest).await {
            Ok(true) => Ok(()),
            // The statement may still arrive.
            Ok(false) | Err(_) => Err(KeyError::OutcomeUnknown { cause: error.to_string() }),
        }
    }

    async fn rotate_key(
        &self,
        name: &str,
        overlap: Duration,
        expires: Option<Duration>,
    ) -> Result<(Key, KeyEntry), KeyError> {
        for _ in 0..ROTATIONS_MAX {
            let before = self.find(name).await?;
            let (key, entry) = before.rotated(overlap, expires)?;
            let (digest, text) = (entry.digest.hex(), text(&entry)?);
            let row = row(&entry, &digest, &text);
            match self.database.replace_key(&before.digest.hex(), &row).await {
                Ok(true) => return Ok((key, entry)),
                // Another rotation was faster.
                Ok(false) => {}
                Err(error) => {
                    self.settle(error, entry.digest).await?;
                    return Ok((key, entry));
                }
            }
        }
        let problem = format!("the key `{name}` is changed by others all the time");
        Err(KeyError::Unavailable { problem, remedy: "try again".to_owned() })
    }

    async fn revoke_key(&self, name: &str) -> Result<KeyEntry, KeyError> {
        let mut revoked = None;
        for _ in 0..ROTATIONS_MAX {
            let entry = match self.find(name).await {
                Ok(entry) => entry,
                // Deleted by a statement whose response was lost.
                Err(error @ KeyError::Unknown { .. }) => return revoked.ok_or(error),
                Err(error) => return Err(error),
            };
            match self.database.delete_key(name, &entry.digest.hex()).await {
                Ok(true) => return Ok(entry),
                // Rotated meanwhile.
                Ok(false) => {}
                Err(DatabaseError::Ambiguous { .. }) => revoked = Some(entry),
                Err(error) => return Err(unavailable(error)),
            }
        }
        let cause = format!("the key `{name}` is changed by others, or the connection breaks");
        Err(KeyError::OutcomeUnknown { cause })
    }
}

impl KeyStore for SharedKeys {
    fn list(&self) -> BoxFuture<'_, Result<Vec<StoredKey>, KeyError>> {
        Box::pin(async { Ok(self.load().await?.keys) })
    }

    fn create(&self, new: NewKey) -> BoxFuture<'_, Result<(Key, KeyEntry), KeyError>> {
        Box::pin(async {
            let (key, entry) = new.into_key()?;
            self.insert(&entry).await?;
            Ok((key, entry))
        })
    }

    fn rotate<'a>(
        &'a self,
        name: &'a str,
        overlap: Duration,
        expires: Option<Duration>,
    ) -> BoxFuture<'a, Result<(Key, KeyEntry), KeyError>> {
        Box::pin(self.rotate_key(name, overlap, expires))
    }

    fn revoke<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<KeyEntry, KeyError>> {
        Box::pin(self.revoke_key(name))
    }

    fn note_use(
        &self,
        uses: Vec<(KeyDigest, Timestamp)>,
        _: Vec<KeyEntry>,
    ) -> BoxFuture<'_, Result<(), KeyError>> {
        Box::pin(async move {
            let uses: Vec<(String, Timestamp)> =
                uses.into_iter().map(|(digest, at)| (digest.hex(), at)).collect();
            self.database.note_key_use(&uses).await.map_err(unavailable)
        })
    }

    fn location(&self) -> String {
        "the shared database".to_owned()
    }
}

fn read(row: &KeyRow) -> Result<KeyEntry, String> {
    let raw: RawKey = serde_json::from_str(&row.entry)
        .map_err(|error| haft_bounds::parse_error::describe(&error))?;
    raw.read()
}

fn text(entry: &KeyEntry) -> Result<String, KeyError> {
    serde_json::to_string(&RawKey::of(entry)).map_err(|error| KeyError::Unavailable {
        problem: format!("the key `{}` cannot be written: {error}", entry.name),
        remedy: "try again".to_owned(),
    })
}

fn row<'a>(entry: &'a KeyEntry, digest: &'a str, text: &'a str) -> NewKeyRow<'a> {
    NewKeyRow {
        name: &entry.name,
        digest,
        scope: entry.scope.word(),
        profile: entry.profile.as_deref(),
        created: entry.created,
        entry: text,
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
pub(super) fn unavailable(error: DatabaseError) -> KeyError {
    KeyError::Unavailable { problem: error.to_string(), remedy: error.remedy() }
}
