//! Detects a changed script.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Deserialize;

/// Modification time, size and inode of a file: an edit changes at least one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct ScriptFingerprint(i64, u64, u64);

impl ScriptFingerprint {
    /// Returns the fingerprint of the file now, or `None` if it is gone.
    pub(super) fn now(path: impl AsRef<Path>) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        let modified_ns =
            file.mtime().checked_mul(1_000_000_000)?.checked_add(file.mtime_nsec())?;
        Some(Self(modified_ns, file.size(), file.ino()))
    }
}
