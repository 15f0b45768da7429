//! Stored sign-ins: one file per server in a folder that only its owner can read.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};
use url::Url;

use super::{AuthError, Grant};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const FILE_BYTES_MAX: u64 = 1024 * 1024;
const LOCK_WAIT_MAX: Duration = Duration::from_mins(1);
const LOCK_POLL: Duration = Duration::from_millis(25);

/// A folder of sign-ins. Several processes may share it.
#[derive(Debug, Clone)]
pub struct TokenStore {
    folder: PathBuf,
}

impl TokenStore {
    /// Uses a folder, which is made on the first save and then closed to others.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The sign-in at a server, if there is one.
    pub fn load(&self, server: &Url) -> Result<Option<Grant>, AuthError> {
        let path = self.path(server, "json");
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("open", &path, error)),
        };
        let mut text = Vec::new();
        file.take(FILE_BYTES_MAX)
            .read_to_end(&mut text)
            .map_err(|error| failed("read", &path, error))?;
        // The reader's error is dropped: it would quote the file.
        serde_json::from_slice(&text).map(Some).map_err(|_| AuthError::Unreadable { path })
    }

    /// Writes a sign-in so that a reader sees the old one or the new one, never a part.
    pub fn save(&self, server: &Url, grant: &Grant) -> Result<(), AuthError> {
        static WRITES: AtomicU64 = AtomicU64::new(0);
        self.make_folder()?;
        let path = self.path(server, "json");
        let text = serde_json::to_vec_pretty(grant)
            .map_err(|error| AuthError::Setup { problem: error.to_string() })?;
        let write = WRITES.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_extension(format!("{}-{write}.tmp", std::process::id()));
        let written = write_new(&temporary, &text)
            .and_then(|()| fs::rename(&temporary, &path))
            .and_then(|()| File::open(&self.folder)?.sync_all());
        written.map_err(|error| {
            // Gone already if the rename succeeded.
            let _ = fs::remove_file(&temporary);
            failed("write", &path, error)
        })
    }

    /// Forgets the sign-in at a server. `false`: there was none.
    pub fn logout(&self, server: &Url) -> Result<bool, AuthError> {
        let path = self.path(server, "json");
        self.remove_leftovers(&path);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("delete", &path, error)),
        }
    }

    /// Keeps other processes from refreshing the same tokens: a refresh token often works once.
    pub(crate) async fn lock(&self, server: &Url) -> Result<File, AuthError> {
        self.make_folder()?;
        let path = self.path(server, "lock");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(FILE_MODE)
            .open(&path)
            .map_err(|error| failed("open", &path, error))?;
        let deadline = Instant::now() + LOCK_WAIT_MAX;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(failed("lock", &path, io::ErrorKind::TimedOut.into()));
                }
                // Some network folders cannot lock. Continuing is better than never refreshing.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(file);
                }
                Err(TryLockError::Error(error)) => return Err(failed("lock", &path, error)),
            }
            sleep(LOCK_POLL).await;
        }
    }

    /// A process that died while writing left tokens in its temporary file.
    fn remove_leftovers(&self, path: &Path) {
        let stem = path.file_stem();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let found = entry.path();
            let ours = found.file_stem().map(Path::new).and_then(Path::file_stem) == stem;
            if ours && found.extension().is_some_and(|extension| extension == "tmp") {
                // The next sign-out tries again.
                let _ = fs::remove_file(found);
            }
        }
    }

    fn make_folder(&self) -> Result<(), AuthError> {
        let made = DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&self.folder);
        made.and_then(|()| {
            let found = fs::metadata(&self.folder)?.permissions().mode();
            if found & 0o777 == FOLDER_MODE {
                return Ok(());
            }
            fs::set_permissions(&self.folder, Permissions::from_mode(FOLDER_MODE))
        })
        .map_err(|error| failed("make a private folder of", &self.folder, error))
    }

    /// The address itself may hold a secret in its query, so the name holds only its hash.
    fn path(&self, server: &Url, extension: &str) -> PathBuf {
        let address = server.as_str().split('#').next().unwrap_or_default();
        let digest = Sha256::digest(address.as_bytes());
        self.folder.join(format!("{}.{extension}", haft_text::hex(&digest[..16])))
    }
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    file.write_all(text)?;
    file.sync_all()
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> AuthError {
    AuthError::Store { action, path: path.to_owned(), source: Arc::new(source) }
}
