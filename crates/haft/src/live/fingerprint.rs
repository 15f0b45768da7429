//! Detects changed files without reading them each time.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::config::read_file;

/// Polling interval.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// File metadata. A write or a replacement changes at least one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileFingerprint {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileFingerprint {
    /// Returns `None` if the file does not exist.
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

    /// Returns true if the last change is old enough that the next one gets a different timestamp.
    fn is_settled(&self) -> bool {
        self.changed.0 + 2 < jiff::Timestamp::now().as_second()
    }
}

/// Files watched for changes of their content.
#[derive(Debug)]
pub(super) struct WatchedFiles {
    files: Vec<WatchedFile>,
}

#[derive(Debug)]
struct WatchedFile {
    path: PathBuf,
    fingerprint: Option<FileFingerprint>,
    /// Hash of the content; `None` if the file was not readable.
    digest: Option<[u8; 32]>,
}

impl WatchedFiles {
    /// Watches files whose content had `digest` when they were read.
    pub(super) fn new(files: impl IntoIterator<Item = (PathBuf, Option<[u8; 32]>)>) -> Self {
        let watch = |(path, digest)| WatchedFile { path, fingerprint: None, digest };
        Self { files: files.into_iter().map(watch).collect() }
    }

    /// Returns true if the content of any file changed since the last check. A file that was only
    /// moved or touched does not count.
    pub(super) fn have_changed(&mut self) -> bool {
        let mut have_changed = false;
        for file in &mut self.files {
            let fingerprint = FileFingerprint::of(&file.path);
            if fingerprint.is_some() && fingerprint == file.fingerprint {
                continue;
            }
            let digest = digest(&file.path);
            // An unreadable file may have been fixed and broken again since the last check.
            have_changed |= digest.is_none() || digest != file.digest;
            // A file can be written twice within one tick of the file system's clock.
            (file.fingerprint, file.digest) =
                (fingerprint.filter(FileFingerprint::is_settled), digest);
        }
        have_changed
    }

    /// Returns true if any file may have changed since the last check, without reading it. A file
    /// written within the clock's resolution counts as changed until its timestamp is conclusive.
    pub(super) fn may_have_changed(&mut self) -> bool {
        let mut may_have_changed = false;
        for file in &mut self.files {
            let fingerprint = FileFingerprint::of(&file.path);
            may_have_changed |= fingerprint.is_none() || fingerprint != file.fingerprint;
            file.fingerprint = fingerprint.filter(FileFingerprint::is_settled);
        }
        may_have_changed
    }
}

/// SHA-256 of a file's content.
fn digest(path: &Path) -> Option<[u8; 32]> {
    read_file(path).ok().map(|text| Sha256::digest(text).into())
}
