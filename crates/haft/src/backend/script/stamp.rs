//! By which a changed file is known.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde::Deserialize;

/// When a file was last changed, its size and its inode: an edit changes at least one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Stamp(i64, u64, u64);

impl Stamp {
    /// The stamp of the file as it is now, or nothing if it is gone.
    pub(super) fn now(path: &str) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        let modified_ns =
            file.mtime().checked_mul(1_000_000_000)?.checked_add(file.mtime_nsec())?;
        Some(Self(modified_ns, file.size(), file.ino()))
    }
}
