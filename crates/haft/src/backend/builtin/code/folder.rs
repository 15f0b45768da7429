//! A folder for one run of code, gone afterwards however the run ended.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Once, mpsc};
use std::time::Duration;

use uuid::Uuid;

use super::removal;

/// How the names of these folders begin.
const PREFIX: &str = "haft-code-";
/// How old a folder is that nobody has locked.
const ABANDONED_AFTER: Duration = Duration::from_mins(1);
/// How many new files are told.
const MADE_MAX: usize = 100;
/// Among how many they are looked for.
const LOOKED_AT_MAX: usize = 10_000;
/// How long whoever gives up a run waits for its folder to go. A large one goes on going in the background.
const REMOVE_WAIT_MAX: Duration = Duration::from_millis(200);
/// A process that is being killed may still write for a moment.
const REMOVE_TRIES_MAX: u32 = 20;
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

/// An empty folder that only its owner may enter. Dropping it removes it with everything in it.
#[derive(Debug)]
pub(super) struct WorkFolder {
    path: PathBuf,
    is_removed: bool,
    /// Locked for as long as this process lives and needs it.
    lock: File,
}

impl WorkFolder {
    pub(super) fn create() -> io::Result<Self> {
        let parent = std::env::temp_dir();
        let parent = parent.canonicalize().unwrap_or(parent);
        sweep_once(&parent);
        let path = parent.join(format!("{PREFIX}{}", Uuid::now_v7().simple()));
        // Fails where the name is taken, also by a link, so nobody can have prepared it.
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = Self { lock: File::open(&path)?, path, is_removed: false };
        // Where a file system has no locks, nobody else takes one there either.
        let _ = folder.lock.try_lock();
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a new file, with the folders around it.
    pub(super) fn write(&self, name: &Path, text: &str) -> io::Result<()> {
        let path = self.path.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
    }

    /// The files in the folder, by relative name, but those that are known and Python's own.
    pub(super) fn made_besides(&self, known: &[&Path]) -> Vec<String> {
        let (mut made, mut looks_left) = (Vec::new(), LOOKED_AT_MAX);
        let mut folders = vec![PathBuf::new()];
        while let Some(below) = folders.pop() {
            let Ok(entries) = fs::read_dir(self.path.join(&below)) else { continue };
            for entry in entries.flatten().take(looks_left) {
                looks_left -= 1;
                let name = below.join(entry.file_name());
                match entry.file_type() {
                    _ if is_nobodys(&entry.file_name()) || known.contains(&name.as_path()) => {}
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

    /// Removes it and waits until it is gone.
    pub(super) async fn remove(mut self) {
        let path = self.path.clone();
        // Here and not after the wait: from now on the other thread does it, whatever becomes of us.
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

/// Removes, in the background and once, what processes left that were killed.
fn sweep_once(parent: &Path) {
    static SWEPT: Once = Once::new();
    SWEPT.call_once(|| {
        let parent = parent.to_owned();
        // Where no thread can be started, the next process does it.
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

/// The lock of a folder that nobody has any more.
fn abandoned(path: &Path) -> Option<File> {
    if !fs::symlink_metadata(path).ok()?.is_dir() {
        return None;
    }
    let folder = File::open(path).ok()?;
    // One that was just made may not be locked yet.
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
    tracing::warn!("the folder of a `code_execution` could not be removed: `{}`", path.display());
}

/// What neither the caller nor the code made.
fn is_nobodys(name: &OsStr) -> bool {
    name == "__pycache__"
}
