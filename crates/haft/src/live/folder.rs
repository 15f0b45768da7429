//! A registry in a folder: `tools.json` and `mcp.json`, each replaced as a whole.
//!
//! A change becomes durable in this order: the new text is written to a file beside the old one and
//! flushed, the file is renamed over the old one, and the folder is flushed. A crash leaves the old
//! or the new file, never half of one. A change of both files goes through a journal
//! (`config/registry_files.rs`), so that a crash leaves both old or both new.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::fingerprint::{POLL_INTERVAL, WatchedFiles};
use super::store::{Documents, RegistryStore, Revision, StoreError, Stored};
use crate::config::{
    JOURNAL_FILE, Journal, RegistryFiles, SERVERS_FILE, TOOLS_FILE, read_registry,
};
use crate::tool::BoxFuture;
use haft_config::draft::Draft;

/// Held while a file is replaced, so that two processes do not undo each other's changes.
const LOCK_FILE: &str = ".haft.lock";
/// Files that Haft creates are readable by its user only: entries may hold secrets.
const FILE_MODE: u32 = 0o600;

/// Time to wait for the lock of another process.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(5);
const LOCK_LOOK_EVERY: Duration = Duration::from_millis(5);

/// A folder with the files of a registry.
#[derive(Debug, Clone)]
pub struct FolderStore {
    dir: Arc<Path>,
    watched: Arc<Mutex<WatchedFiles>>,
    /// The last state read or written, so that unchanged documents are not hashed again.
    last: Arc<Mutex<Option<Stored>>>,
}

impl FolderStore {
    /// Opens the registry in `dir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        let dir: PathBuf = dir.into();
        let files = [TOOLS_FILE, SERVERS_FILE].map(|name| (dir.join(name), None));
        let watched = Arc::new(Mutex::new(WatchedFiles::new(files)));
        Self { dir: dir.into(), watched, last: Arc::default() }
    }

    fn read(&self) -> Result<Stored, StoreError> {
        if self.dir.join(JOURNAL_FILE).exists() {
            // Another process may hold the lock, or the folder may be read-only. The contents are
            // valid either way.
            if let Err(error) = self.lock().and_then(|_lock| self.complete()) {
                tracing::warn!(
                    "an interrupted change of the registry is not completed yet: {error}"
                );
            }
        }
        self.read_files()
    }

    fn read_files(&self) -> Result<Stored, StoreError> {
        let RegistryFiles { tools, servers, .. } = read_registry(&self.dir);
        let text = |name: &str, text: Result<String, String>| {
            let what = || self.dir.join(name).display().to_string();
            text.map_err(|cause| StoreError::Read { what: what(), cause })
        };
        let documents =
            Documents { tools: text(TOOLS_FILE, tools)?, servers: text(SERVERS_FILE, servers)? };
        Ok(Stored { revision: self.revision_of(&documents), documents })
    }

    fn revision_of(&self, documents: &Documents) -> Revision {
        let mut last = self.last.lock();
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
        self.complete().map_err(|error| self.unwritable(JOURNAL_FILE, &error))?;
        let Stored { documents: old, revision } = self.read_files()?;
        if revision != *expected {
            return Err(StoreError::Conflict);
        }
        let drafts =
            [(TOOLS_FILE, &old.tools, &new.tools), (SERVERS_FILE, &old.servers, &new.servers)]
                .into_iter()
                .filter(|(_, old, new)| old != new)
                .map(|(name, _, new)| {
                    let draft = Draft::write(&self.dir.join(name), new);
                    draft.map_err(|error| self.unwritable(name, &error))
                })
                .collect::<Result<Vec<Draft>, StoreError>>()?;
        let is_of_both = drafts.len() > 1;
        if is_of_both {
            self.announce(&old, new).map_err(|error| self.unwritable(JOURNAL_FILE, &error))?;
        }
        let placed = drafts.into_iter().try_for_each(Draft::put_in_place);
        match placed.and_then(|()| if is_of_both { self.remove_journal() } else { Ok(()) }) {
            Ok(()) => {}
            // The journal holds the change: every reader sees it, and the next writer completes it.
            Err(error) if is_of_both => {
                tracing::warn!("a change of the registry is not completed yet: {error}");
            }
            Err(error) => return Err(self.unwritable("the registry", &error)),
        }
        drop(lock);
        Ok(self.revision_of(new))
    }

    /// Writes the journal for a change of both files. From then on the change is durable.
    fn announce(&self, old: &Documents, new: &Documents) -> io::Result<()> {
        let journal = Journal::new((&old.tools, &new.tools), (&old.servers, &new.servers));
        let text = serde_json::to_string(&journal)?;
        let path = self.dir.join(JOURNAL_FILE);
        let draft = Draft::create(path, &text, fs::Permissions::from_mode(FILE_MODE))?;
        draft.put_in_place()
    }

    /// Completes an interrupted change of both files. The caller holds the lock.
    fn complete(&self) -> io::Result<()> {
        // The files are read only if there is something to complete.
        let journal = fs::symlink_metadata(self.dir.join(JOURNAL_FILE));
        if journal.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(());
        }
        let RegistryFiles { tools, servers, journal } = read_registry(&self.dir);
        let (Some(journal), Ok(tools), Ok(servers)) = (journal, tools, servers) else {
            return Ok(());
        };
        if let Some((tools, servers)) = journal.settle(&tools, &servers) {
            for (name, text) in [(TOOLS_FILE, tools), (SERVERS_FILE, servers)] {
                let path = self.dir.join(name);
                if fs::read_to_string(&path)? != text {
                    Draft::write(&path, text)?.put_in_place()?;
                }
            }
        } else {
            tracing::warn!(
                "a change of the registry was interrupted, and a file was edited since: the files stand as \
                 they are"
            );
        }
        self.remove_journal()
    }

    fn remove_journal(&self) -> io::Result<()> {
        fs::remove_file(self.dir.join(JOURNAL_FILE))?;
        File::open(&self.dir)?.sync_all()
    }

    fn lock(&self) -> io::Result<File> {
        let path = self.dir.join(LOCK_FILE);
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).mode(FILE_MODE).open(path)?;
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

    /// Polls the files: unlike file system events, polling works on every file system and when the
    /// folder itself is replaced. Earlier contents do not matter, because the receiver compares
    /// with the state in use.
    fn changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            while !self.watched.lock().may_have_changed() {
                tokio::time::sleep(POLL_INTERVAL).await;
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
