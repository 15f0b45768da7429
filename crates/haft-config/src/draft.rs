//! Replaces a file as a whole: a crash leaves the old or the new one, never half of one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A draft is private until it has the permissions of the file it replaces.
const FILE_MODE: u32 = 0o600;

/// A new file beside the one it will replace. Dropped early, it is removed.
#[derive(Debug)]
#[must_use = "the file is replaced by `put_in_place` only"]
pub struct Draft {
    draft: PathBuf,
    path: PathBuf,
}

impl Draft {
    /// Writes a draft with the permissions of the file at `path`. A link stays a link.
    pub fn write(path: &Path, text: &str) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let permissions = fs::metadata(&path)?.permissions();
        Self::create(path, text, permissions)
    }

    /// Writes a draft of a new file.
    pub fn create(path: PathBuf, text: &str, permissions: fs::Permissions) -> io::Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_prefix('.').unwrap_or(&name);
        let draft = path.with_file_name(format!(".{name}.new"));
        // An existing draft was left by a crash.
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        // No other user may read it before it has the permissions of the replaced file.
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(FILE_MODE).open(&draft)?;
        let this = Self { draft, path };
        file.set_permissions(permissions)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(this)
    }

    /// Replaces the file durably.
    pub fn put_in_place(self) -> io::Result<()> {
        fs::rename(&self.draft, &self.path)?;
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        File::open(folder)?.sync_all()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Absent if the rename succeeded. A leftover is removed by the next change.
        let _ = fs::remove_file(&self.draft);
    }
}
