//! Removes a folder with everything in it, however deep that is and whatever permissions it has: code may have made it so
//! on purpose. Every folder inside is moved up to the top before it is emptied, so no path is long, nothing is open for
//! each level, and nothing calls itself.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use uuid::Uuid;

/// Removes `top`. It is no error that it is gone already.
pub(super) fn remove(top: &Path) -> io::Result<()> {
    open_up(top);
    loop {
        let mut has_folders = false;
        for entry in read(top)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                has_folders = true;
                empty(&entry.path(), top)?;
                fs::remove_dir(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        // What was moved up may not be listed in the same look.
        if !has_folders {
            return gone(fs::remove_dir(top));
        }
    }
}

/// Takes everything out of a folder: files are removed, folders moved to the top.
fn empty(folder: &Path, top: &Path) -> io::Result<()> {
    open_up(folder);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            // Whoever moves a folder writes into it: what is above it changes.
            open_up(&entry.path());
            fs::rename(entry.path(), top.join(Uuid::now_v7().simple().to_string()))?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Code may have closed folders even to their owner.
fn open_up(folder: &Path) {
    // What cannot be opened is found when it is read.
    let _ = fs::set_permissions(folder, Permissions::from_mode(0o700));
}

fn read(top: &Path) -> io::Result<Vec<io::Result<fs::DirEntry>>> {
    match fs::read_dir(top) {
        Ok(entries) => Ok(entries.collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Deeper than any path can name, and closed.
    #[test]
    fn a_folder_goes_however_deep_and_closed_it_is() {
        let parent = tempfile::tempdir().unwrap();
        let top = parent.path().join("top");
        let outside = parent.path().join("outside");
        fs::create_dir_all(top.join("a/b/c")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "").unwrap();
        std::os::unix::fs::symlink(&outside, top.join("a/link")).unwrap();
        let deep = "import os\nfor n in range(3000):\n    os.mkdir('d'); open('f', 'w').close(); os.chdir('d')\nos.chmod('.', 0)";
        let made = Command::new("python3").args(["-c", deep]).current_dir(&top).status();
        assert!(made.unwrap().success());
        for closed in ["a/b/c", "a/b", "a"] {
            fs::set_permissions(top.join(closed), Permissions::from_mode(0o000)).unwrap();
        }
        remove(&top).unwrap();
        assert!(!top.exists() && outside.join("kept").exists());
        remove(&top).unwrap();
    }
}
