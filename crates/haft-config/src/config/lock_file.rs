//! The lock file beside the configuration. One that cannot be used stops the start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::ConfigError;
use super::place::{Place, Problem, Severity};
use crate::lock::{LOCK_FILE, Lock, LockProblem, parse, store};

/// The lock file of a configuration, which need not exist.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LockFile {
    /// Its path.
    pub path: PathBuf,
    /// Its content, if it exists.
    pub loaded: Option<LoadedLock>,
}

/// The content of a lock file.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedLock {
    /// The approved definitions.
    pub lock: Arc<Lock>,
    /// SHA-256 of the text, to detect changes.
    pub digest: [u8; 32],
}

impl LoadedLock {
    /// A lock whose file has the text `text`.
    pub fn new(text: &str, lock: Lock) -> Self {
        Self { lock: Arc::new(lock), digest: Sha256::digest(text).into() }
    }
}

impl LockFile {
    /// The approved definitions, if there is a lock file.
    pub fn lock(&self) -> Option<&Arc<Lock>> {
        self.loaded.as_ref().map(|loaded| &loaded.lock)
    }

    /// Reads the lock file of a folder.
    pub(super) fn load(folder: &Path, cwd: &Path) -> Result<Self, ConfigError> {
        let path = folder.join(LOCK_FILE);
        let name = path.strip_prefix(cwd).unwrap_or(&path).display().to_string();
        let unreadable = |error: std::io::Error| Problem {
            severity: Severity::Error,
            place: Place::whole(name.clone()),
            problem: format!("the lock file cannot be read: {error}"),
            remedy: "fix the file or its permissions".into(),
        };
        let text = store::read(&path).map_err(|error| one(unreadable(error)))?;
        let loaded = match text {
            Some(text) => {
                let lock = parse(&text).map_err(|problem| one(at(&name, problem)))?;
                Some(LoadedLock::new(&text, lock))
            }
            None => None,
        };
        Ok(Self { path, loaded })
    }
}

fn one(problem: Problem) -> ConfigError {
    ConfigError { problems: vec![problem] }
}

fn at(file: &str, problem: LockProblem) -> Problem {
    let LockProblem { line, column, path, problem, remedy } = problem;
    let place = Place { file: file.into(), line, column, path };
    Problem { severity: Severity::Error, place, problem, remedy }
}
