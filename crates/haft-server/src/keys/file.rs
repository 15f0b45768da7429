//! The file of the keys: read as a whole, written as a whole, by one process at a time.

use haft_bounds::parse_error::describe;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::key::{Key, KeyDigest, Scope};
use super::used;

/// Largest number of keys.
pub const KEYS_MAX: usize = 1000;
/// Longest name of a key.
const NAME_CHARS_MAX: usize = 64;
/// Largest size of the file: a thousand keys take a quarter of it.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;
const VERSION: u32 = 1;

/// Where the keys lie. Beside the file lie its lock and the notes of last use.
#[derive(Debug, Clone)]
pub struct KeyFile {
    path: PathBuf,
}

/// One key, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEntry {
    /// Its name.
    pub name: String,
    /// Its permissions.
    pub scope: Scope,
    /// The profile it is bound to: it may use the gateway's endpoint of that one, and nothing else.
    pub profile: Option<String>,
    /// Its hash.
    pub digest: KeyDigest,
    /// When it was made.
    pub created: Timestamp,
}

/// Errors of the key file.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file, its folder or its lock cannot be used.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The attempted operation.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is not what `haft keys` writes.
    #[error("`{}` is not a valid file of keys: {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// Others than the owner may write the file.
    #[error("`{}` may be written by others than its owner", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// A name that no key may have.
    #[error("`{name}` is not a valid key name")]
    Name {
        /// The name.
        name: String,
    },
    /// The name is taken.
    #[error("there is a key named `{name}` already")]
    Taken {
        /// The name.
        name: String,
    },
    /// No key has this name.
    #[error("no key is named `{name}`")]
    Unknown {
        /// The name.
        name: String,
        /// One that is nearly the same.
        nearest: Option<String>,
    },
    /// There are as many keys as there may be.
    #[error("there are {KEYS_MAX} keys already")]
    TooMany,
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

impl KeyError {
    /// The next step for the caller.
    pub fn remedy(&self) -> String {
        match self {
            Self::Io { path, .. } => {
                format!("make sure that `{}` can be read and written", path.display())
            }
            Self::Invalid { path, .. } => format!(
                "fix `{0}`, or delete it and create the keys again with `haft keys create`",
                path.display()
            ),
            Self::Exposed { path } => format!("run `chmod 600 {}`", path.display()),
            Self::Name { .. } => format!(
                "use 1 to {NAME_CHARS_MAX} of the characters A-Z a-z 0-9 . _ - and begin with a \
                 letter or digit"
            ),
            Self::Taken { .. } => {
                "choose another name; both keys work until you revoke one".to_owned()
            }
            Self::Unknown { nearest: Some(nearest), .. } => format!("did you mean `{nearest}`?"),
            Self::Unknown { nearest: None, .. } => "`haft keys list` shows every key".to_owned(),
            Self::TooMany => "revoke some with `haft keys revoke NAME`".to_owned(),
            Self::Random(_) => "try again".to_owned(),
        }
    }
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

    /// Creates a key. Only the caller gets its secret.
    pub fn create(&self, name: &str, scope: Scope) -> Result<(Key, KeyEntry), KeyError> {
        self.add(name, scope, None)
    }

    /// Makes a call key that is bound to a profile of the gateway.
    pub fn create_for_profile(
        &self,
        name: &str,
        profile: &str,
    ) -> Result<(Key, KeyEntry), KeyError> {
        self.add(name, Scope::Call, Some(profile.to_owned()))
    }

    fn add(
        &self,
        name: &str,
        scope: Scope,
        profile: Option<String>,
    ) -> Result<(Key, KeyEntry), KeyError> {
        if !is_name(name) {
            return Err(KeyError::Name { name: name.to_owned() });
        }
        let _lock = self.lock()?;
        let mut keys = self.list()?;
        if keys.iter().any(|key| key.name == name) {
            return Err(KeyError::Taken { name: name.to_owned() });
        }
        if keys.len() >= KEYS_MAX {
            return Err(KeyError::TooMany);
        }
        let key = Key::random(scope).map_err(KeyError::Random)?;
        // Whole seconds are precise enough for the creation time of a key.
        let created = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default();
        let name = name.to_owned();
        let entry = KeyEntry { name, scope, profile, digest: key.digest(), created };
        keys.push(entry.clone());
        self.write(&keys)?;
        Ok((key, entry))
    }

    /// Takes a key away.
    pub fn revoke(&self, name: &str) -> Result<KeyEntry, KeyError> {
        let _lock = self.lock()?;
        let mut keys = self.list()?;
        let Some(place) = keys.iter().position(|key| key.name == name) else {
            let nearest = haft_text::nearest(name, keys.iter().map(|key| key.name.as_str()));
            let nearest = nearest.map(str::to_owned);
            return Err(KeyError::Unknown { name: name.to_owned(), nearest });
        };
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
        let keys = keys.iter().map(|key| RawKey {
            name: key.name.clone(),
            scope: key.scope,
            profile: key.profile.clone(),
            sha256: key.digest.hex(),
            created: key.created.to_string(),
        });
        let raw = RawFile { version: VERSION, keys: keys.collect() };
        let mut text = serde_json::to_vec_pretty(&raw)
            .map_err(|error| self.failed("write", io::Error::other(error)))?;
        text.push(b'\n');
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

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawKey {
    name: String,
    scope: Scope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    profile: Option<String>,
    sha256: String,
    created: String,
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
    for RawKey { name, scope, profile, sha256, created } in keys {
        if !is_name(&name) {
            return Err(format!("`{name}` is not a valid key name"));
        }
        let Some(digest) = KeyDigest::from_hex(&sha256) else {
            return Err(format!("`sha256` of `{name}` is not 64 hexadecimal digits"));
        };
        let Ok(created) = created.parse() else {
            return Err(format!("`created` of `{name}` is not a time"));
        };
        if scope != Scope::Call && profile.is_some() {
            return Err(format!("`{name}` is an {scope} key and bound to a profile"));
        }
        if found.iter().any(|key| key.name == name || key.digest == digest) {
            return Err(format!("`{name}` is there twice"));
        }
        found.push(KeyEntry { name, scope, profile, digest, created });
    }
    Ok(found)
}

fn is_name(name: &str) -> bool {
    name.len() <= NAME_CHARS_MAX
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'_' | b'-'))
}
