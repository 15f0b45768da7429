//! Whether files say something else than before, without reading them each time.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::config::read_file;

/// How often files are looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the file system says about a file. Whoever writes to a file or puts another in its place
/// changes at least one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Nothing for a file that is not there.
    fn of(path: &Path) -> Option<Self> {
        let it = fs::metadata(path).ok()?;
        Some(Self {
            device: it.dev(),
            inode: it.ino(),
            size: it.size(),
            modified: (it.mtime(), it.mtime_nsec()),
            changed: (it.ctime(), it.ctime_nsec()),
        })
    }

    /// Whether the last change lies so far back that the next one will look different.
    fn is_settled(&self) -> bool {
        self.changed.0 + 2 < jiff::Timestamp::now().as_second()
    }
}

/// Files that are watched for a change of what they say.
#[derive(Debug)]
pub(super) struct Watched {
    files: Vec<WatchedFile>,
}

#[derive(Debug)]
struct WatchedFile {
    path: PathBuf,
    stamp: Option<Stamp>,
    /// What it said; nothing where it could not be read.
    digest: Option<[u8; 32]>,
}

impl Watched {
    /// Files that said `digest` when they were read.
    pub(super) fn new(files: impl IntoIterator<Item = (PathBuf, Option<[u8; 32]>)>) -> Self {
        let watch = |(path, digest)| WatchedFile { path, stamp: None, digest };
        Self { files: files.into_iter().map(watch).collect() }
    }

    /// Whether any of them says something else than when it was last asked. A file that only moved
    /// or was touched does not.
    pub(super) fn have_changed(&mut self) -> bool {
        let mut have_changed = false;
        for file in &mut self.files {
            let stamp = Stamp::of(&file.path);
            if stamp.is_some() && stamp == file.stamp {
                continue;
            }
            let digest = digest(&file.path);
            // One that cannot be read may have been mended and broken again since the last look.
            have_changed |= digest.is_none() || digest != file.digest;
            // A file can be written twice within one tick of the file system's clock.
            (file.stamp, file.digest) = (stamp.filter(Stamp::is_settled), digest);
        }
        have_changed
    }

    /// Whether any of them may say something else than when it was last asked, told without reading it. One that
    /// was written a moment ago may have been written again: it is told of until the clock can tell.
    pub(super) fn may_have_changed(&mut self) -> bool {
        let mut may_have_changed = false;
        for file in &mut self.files {
            let stamp = Stamp::of(&file.path);
            may_have_changed |= stamp.is_none() || stamp != file.stamp;
            file.stamp = stamp.filter(Stamp::is_settled);
        }
        may_have_changed
    }
}

/// SHA-256 of what a file says.
fn digest(path: &Path) -> Option<[u8; 32]> {
    read_file(path).ok().map(|text| Sha256::digest(text).into())
}
