//! The files that were shipped, for the writer of the log, which may delete only those.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::super::open_file::identity;

/// Device and inode of a file.
pub(in crate::record) type FileIdentity = (u64, u64);

/// How far each local file was shipped. Clones share their content. Empty until a [`Shipper`](super::Shipper) has read
/// its cursor, so that nothing is deleted on a guess.
#[derive(Debug, Clone, Default)]
pub struct ShippedFiles(Arc<Mutex<HashMap<PathBuf, (FileIdentity, u64)>>>);

impl ShippedFiles {
    pub(super) fn note(&self, path: &Path, identity: FileIdentity, to: u64) {
        self.0.lock().insert(path.to_owned(), (identity, to));
    }

    pub(super) fn forget(&self, path: &Path) {
        self.0.lock().remove(path);
    }

    /// Returns true if every line of the file was shipped.
    pub(in crate::record) fn is_shipped(&self, path: &Path, metadata: &Metadata) -> bool {
        let shipped = self.0.lock();
        let known = shipped.get(path);
        known.is_some_and(|(file, to)| *file == identity(metadata) && *to >= metadata.len())
    }
}

impl PartialEq for ShippedFiles {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ShippedFiles {}
