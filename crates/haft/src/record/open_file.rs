//! One open file of the log: whether it ends in the middle of a line, and whether anybody can still
//! find it.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::civil::Date;

/// Only the owner may read what tools were given and what they answered.
const FILE_MODE: u32 = 0o600;

/// A file of the log, open for appending.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) date: Date,
    pub(super) path: PathBuf,
    pub(super) file: File,
    device_and_inode: (u64, u64),
    /// When the path was last seen to lead here.
    path_checked: Instant,
    /// The file ends in the middle of a line, so the next write begins with a newline.
    pub(super) torn: bool,
}

impl OpenFile {
    pub(super) fn open(date: Date, path: PathBuf) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).append(true).create(true).mode(FILE_MODE).open(&path)?;
        let metadata = file.metadata()?;
        // Whoever wrote last may have been killed, or run out of room, in the middle of a line.
        let mut last = *b"\n";
        if metadata.is_file() && metadata.len() > 0 {
            file.read_exact_at(&mut last, metadata.len() - 1)?;
        }
        let device_and_inode = identity(&metadata);
        Ok(Self {
            date,
            path,
            file,
            device_and_inode,
            path_checked: Instant::now(),
            torn: last != *b"\n",
        })
    }

    /// Whether the path leads here. A file that was deleted is noticed at once. One that was moved
    /// away still takes lines that somebody can read, so a look now and then is enough for that.
    pub(super) fn is_at_its_path(&mut self, check_every: Duration) -> bool {
        if names_left(&self.file).is_ok_and(|names| names == 0) {
            return false;
        }
        if self.path_checked.elapsed() < check_every {
            return true;
        }
        self.path_checked = Instant::now();
        fs::metadata(&self.path).is_ok_and(|metadata| identity(&metadata) == self.device_and_inode)
    }
}

/// What tells two files apart. An inode's number is not used again while the file is open.
pub(super) fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// How many names the file still has in any directory. Linux is asked for nothing else: who asks
/// for the times as well makes it keep finer ones, which doubles the price of the next write.
pub(super) fn names_left(file: &File) -> io::Result<u64> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{AtFlags, StatxFlags, statx};
        if let Ok(found) = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::NLINK) {
            return Ok(found.stx_nlink.into());
        }
    }
    file.metadata().map(|metadata| metadata.nlink())
}
