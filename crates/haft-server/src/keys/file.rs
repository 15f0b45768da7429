//! The file of the keys: read as a whole, written as a whole, by one process at a time.

use haft_bounds::parse_error::describe;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::entry::{KeyEntry, NewKey, RawKey};
use super::error::KeyError;
use super::key::{Key, Scope};
use super::used;

/// Largest number of keys.
pub const KEYS_MAX: usize = 1000;
/// Largest size of the file: a thousand keys with short lists take a quarter of it.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
const VERSION: u32 = 1;

/// Where the keys lie. Beside the file lie its lock and the notes of last use.
#[derive(Debug, Clone)]
pub struct KeyFile {
    path: PathBuf,
}

impl KeyFile {
    /// The keys in this file, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a key without limits. Only the caller gets its secret.
    pub fn create(&self, name: &str, scope: Scope) -> Result<(Key, KeyEntry), KeyError> {
        self.create_with(NewKey::new(name, scope))
    }

    /// Makes a call key that is bound to a profile of the gateway.
    pub fn create_for_profile(
        &self,
        name: &str,
        profile: &str,
    ) -> Result<(Key, KeyEntry), KeyError> {
        let profile = Some(profile.to_owned());
        self.create_with(NewKey { profile, ..NewKey::new(name, Scope::Call) })
    }

    /// Creates a key with limits. Only the caller gets its secret.
    pub fn create_with(&self, new: NewKey) -> Result<(Key, KeyEntry), KeyError> {
        let (key, entry) = new.into_key()?;
        let _lock = self.lock()?;
        let mut keys = self.list()?;
        if keys.iter().any(|key| key.name == entry.name) {
            return Err(KeyError::Taken { name: entry.name });
        }
        if keys.len() >= KEYS_MAX {
            return Err(KeyError::TooMany);
        }
        keys.push(entry.clone());
        self.write(&keys)?;
        Ok((key, entry))
    }

    /// Gives a key a new secret. The one before works for `overlap` more; one that an earlier rotation replaced ends
    /// now. `expires` counts from now; without it the expiry stays.
    pub fn rotate(
        &self,
        name: &str,
        overlap: Duration,
        expires: Option<Duration>,
    ) -> Result<(Key, KeyEntry), KeyError> {
        let _lock = self.lock()?;
        let mut keys = self.list()?;
        let place = position(&keys, name)?;
        let (key, rotated) = keys[place].rotated(overlap, expires)?;
        keys[place] = rotated.clone();
        self.write(&keys)?;
        Ok((key, rotated))
    }

    /// Takes a key away.
    pub fn revoke(&self, name: &str) -> Result<KeyEntry, KeyError> {
        let _lock = self.lock()?;
        let mut keys = self.list()?;
        let place = position(&keys, name)?;
        let revoked = keys.remove(place);
        self.write(&keys)?;
        Ok(revoked)
    }

    /// Every key, in the order they were made. None where there is no file.
    pub fn list(&self) -> Result<Vec<KeyEntry>, KeyError> {
        self.read()?.map_or_else(|| Ok(Vec::new()), |bytes| self.parse(&bytes))
    }

    /// When each of these keys was last used, as far as a server has written it down. Notes that cannot
    /// be read are as good as none.
    pub fn last_used(&self, keys: &[KeyEntry]) -> Vec<Option<Timestamp>> {
        let notes = used::read(&self.used_path());
        keys.iter().map(|key| notes.get(&key.digest).copied()).collect()
    }

    /// The file's content; `None` where there is no file.
    pub(super) fn read(&self) -> Result<Option<Vec<u8>>, KeyError> {
        let opened = fs::metadata(&self.path).and_then(|it| {
            // Opening a pipe would wait for its writer, which may not exist.
            if it.is_file() {
                File::open(&self.path)
            } else {
                Err(io::Error::other("it is not a file"))
            }
        });
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed("open", error)),
        };
        let mode = file.metadata().map_err(|error| self.failed("look at", error))?.permissions();
        if mode.mode() & 0o022 != 0 {
            return Err(KeyError::Exposed { path: self.path.clone() });
        }
        let mut bytes = Vec::new();
        let mut limited = file.take(FILE_BYTES_MAX + 1);
        limited.read_to_end(&mut bytes).map_err(|error| self.failed("read", error))?;
        Ok(Some(bytes))
    }

    pub(super) fn parse(&self, bytes: &[u8]) -> Result<Vec<KeyEntry>, KeyError> {
        parse(bytes).map_err(|problem| KeyError::Invalid { path: self.path.clone(), problem })
    }

    /// Where servers note when each key was last used. A file of its own: it changes all the time, and
    /// who writes it must never undo what `haft keys` wrote.
    pub(super) fn used_path(&self) -> PathBuf {
        self.path.with_extension("used.json")
    }

    /// Keeps other processes from writing until the file is dropped.
    pub(super) fn lock(&self) -> Result<File, KeyError> {
        if let Some(folder) = folder(&self.path) {
            let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder);
            made.map_err(|error| self.failed("make the folder of", error))?;
        }
        let path = self.path.with_extension("lock");
        let failed = |source| KeyError::Io { action: "lock", path: path.clone(), source };
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(FILE_MODE).open(&path);
        let file = file.map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }

    fn write(&self, keys: &[KeyEntry]) -> Result<(), KeyError> {
        let raw = RawFile { version: VERSION, keys: keys.iter().map(RawKey::of).collect() };
        let mut text = serde_json::to_vec_pretty(&raw)
            .map_err(|error| self.failed("write", io::Error::other(error)))?;
        text.push(b'\n');
        if text.len() as u64 > FILE_BYTES_MAX {
            let error = format!("it would be larger than {FILE_BYTES_MAX} bytes");
            return Err(self.failed("write", io::Error::other(error)));
        }
        replace(&self.path, &text).map_err(|error| self.failed("write", error))
    }

    fn failed(&self, action: &'static str, source: io::Error) -> KeyError {
        KeyError::Io { action, path: self.path.clone(), source }
    }
}

/// Replaces a file so that a reader finds the old one or the new one, also after a power cut. The caller holds the
/// lock, so the name of the draft is unique.
pub(super) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("tmp");
    let mut options = OpenOptions::new();
    // A leftover file may have any owner; ours is new.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = options.write(true).create_new(true).mode(FILE_MODE).open(&draft)?;
    let written =
        file.write_all(text).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&draft, path));
    if let Err(error) = written {
        // The next writer removes it where this fails.
        let _ = fs::remove_file(&draft);
        return Err(error);
    }
    File::open(folder(path).unwrap_or(Path::new(".")))?.sync_all()
}

fn folder(path: &Path) -> Option<&Path> {
    path.parent().filter(|folder| !folder.as_os_str().is_empty())
}

/// The raw file. Unknown fields are refused: they may restrict a key.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    version: u32,
    keys: Vec<RawKey>,
}

fn parse(bytes: &[u8]) -> Result<Vec<KeyEntry>, String> {
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes"));
    }
    let RawFile { version, keys } =
        serde_json::from_slice(bytes).map_err(|error| describe(&error))?;
    if version != VERSION {
        return Err(format!("its version is {version}, and this Haft knows {VERSION}"));
    }
    if keys.len() > KEYS_MAX {
        return Err(format!("it has more than {KEYS_MAX} keys"));
    }
    let mut found: Vec<KeyEntry> = Vec::with_capacity(keys.len());
    for raw in keys {
        let key = raw.read()?;
        let is_same = |other: &KeyEntry| {
            other.name == key.name || other.id == key.id || other.digest == key.digest
        };
        if found.iter().any(is_same) {
            return Err(format!("`{}` is there twice", key.name));
        }
        found.push(key);
    }
    Ok(found)
}

fn position(keys: &[KeyEntry], name: &str) -> Result<usize, KeyError> {
    let found = keys.iter().position(|key| key.name == name);
    found.ok_or_else(|| KeyError::unknown(name, keys.iter().map(|key| key.name.as_str())))
}
