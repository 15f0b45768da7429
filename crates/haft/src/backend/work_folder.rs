//! A folder for one run of a program, removed after the run in every case.

mod open_folder;
mod removal;

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Once, mpsc};
use std::time::Duration;

use uuid::Uuid;

/// The name prefix of these folders.
const PREFIX: &str = "haft-code-";
/// Age at which an unlocked folder counts as abandoned.
const ABANDONED_AFTER: Duration = Duration::from_mins(1);
/// Maximum number of reported new files.
const MADE_MAX: usize = 100;
/// Maximum number of files that are searched for new ones.
const LOOKED_AT_MAX: usize = 10_000;
/// Time that a cancelled run waits for the removal of its folder. A large one is removed in the
/// background.
const REMOVE_WAIT_MAX: Duration = Duration::from_millis(200);
/// A process that is being killed may still write, so the removal is retried.
const REMOVE_TRIES_MAX: u32 = 20;
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

/// An empty folder that only its owner may enter. Dropping it removes it with everything in it.
#[derive(Debug)]
pub(in crate::backend) struct WorkFolder {
    path: PathBuf,
    is_removed: bool,
    /// Locked while this process lives and uses the folder.
    lock: File,
}

impl WorkFolder {
    pub(in crate::backend) fn create() -> io::Result<Self> {
        let parent = std::env::temp_dir();
        let parent = parent.canonicalize().unwrap_or(parent);
        sweep_once(&parent);
        let path = parent.join(format!("{PREFIX}{}", Uuid::now_v7().simple()));
        // Fails if the name is taken, also by a link, so another user cannot have prepared it.
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = Self { lock: File::open(&path)?, path, is_removed: false };
        // On a file system without locks, other processes take none either.
        let _ = folder.lock.try_lock();
        Ok(folder)
    }

    pub(in crate::backend) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a new file and its parent folders.
    pub(in crate::backend) fn write(&self, name: &Path, text: &str) -> io::Result<()> {
        let path = self.path.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
    }

    /// The files in the folder, by relative name, except known ones and Python's own.
    pub(in crate::backend) fn made_besides(&self, known: &[&Path]) -> Vec<String> {
        let (mut made, mut looks_left) = (Vec::new(), LOOKED_AT_MAX);
        let mut folders = vec![PathBuf::new()];
        while let Some(below) = folders.pop() {
            let Ok(entries) = fs::read_dir(self.path.join(&below)) else { continue };
            for entry in entries.flatten().take(looks_left) {
                looks_left -= 1;
                let name = below.join(entry.file_name());
                match entry.file_type() {
                    _ if is_incidental(&entry.file_name()) || known.contains(&name.as_path()) => {}
                    Ok(kind) if kind.is_dir() => folders.push(name),
                    Ok(kind) if kind.is_file() => made.push(name.to_string_lossy().into_owned()),
                    Ok(_) | Err(_) => {}
                }
            }
        }
        made.sort();
        made.truncate(MADE_MAX);
        made
    }

    /// Leaves it to processes that outlive their call. The next Haft removes it after this one has ended.
    pub(in crate::backend) fn leave(self) {
        // The lock stays for as long as this process lives.
        std::mem::forget(self);
    }

    /// Removes it and waits for the removal.
    pub(in crate::backend) async fn remove(mut self) {
        let path = self.path.clone();
        // Set before the wait: the other thread removes the folder even if this future is dropped.
        self.is_removed = true;
        let _ = tokio::task::spawn_blocking(move || remove_all(&path)).await;
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if self.is_removed {
            return;
        }
        let (done, gone) = mpsc::channel::<()>();
        let path = self.path.clone();
        let remove = move || {
            remove_all(&path);
            drop(done);
        };
        match std::thread::Builder::new().name("haft-remove".into()).spawn(remove) {
            Ok(_) => drop(gone.recv_timeout(REMOVE_WAIT_MAX)),
            Err(_) => remove_all(&self.path),
        }
    }
}

/// Removes the folders of killed processes, once and in the background.
fn sweep_once(parent: &Path) {
    static SWEPT: Once = Once::new();
    SWEPT.call_once(|| {
        let parent = parent.to_owned();
        // If no thread can be started, the next process removes them.
        let _ = std::thread::Builder::new().name("haft-sweep".into()).spawn(move || sweep(&parent));
    });
}

fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_ours && let Some(_lock) = abandoned(&entry.path()) {
            remove_all(&entry.path());
        }
    }
}

/// The lock of an abandoned folder.
fn abandoned(path: &Path) -> Option<File> {
    if !fs::symlink_metadata(path).ok()?.is_dir() {
        return None;
    }
    let folder = File::open(path).ok()?;
    // A new folder may not be locked yet.
    let age = folder.metadata().ok()?.modified().ok()?.elapsed().ok()?;
    let is_ours = removal::is_own(&folder);
    (is_ours && age > ABANDONED_AFTER && folder.try_lock().is_ok()).then_some(folder)
}

fn remove_all(path: &Path) {
    for _ in 0..REMOVE_TRIES_MAX {
        match removal::remove(path) {
            Ok(()) => return,
            Err(_) => std::thread::sleep(REMOVE_PAUSE),
        }
    }
    tracing::warn!("the folder of a program could not be removed: `{}`", path.display());
}

/// Returns true for files that neither the caller nor the code created.
fn is_incidental(name: &OsStr) -> bool {
    name == "__pycache__"
}
