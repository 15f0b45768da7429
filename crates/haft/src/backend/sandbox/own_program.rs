//! The file of a program, and the folders that belong to it.

use std::env::split_paths;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::system;

/// Folders beside `bin` that a program of that prefix reads.
const BESIDE_BIN: [&str; 4] = ["lib", "lib32", "lib64", "libexec"];

/// The file that a start of `program` runs, with this `PATH`.
pub(super) fn find(program: &OsStr, path: Option<&OsStr>) -> io::Result<PathBuf> {
    let named = Path::new(program);
    if named.components().count() > 1 || named.is_absolute() {
        return if named.exists() {
            std::path::absolute(named)
        } else {
            Err(io::ErrorKind::NotFound.into())
        };
    }
    let can_run = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let found =
        split_paths(path.unwrap_or_default()).map(|folder| folder.join(named)).find(can_run);
    match found {
        Some(path) => std::path::absolute(path),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

/// The folders that the program at `file` reads: its own, the libraries of its prefix, the whole of a
/// virtual environment, and the versions behind the shims of a version manager. Links are followed, each
/// with the folder it lies in. Of a folder that many programs share, only the file itself is listed.
pub(super) fn folders(file: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut files = vec![file.to_owned()];
    files.extend(file.read_link().ok().and_then(|link| Some(file.parent()?.join(link))));
    files.extend(file.canonicalize().ok());
    files.dedup();
    for file in files {
        let Some(folder) = file.parent() else { continue };
        folders.push(file.clone());
        let Some(prefix) = folder.parent().filter(|prefix| prefix.parent().is_some()) else {
            continue;
        };
        match folder.file_name().and_then(OsStr::to_str) {
            Some("shims") => folders.push(prefix.to_owned()),
            Some("bin") if prefix.join("pyvenv.cfg").is_file() => folders.push(prefix.to_owned()),
            Some("bin") => {
                folders.push(folder.to_owned());
                folders.extend(BESIDE_BIN.map(|name| prefix.join(name)));
            }
            Some(_) | None => folders.push(folder.to_owned()),
        }
    }
    folders.retain(|folder| folder.exists() && !system::is_shared(folder));
    folders
}
