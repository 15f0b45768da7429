//! A file of the user, replaced as a whole: with a copy of the previous content beside it, and never half written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use super::{EXIT_CONFIG, EXIT_RUNTIME, Failure};

/// Largest size of such a file.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Largest number of backups beside it.
const BACKUPS_MAX: u32 = 1000;
/// Private until it has the permissions it should have.
const DRAFT_MODE: u32 = 0o600;

/// A file as it was when it was read; it need not exist.
#[derive(Debug)]
pub(super) struct UserFile {
    /// Where it lies, links followed.
    real: PathBuf,
    text: Option<String>,
}

impl UserFile {
    /// Reads the file at `path`, if there is one.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let unreadable = |cause: String| {
            let message = format!("`{}` cannot be read: {cause}", path.display());
            Failure::new(
                EXIT_RUNTIME,
                message,
                "nothing was changed; fix the file, or its permissions",
            )
        };
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { real: path.to_path_buf(), text: None });
            }
            Err(error) => return Err(unreadable(error.to_string()).into()),
            Ok(_) => {}
        }
        let read = || {
            let real = fs::canonicalize(path).map_err(|error| match error.kind() {
                ErrorKind::NotFound => io::Error::other("it is a link to nothing"),
                _ => error,
            })?;
            let about = fs::metadata(&real)?;
            if !about.is_file() {
                return Err(io::Error::other("it is not a file"));
            }
            if about.len() > FILE_BYTES_MAX {
                return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
            }
            let text = fs::read_to_string(&real)?;
            Ok(Self { real, text: Some(text) })
        };
        read().map_err(|error| unreadable(error.to_string()).into())
    }

    /// Returns true if there is a file.
    pub(super) fn exists(&self) -> bool {
        self.text.is_some()
    }

    /// Its content; empty if it does not exist.
    pub(super) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Puts `text` in the file's place and gives the copy of what it was. A file that has changed
    /// since it was read stays as it is.
    pub(super) fn replace(&self, text: &str) -> anyhow::Result<Option<PathBuf>> {
        self.replaced(text, true)
    }

    /// The same without a copy, for content that keeps everything in the file.
    pub(super) fn replace_without_copy(&self, text: &str) -> anyhow::Result<()> {
        self.replaced(text, false).map(drop)
    }

    fn replaced(&self, text: &str, keeps_copy: bool) -> anyhow::Result<Option<PathBuf>> {
        let path = self.real.display();
        let current = Self::read(&self.real)?;
        if current.text != self.text {
            let message = format!("`{path}` was changed by another program at the same time");
            return Err(Failure::new(EXIT_RUNTIME, message, "try again").into());
        }
        self.write(text, keeps_copy).map_err(|error| {
            let message = format!("`{path}` cannot be written: {error}");
            Failure::new(
                EXIT_RUNTIME,
                message,
                "the file is as it was; make sure that its folder can be written",
            )
            .into()
        })
    }

    fn write(&self, text: &str, keeps_copy: bool) -> io::Result<Option<PathBuf>> {
        let folder = self.real.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        let backup = self.text.as_ref().filter(|_| keeps_copy);
        let backup = backup.map(|old| self.back_up(old)).transpose()?;
        let name = self.real.file_name().unwrap_or_default().to_string_lossy();
        let draft = folder.join(format!(".{name}.haft-{}", std::process::id()));
        let written = self.draft(&draft, text).and_then(|()| fs::rename(&draft, &self.real));
        if written.is_err() {
            // The cause is reported; the draft must not stay.
            let _ = fs::remove_file(&draft);
            if let Some(backup) = &backup {
                let _ = fs::remove_file(backup);
            }
        }
        written?;
        File::open(folder)?.sync_all()?;
        Ok(backup)
    }

    /// A copy under a name that is free: older copies stay.
    fn back_up(&self, old: &str) -> io::Result<PathBuf> {
        for number in 0..BACKUPS_MAX {
            let mut name = self.real.clone().into_os_string();
            name.push(if number == 0 { ".bak".to_owned() } else { format!(".bak.{number}") });
            let path = PathBuf::from(name);
            match self.draft(&path, old) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(format!("there are {BACKUPS_MAX} backups beside it already")))
    }

    /// A new file with the owner and the permissions of the one it copies or replaces.
    fn draft(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let like = self.text.is_some().then(|| fs::metadata(&self.real)).transpose()?;
        if like.is_some() {
            options.mode(DRAFT_MODE);
        }
        let mut file = options.open(path)?;
        if let Some(like) = like {
            let own = file.metadata()?;
            if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
                fchown(&file, Some(like.uid()), Some(like.gid()))?;
            }
            file.set_permissions(like.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }
}

/// An error in the user's file, which was not changed.
pub(super) fn broken(path: &Path, error: &haft_config::edit::EditError) -> anyhow::Error {
    let message = format!("`{}` cannot be changed: {error}", path.display());
    Failure::new(EXIT_CONFIG, message, format!("{}; nothing was changed", error.remedy())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients write their files while they run; what one wrote in between is not undone.
    #[test]
    fn a_file_that_changed_since_it_was_read_stays() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("file.json");
        for (before, after) in [(Some("old"), "newer"), (None, "new")] {
            if let Some(before) = before {
                fs::write(&path, before)?;
            }
            let file = UserFile::read(&path)?;
            fs::write(&path, after)?;
            let refused = file.replace("ours").map_err(|error| error.to_string());
            assert!(refused.is_err_and(|it| it.contains("changed by another program")));
            assert_eq!(fs::read_to_string(&path)?, after);
            fs::remove_file(&path)?;
        }
        assert_eq!(fs::read_dir(folder.path())?.count(), 0);
        Ok(())
    }
}
