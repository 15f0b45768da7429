//! A registry in a folder: `tools.json` and `mcp.json`, each replaced as a whole.
//!
//! The order that makes a change durable: the new text goes into a file beside the old one, which
//! is flushed to the disk, then takes the old one's name, then the folder is flushed too. A crash
//! leaves the old or the new file, never half of one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use std::time::{Duration, Instant};

use super::stamp::{LOOK_EVERY, Watched};
use super::store::{Documents, RegistryStore, Revision, StoreError, Stored};
use crate::config::{SERVERS_FILE, TOOLS_FILE, read_file};
use crate::tool::BoxFuture;

/// Held while a file is replaced, so that two processes do not undo each other's changes.
const LOCK_FILE: &str = ".haft.lock";

/// How long another process may hold it.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);
const LOCK_LOOK_EVERY: Duration = Duration::from_millis(5);

/// A folder with a registry's files.
#[derive(Debug, Clone)]
pub struct FolderStore {
    dir: Arc<Path>,
    watched: Arc<Mutex<Watched>>,
    /// What was last read or written, so that what did not change is not hashed again.
    last: Arc<Mutex<Option<Stored>>>,
}

impl FolderStore {
    /// The registry in `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        let dir: PathBuf = dir.into();
        let files = [TOOLS_FILE, SERVERS_FILE].map(|name| (dir.join(name), None));
        let watched = Arc::new(Mutex::new(Watched::new(files)));
        Self { dir: dir.into(), watched, last: Arc::default() }
    }

    fn read(&self) -> Result<Stored, StoreError> {
        let text = |name: &str| {
            let path = self.dir.join(name);
            read_file(&path)
                .map_err(|cause| StoreError::Read { what: path.display().to_string(), cause })
        };
        let documents = Documents { tools: text(TOOLS_FILE)?, servers: text(SERVERS_FILE)? };
        Ok(Stored { revision: self.revision_of(&documents), documents })
    }

    fn revision_of(&self, documents: &Documents) -> Revision {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(last) if last.documents == *documents => last.revision.clone(),
            _ => {
                let (documents, revision) = (documents.clone(), Revision::of(documents));
                *last = Some(Stored { documents, revision: revision.clone() });
                revision
            }
        }
    }

    fn write(&self, expected: &Revision, new: &Documents) -> Result<Revision, StoreError> {
        let lock = self.lock().map_err(|error| self.unwritable(LOCK_FILE, &error))?;
        let Stored { documents: old, revision } = self.read()?;
        if revision != *expected {
            return Err(StoreError::Conflict);
        }
        let texts =
            [(TOOLS_FILE, &old.tools, &new.tools), (SERVERS_FILE, &old.servers, &new.servers)];
        for (name, _, new) in texts.into_iter().filter(|(_, old, new)| old != new) {
            replace(&self.dir.join(name), new).map_err(|error| self.unwritable(name, &error))?;
        }
        drop(lock);
        Ok(self.revision_of(new))
    }

    fn lock(&self) -> io::Result<File> {
        let path = self.dir.join(LOCK_FILE);
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(0o600).open(path)?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if began.elapsed() < LOCK_WAIT_MAX => {
                    std::thread::sleep(LOCK_LOOK_EVERY);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::other("another process holds it"));
                }
            }
        }
    }

    fn unwritable(&self, name: &str, error: &io::Error) -> StoreError {
        let what = self.dir.join(name).display().to_string();
        StoreError::Write { what, cause: error.to_string() }
    }
}

/// Puts a file with `text` in place of the one at `path`. A link stays a link.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = folder.join(format!(".{name}.new"));
    // A draft that is there was left by a crash.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&draft)?;
        file.set_permissions(fs::metadata(&path)?.permissions())?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, &path)
    })();
    if written.is_err() {
        // The cause is told; a draft that stays is removed by the next change.
        let _ = fs::remove_file(&draft);
    }
    written?;
    File::open(folder)?.sync_all()
}

impl RegistryStore for FolderStore {
    fn load(&self) -> BoxFuture<'_, Result<Stored, StoreError>> {
        let store = self.clone();
        Box::pin(async move { blocking(move || store.read()).await })
    }

    fn commit<'a>(
        &'a self,
        expected: &'a Revision,
        new: &'a Documents,
    ) -> BoxFuture<'a, Result<Revision, StoreError>> {
        let (store, expected, new) = (self.clone(), expected.clone(), new.clone());
        Box::pin(async move { blocking(move || store.write(&expected, &new)).await })
    }

    /// Looks at the files every now and then: unlike notices of the system that works on every file
    /// system, and when the folder itself is replaced. What they said at an earlier look does not matter:
    /// whoever is told compares with what is in use, which may have been read after that look.
    fn changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            while !self.watched.lock().unwrap_or_else(PoisonError::into_inner).may_have_changed() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        })
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let worked = tokio::task::spawn_blocking(work).await;
    worked.unwrap_or_else(|error| {
        Err(StoreError::Read { what: "the registry".to_owned(), cause: error.to_string() })
    })
}
