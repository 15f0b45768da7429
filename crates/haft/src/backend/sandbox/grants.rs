//! The files that a sandboxed program may use, as a list that both mechanisms enforce.

use std::fs;
use std::path::{Path, PathBuf};

use haft_config::config::sandbox::plain_path;
use serde::{Deserialize, Serialize};

use super::failure::SandboxError;

/// Maximum number of entries that are granted one by one, because a file of Haft lies among them.
const ENTRIES_MAX: usize = 10_000;

/// One file or folder, with everything below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grant {
    pub(super) path: PathBuf,
    pub(super) access: Access,
}

/// The rights on a path, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Access {
    /// A symbolic link inside a folder that is granted entry by entry. It grants no right on its target.
    Link,
    /// The names of the entries.
    List,
    /// Reading and executing.
    Read,
    /// Reading and writing a device.
    Device,
    /// Everything.
    Write,
}

/// Collects grants. A folder with files of Haft in it is granted without them.
pub(super) struct Grants<'a> {
    own_files: Vec<PathBuf>,
    list: Vec<Grant>,
    setting: &'a str,
}

impl<'a> Grants<'a> {
    /// `setting` names the place of the lists, for messages.
    pub(super) fn new(own_files: &[PathBuf], setting: &'a str) -> Self {
        let own_files = own_files.iter().map(|path| resolved(path)).collect();
        Self { own_files, list: Vec::new(), setting }
    }

    pub(super) fn add(&mut self, path: &Path, access: Access) {
        self.list.push(Grant { path: path.to_owned(), access });
    }

    /// Grants reading a path, without the files of Haft below it.
    pub(super) fn read(&mut self, path: &Path) -> Result<(), SandboxError> {
        let real = self.existing(path, "read")?;
        let holds_own = self.own_files.iter().any(|own| own.starts_with(&real));
        // The whole machine is asked for as such. A path inside the files of Haft is named on purpose.
        if !holds_own || real == Path::new("/") || self.own_files.contains(&real) {
            self.add(path, Access::Read);
            if real != path {
                self.add(&real, Access::Read);
            }
            return Ok(());
        }
        let mut entries = 0;
        self.read_entries(&real, &mut entries)
    }

    /// Grants the entries of a folder one by one. A file that appears there later is not granted.
    fn read_entries(&mut self, folder: &Path, entries: &mut usize) -> Result<(), SandboxError> {
        self.add(folder, Access::List);
        let unreadable = |error: &dyn std::fmt::Display| {
            SandboxError::unavailable(
                format!("the folder `{}` cannot be granted: {error}", folder.display()),
                "let this user read it, or run the program in another folder",
            )
        };
        for entry in fs::read_dir(folder).map_err(|error| unreadable(&error))? {
            let entry = entry.map_err(|error| unreadable(&error))?;
            let kind = entry.file_type().map_err(|error| unreadable(&error))?;
            let path = entry.path();
            *entries += 1;
            if *entries > ENTRIES_MAX {
                return Err(unreadable(&format_args!(
                    "it holds files of Haft and more than {ENTRIES_MAX} entries"
                )));
            }
            if kind.is_symlink() {
                self.add(&path, Access::Link);
            } else if !self.own_files.iter().any(|own| own.starts_with(&path)) {
                self.add(&path, Access::Read);
            } else if !self.own_files.contains(&path) {
                self.read_entries(&path, entries)?;
            }
        }
        Ok(())
    }

    /// Grants reading and writing a path, which must not hold files of Haft.
    pub(super) fn write(&mut self, path: &Path) -> Result<(), SandboxError> {
        let real = self.existing(path, "write")?;
        let is_own = |own: &PathBuf| own.starts_with(&real) || real.starts_with(own);
        if let Some(own) = self.own_files.iter().find(|own| is_own(own)) {
            return Err(SandboxError::unavailable(
                format!(
                    "`{}` in `{}.write` holds files of Haft: `{}`",
                    path.display(),
                    self.setting,
                    own.display()
                ),
                "list folders that hold no files of Haft, or move `state_dir` and `log.dir`",
            ));
        }
        self.add(path, Access::Write);
        if real != path {
            self.add(&real, Access::Write);
        }
        Ok(())
    }

    fn existing(&self, path: &Path, list: &str) -> Result<PathBuf, SandboxError> {
        path.canonicalize().map_err(|error| {
            SandboxError::unavailable(
                format!(
                    "`{}` in `{}.{list}` cannot be granted: {error}",
                    path.display(),
                    self.setting
                ),
                "create it, or correct the path",
            )
        })
    }

    /// All grants, a folder before what lies in it, each path once with its strongest right.
    pub(super) fn into_list(mut self) -> Vec<Grant> {
        self.list.sort();
        self.list.dedup();
        let mut list: Vec<Grant> = Vec::with_capacity(self.list.len());
        for grant in self.list {
            list.pop_if(|before| before.path == grant.path);
            list.push(grant);
        }
        list
    }
}

/// The real path, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let path = plain_path(path);
    for ancestor in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path
}
