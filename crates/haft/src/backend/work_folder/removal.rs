//! Removes a folder with all its content, regardless of depth and permissions: the code may have
//! created these on purpose, and may still be changing them. Every inner folder is moved to the top
//! before it is emptied, so there is no recursion and no descriptor per level. All access goes
//! through open folders that are not links, so nothing outside is touched.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, renameat, unlinkat};
use rustix::io::Errno;
use uuid::Uuid;

use super::open_folder::open;

/// Maximum number of passes over the top folder. Each pass empties the folders that were moved up,
/// so only code that keeps creating folders needs more.
const PASSES_MAX: u32 = 1_000_000;

/// Removes `top`. A missing folder is not an error.
pub(super) fn remove(top: &Path) -> io::Result<()> {
    let folder = match open(CWD, top) {
        Err(Errno::NOENT) => return Ok(()),
        folder => folder?,
    };
    for _ in 0..PASSES_MAX {
        let mut was_empty = true;
        for name in names(&folder)? {
            was_empty = false;
            if !unlinked(&folder, &name)? {
                empty(&open(&folder, &*name)?, &folder)?;
                unlinkat(&folder, &*name, AtFlags::REMOVEDIR)?;
            }
        }
        if was_empty {
            return fs::remove_dir(top);
        }
    }
    Err(io::Error::other("it grows faster than it can be removed"))
}

/// Empties a folder: files are removed, folders moved to the top.
fn empty(folder: &OwnedFd, top: &OwnedFd) -> io::Result<()> {
    for name in names(folder)? {
        if !unlinked(folder, &name)? {
            // Moving a folder changes its parent entry, so the folder must be writable.
            drop(open(folder, &*name)?);
            renameat(folder, &*name, top, Uuid::now_v7().simple().to_string())?;
        }
    }
    Ok(())
}

/// Removes an entry that is not a folder. Returns false for a folder.
fn unlinked(folder: &OwnedFd, name: &CStr) -> io::Result<bool> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn names(folder: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.as_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}

/// Returns true if a folder belongs to this user.
pub(super) fn is_own(folder: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let uid = rustix::process::geteuid().as_raw();
    folder.metadata().is_ok_and(|it| it.uid() == uid)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    /// Deeper than any path can name, and without permissions; links are not followed.
    #[test]
    fn a_folder_is_removed_however_deep_and_closed_it_is() {
        let parent = tempfile::tempdir().unwrap();
        let top = parent.path().join("top");
        let outside = parent.path().join("outside");
        fs::create_dir_all(top.join("a/b/c")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::set_permissions(&outside, Permissions::from_mode(0o755)).unwrap();
        fs::write(outside.join("kept"), "").unwrap();
        for link in ["link", "a/link", "a/b/link"] {
            std::os::unix::fs::symlink(&outside, top.join(link)).unwrap();
        }
        let deep = "import os\nfor n in range(3000):\n    os.mkdir('d'); open('f', 'w').close(); os.chdir('d')\nos.chmod('.', 0)";
        let made = Command::new("python3").args(["-c", deep]).current_dir(&top).status();
        assert!(made.unwrap().success());
        for closed in ["a/b/c", "a/b", "a", ""] {
            fs::set_permissions(top.join(closed), Permissions::from_mode(0o000)).unwrap();
        }
        remove(&top).unwrap();
        assert!(!top.exists() && outside.join("kept").exists());
        assert_eq!(outside.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        remove(&top).unwrap();
        // A link in place of the folder is left alone, and so is its target.
        std::os::unix::fs::symlink(&outside, &top).unwrap();
        remove(&top).unwrap_err();
        assert!(outside.join("kept").exists());
    }
}
