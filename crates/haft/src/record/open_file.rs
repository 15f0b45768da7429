//! One open file of the log: whether it ends in the middle of a line, and whether anybody can still
//! find it.

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
    /// How large it was after the last write. Other processes may write to it too.
    pub(super) bytes: u64,
    device_and_inode: (u64, u64),
    /// When the path was last seen to lead here.
    path_checked: Instant,
    /// The file ends in the middle of a line, so the next write begins with a newline.
    pub(super) torn: bool,
}

impl OpenFile {
    pub(super) fn open(name: LogFile) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true).mode(FILE_MODE);
        let file = options.open(&name.path)?;
        let metadata = file.metadata()?;
        // Whoever wrote last may have been killed, or run out of room, in the middle of a line.
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
            path_checked: Instant::now(),
            torn: last != *b"\n",
        })
    }

    /// Whether the path leads here. A file that was deleted is noticed at once. One that was moved
    /// away still takes lines that somebody can read, so a look now and then is enough for that.
    pub(super) fn is_at_its_path(&mut self, check_every: Duration) -> bool {
        if look(&self.file).is_ok_and(|seen| seen.names == 0) {
            return false;
        }
        if self.path_checked.elapsed() < check_every {
            return true;
        }
        self.path_checked = Instant::now();
        fs::metadata(&self.name.path)
            .is_ok_and(|metadata| identity(&metadata) == self.device_and_inode)
    }
}

/// What tells two files apart. An inode's number is not used again while the file is open.
pub(super) fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// What the log looks at after each write.
pub(super) struct Seen {
    /// How many names the file still has in any directory.
    pub(super) names: u64,
    /// How large it is.
    pub(super) bytes: u64,
}

/// Looks at an open file. Linux is asked for nothing else: who asks for the times as well makes it
/// keep finer ones, which doubles the price of the next write.
pub(super) fn look(file: &File) -> io::Result<Seen> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{AtFlags, StatxFlags, statx};
        let wanted = StatxFlags::NLINK | StatxFlags::SIZE;
        if let Ok(found) = statx(file, c"", AtFlags::EMPTY_PATH, wanted) {
            return Ok(Seen { names: found.stx_nlink.into(), bytes: found.stx_size });
        }
    }
    file.metadata().map(|metadata| Seen { names: metadata.nlink(), bytes: metadata.len() })
}
