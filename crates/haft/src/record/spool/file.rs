//! One file of a spool: its identity, and the lines after a cursor.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::super::error::LogError;
use super::super::files::{LogFile, open_to_read};
use super::super::lines::{NextLine, next_line};
use super::super::open_file::identity;
use super::row::ShipRow;
use super::{FileIdentity, ShipBatch};

/// Most lines of one batch.
pub(super) const BATCH_LINES_MAX: u32 = 1000;
/// Bytes of the first line that identify a file. The id of its call is among them.
const BEGINNING_BYTES: u64 = 256;
/// Most bytes of one batch. A longer line is a batch of its own.
pub(super) const BATCH_BYTES_MAX: u64 = 1 << 20;

/// An open file of a spool. Held open, so that its lines can be read after it was moved or deleted.
#[derive(Debug)]
pub(super) struct SpoolFile {
    pub(super) log: LogFile,
    file: File,
    pub(super) identity: FileIdentity,
}

/// The lines after a cursor.
#[derive(Debug)]
pub(super) struct ReadLines {
    pub(super) batch: ShipBatch,
    /// Number of lines that are not entries.
    pub(super) malformed: u64,
    /// True if the file had no further complete line.
    pub(super) has_all: bool,
}

impl SpoolFile {
    /// `None` if the file is gone.
    pub(super) fn open(log: LogFile) -> Result<Option<Self>, LogError> {
        let file = match open_to_read(&log.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LogError::read(&log.path, error)),
        };
        let metadata = file.metadata().map_err(|error| LogError::read(&log.path, error))?;
        Ok(Some(Self { log, file, identity: identity(&metadata) }))
    }

    /// The name in the cursor: the file's name and a hash of the beginning of its first line, which has the unique id of
    /// a call. A file that replaces another one of its name, or that was emptied, therefore has a cursor of its own.
    /// `None` until there is a line.
    pub(super) fn key(&self) -> Result<Option<String>, LogError> {
        let beginning = self.beginning().map_err(|error| LogError::read(&self.log.path, error))?;
        let Some(beginning) = beginning else { return Ok(None) };
        let digest = Sha256::digest(&beginning);
        let name = self.log.path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Some(format!("{name}#{}", haft_text::hex(&digest[..8]))))
    }

    /// The first line that is not empty, up to [`BEGINNING_BYTES`].
    fn beginning(&self) -> io::Result<Option<Vec<u8>>> {
        let mut reader = BufReader::new(&self.file);
        reader.seek(SeekFrom::Start(0))?;
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut limited = reader.by_ref().take(BEGINNING_BYTES);
            let count = limited.read_until(b'\n', &mut line)? as u64;
            let is_complete = line.pop_if(|last| *last == b'\n').is_some();
            match (is_complete, line.is_empty()) {
                (true, true) => {}
                (true, false) => return Ok(Some(line)),
                (false, _) => return Ok((count == BEGINNING_BYTES).then_some(line)),
            }
        }
    }

    /// The size of the file.
    pub(super) fn len(&self) -> Result<u64, LogError> {
        let metadata = self.file.metadata();
        Ok(metadata.map_err(|error| LogError::read(&self.log.path, error))?.len())
    }

    /// Returns true if the path leads to this file.
    pub(super) fn is_at_its_path(&self) -> bool {
        fs::metadata(&self.log.path).is_ok_and(|found| identity(&found) == self.identity)
    }

    /// Returns true if the last write was at least `age` ago.
    pub(super) fn is_older_than(&self, age: Duration) -> bool {
        let modified = self.file.metadata().and_then(|metadata| metadata.modified());
        // A time in the future is not old.
        modified.is_ok_and(|time| time.elapsed().is_ok_and(|elapsed| elapsed >= age))
    }

    /// Reads complete lines from `from` on, at most one batch.
    pub(super) fn read(&self, from: u64) -> Result<ReadLines, LogError> {
        let failed = |error| LogError::read(&self.log.path, error);
        let batch = ShipBatch { to: from, rows: Vec::new() };
        let mut read = ReadLines { batch, malformed: 0, has_all: false };
        if self.file.metadata().map_err(failed)?.len() <= from {
            return Ok(read);
        }
        let mut reader = BufReader::new(&self.file);
        reader.seek(SeekFrom::Start(from)).map_err(failed)?;
        for _ in 0..BATCH_LINES_MAX {
            let is_complete = read_line(&mut reader, &mut read).map_err(failed)?;
            if !is_complete {
                read.has_all = true;
                break;
            }
            if read.batch.to - from >= BATCH_BYTES_MAX {
                break;
            }
        }
        Ok(read)
    }

    /// Deletes the file at its path.
    pub(super) fn delete(&self) {
        self.log.delete("it was shipped");
    }

    pub(super) fn path(&self) -> &Path {
        &self.log.path
    }
}

/// Adds the next line. Returns false if it is not complete yet.
fn read_line(reader: &mut impl BufRead, read: &mut ReadLines) -> io::Result<bool> {
    let mut line = Vec::new();
    let (found, count) = next_line(reader, &mut line)?;
    read.batch.to += count;
    match found {
        NextLine::Unfinished => return Ok(false),
        NextLine::Complete if line.trim_ascii().is_empty() => {}
        NextLine::TooLong => read.malformed += 1,
        NextLine::Complete => match ShipRow::parse(line, read.batch.to) {
            Some(row) => read.batch.rows.push(row),
            None => read.malformed += 1,
        },
    }
    Ok(true)
}
