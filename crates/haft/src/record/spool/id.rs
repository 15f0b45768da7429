//! The id of a spool, in a file beside the log.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use uuid::Uuid;

use super::super::error::LogError;

const FILE_NAME: &str = "spool-id";
const FILE_MODE: u32 = 0o600;

/// Identifies a folder of log files, so that cursors of several replicas do not mix. Kept in the folder, so it moves
/// with the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpoolId(Uuid);

impl SpoolId {
    /// The id as a UUID.
    pub fn uuid(self) -> Uuid {
        self.0
    }

    /// Reads the id of a folder, or creates one. Processes that share the folder get the same id.
    pub(super) fn of(dir: &Path) -> Result<Self, LogError> {
        let path = dir.join(FILE_NAME);
        if let Some(id) = read(&path)? {
            return Ok(id);
        }
        let id = Self(Uuid::now_v7());
        // A link to a complete file appears at once and replaces no other one.
        let draft = dir.join(format!("{FILE_NAME}.{id}"));
        let failed = |error| LogError::write(&path, error);
        write(&draft, id).map_err(failed)?;
        let linked = fs::hard_link(&draft, &path);
        // A leftover draft has no effect.
        let _ = fs::remove_file(&draft);
        match linked {
            Ok(()) => Ok(id),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                read(&path)?.ok_or_else(|| failed(error))
            }
            Err(error) => Err(failed(error)),
        }
    }
}

impl fmt::Display for SpoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn read(path: &Path) -> Result<Option<SpoolId>, LogError> {
    match fs::read_to_string(path) {
        Ok(text) => match Uuid::try_parse(text.trim()) {
            Ok(id) => Ok(Some(SpoolId(id))),
            Err(error) => Err(LogError::read(path, io::Error::other(error))),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LogError::read(path, error)),
    }
}

fn write(path: &Path, id: SpoolId) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    let written = writeln!(file, "{id}").and_then(|()| file.sync_all());
    if written.is_err() {
        // A leftover draft has no effect.
        let _ = fs::remove_file(path);
    }
    written
}
