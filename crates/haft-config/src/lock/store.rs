//! Changes the lock file on disk: one process at a time, and never half written.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Lock, LockProblem, parse, render};
use crate::draft::Draft;
use crate::remedy::Remedy;

/// Largest lock file.
pub const LOCK_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// The file is public: it has no secrets, and is meant for version control.
const FILE_MODE: u32 = 0o644;
/// Time to wait for another process that changes the file.
const WAIT_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Reasons why a lock file cannot be changed. The file stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum LockWriteError {
    /// Its content cannot be used.
    #[error("{}:{}:{}: {}", .file, .problem.line, .problem.column, .problem)]
    Invalid {
        /// The file.
        file: String,
        /// The problem.
        problem: Box<LockProblem>,
    },
    /// It cannot be read or written.
    #[error("`{file}` cannot be changed: {cause}")]
    Io {
        /// The file.
        file: String,
        /// The cause.
        cause: io::Error,
    },
}

impl LockWriteError {
    /// The remedy.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Invalid { problem, .. } => problem.remedy.clone(),
            Self::Io { .. } => {
                "see that there is room and that the folder may be written to".into()
            }
        }
    }
}

/// Reads a lock file; `None` if it does not exist.
pub fn read(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    file.take(LOCK_BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LOCK_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {LOCK_BYTES_MAX} bytes")));
    }
    Ok(Some(text))
}

/// Changes the lock file at `path`. `change` gets the state that is on disk now, so that processes which change the
/// file at the same time lose nothing. Returns the new text and its content.
pub fn update(
    path: &Path,
    change: impl FnOnce(&mut Lock),
) -> Result<(String, Lock), LockWriteError> {
    let file = || path.display().to_string();
    let io = |cause| LockWriteError::Io { file: file(), cause };
    let invalid =
        |problem: LockProblem| LockWriteError::Invalid { file: file(), problem: Box::new(problem) };
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _guard = hold(folder).map_err(io)?;
    let old = read(path).map_err(io)?;
    let mut lock = match &old {
        Some(text) => parse(text).map_err(invalid)?,
        None => Lock::default(),
    };
    change(&mut lock);
    let text = render(old.as_deref().unwrap_or_default(), &lock).map_err(invalid)?;
    if old.as_ref() != Some(&text) {
        let draft = if old.is_some() {
            Draft::write(path, &text)
        } else {
            Draft::create(path.to_path_buf(), &text, fs::Permissions::from_mode(FILE_MODE))
        };
        draft.and_then(Draft::put_in_place).map_err(io)?;
    }
    Ok((text, lock))
}

/// Locks the folder itself, so that no other file is left in it.
fn hold(folder: &Path) -> io::Result<File> {
    let file = File::open(folder)?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if began.elapsed() < WAIT_MAX => {
                std::thread::sleep(LOOK_EVERY);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another process is changing it"));
            }
        }
    }
}
