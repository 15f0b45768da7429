//! The files of one spool and their cursors. Blocking: it reads the disk.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::super::error::LogError;
use super::super::files::list;
use super::file::{ReadLines, SpoolFile};
use super::{FileCursor, ShipBatch, ShippedFiles, SpoolId};

/// A completely shipped file is deleted this long after its last line: a database that fails over to an older state
/// needs the lines again.
const DELETE_AFTER: Duration = Duration::from_hours(24);

/// The files of a folder, oldest first.
#[derive(Debug)]
pub(super) struct SpoolFolder {
    pub(super) dir: PathBuf,
    pub(super) id: SpoolId,
    files: Vec<SpoolFile>,
    /// The cursors of the sink. `None` before they are read, and after a failure.
    pub(super) cursors: Option<HashMap<String, u64>>,
    /// Files whose lines were all read since the last [`begin`](Self::begin).
    read: HashSet<String>,
    shipped: ShippedFiles,
}

/// The next step.
#[derive(Debug)]
pub(super) enum Pending {
    /// Lines to ship.
    Lines { from: FileCursor, batch: ShipBatch, malformed: u64 },
    /// A cursor that is not needed any more.
    Gone(FileCursor),
}

impl SpoolFolder {
    /// `None` if the folder does not exist yet.
    pub(super) fn open(dir: PathBuf, shipped: ShippedFiles) -> Result<Option<Self>, LogError> {
        if !dir.is_dir() {
            return Ok(None);
        }
        let id = SpoolId::of(&dir)?;
        Ok(Some(Self { dir, id, files: Vec::new(), cursors: None, read: HashSet::new(), shipped }))
    }

    /// Begins a pass over the files. Lines that are written while a batch is sent wait for the next pass, so that they
    /// share a batch with later ones.
    pub(super) fn begin(&mut self) {
        self.read.clear();
    }

    /// Finds new files. A file that cannot be opened does not hold up the others.
    pub(super) fn look(&mut self) -> Result<(), LogError> {
        let listed = match list(&self.dir) {
            Ok(listed) => listed,
            Err(LogError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        let mut problem = None;
        for log in listed {
            if self.files.iter().any(|file| *file.path() == log.path && file.is_at_its_path()) {
                continue;
            }
            match SpoolFile::open(log) {
                Ok(file) => self.files.extend(file),
                Err(error) => problem = Some(error),
            }
        }
        self.files.sort_by(|one, other| one.log.cmp(&other.log));
        problem.map_or(Ok(()), Err)
    }

    /// Number of bytes that wait to be shipped.
    pub(super) fn waiting_bytes(&self) -> u64 {
        let waiting = |file: &SpoolFile| {
            let at = file.key().ok().flatten().map_or(0, |key| self.at(&key));
            file.len().unwrap_or(at).saturating_sub(at)
        };
        self.files.iter().map(waiting).sum()
    }

    /// Returns the next step for the oldest file that needs one. Deletes files that were shipped long ago.
    pub(super) fn next(&mut self) -> Result<Option<Pending>, LogError> {
        let mut index = 0;
        while let Some(file) = self.files.get(index) {
            // A file without a complete line has nothing to ship, and no cursor.
            let Some(key) = file.key()? else {
                if file.is_at_its_path() {
                    index += 1;
                } else {
                    self.files.remove(index);
                }
                continue;
            };
            let from = FileCursor { at: self.at(&key), file: key };
            if file.len()? < from.at {
                // The file lost its end. Rows that are stored already stay as they are.
                tracing::warn!(path = %file.path().display(), "a log file is shorter than what was shipped of it; shipping it again");
                let batch = ShipBatch { to: 0, rows: Vec::new() };
                return Ok(Some(Pending::Lines { from, batch, malformed: 0 }));
            }
            let is_at_its_path = file.is_at_its_path();
            if !(is_at_its_path && self.read.contains(&from.file)) {
                let ReadLines { batch, malformed, has_all } = file.read(from.at)?;
                if has_all {
                    self.read.insert(from.file.clone());
                }
                if batch.to > from.at {
                    return Ok(Some(Pending::Lines { from, batch, malformed }));
                }
            }
            if !is_at_its_path {
                self.shipped.forget(file.path());
                self.files.remove(index);
                return Ok(Some(Pending::Gone(from)));
            }
            self.shipped.note(file.path(), file.identity, from.at);
            if from.at == file.len()? && file.is_older_than(DELETE_AFTER) {
                // Still open: a line that was added meanwhile is shipped before the file is left.
                file.delete();
            }
            index += 1;
        }
        Ok(None)
    }

    fn at(&self, key: &str) -> u64 {
        self.cursors.as_ref().and_then(|cursors| cursors.get(key)).copied().unwrap_or(0)
    }

    /// Notes the cursor of a file.
    pub(super) fn moved(&mut self, cursor: &FileCursor) {
        if let Some(cursors) = &mut self.cursors {
            cursors.insert(cursor.file.clone(), cursor.at);
        }
    }
}
