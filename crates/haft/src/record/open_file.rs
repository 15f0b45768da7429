//! One open file of the log: detects an incomplete last line, and a file that was moved or deleted.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::time::{Duration, Instant};

use super::files::LogFile;

/// Only the owner may read what tools were given and what they answered.
const FILE_MODE: u32 = 0o600;

/// A file of the log, open for appending.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) name: LogFile,
    pub(super) file: File,
    /// The size after the last write. Other processes may write to it too.
    pub(super) bytes: u64,
    device_and_inode: (u64, u64),
    /// The time of the last check of the path. None if the next write checks it.
    path_checked: Option<Instant>,
    /// The file ends in the middle of a line, so the next write begins with a newline.
    pub(super) torn: bool,
}

impl OpenFile {
    pub(super) fn open(name: LogFile) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true).mode(FILE_MODE);
        let file = options.open(&name.path)?;
        let metadata = file.metadata()?;
        // The last writer may have been killed, or run out of space, in the middle of a line.
        let mut last = *b"\n";
        if metadata.is_file() && metadata.len() > 0 {
            file.read_exact_at(&mut last, metadata.len() - 1)?;
        }
        let device_and_inode = identity(&metadata);
        Ok(Self {
            name,
            file,
            bytes: if metadata.is_file() { metadata.len() } else { 0 },
            device_and_inode,
            path_checked: None,
            torn: last != *b"\n",
        })
    }

    /// Makes the next write check the path.
    pub(super) fn expire_check(&mut self) {
        self.path_checked = None;
    }

    /// Returns whether lines written now can be read at the path. A deleted file has no link left, which one look
    /// at the open file shows before each write. A file that was moved keeps its lines, so the path is compared
    /// only every `check_every`.
    pub(super) fn is_in_place(&mut self, check_every: Duration, now: Instant) -> bool {
        let Ok(own) = self.file.metadata() else { return false };
        if own.nlink() == 0 {
            return false;
        }
        let is_fresh = self
            .path_checked
            .is_some_and(|checked| now.saturating_duration_since(checked) < check_every);
        if is_fresh {
            return true;
        }
        self.path_checked = Some(now);
        match fs::metadata(&self.name.path) {
            Ok(found) if identity(&found) == self.device_and_inode => {
                self.bytes = if found.is_file() { found.len() } else { 0 };
                true
            }
            Ok(_) | Err(_) => false,
        }
    }
}

/// The identity of a file. An inode's number is not reused while the file is open.
pub(super) fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
