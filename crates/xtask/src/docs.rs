//! The documents: links that lead somewhere, requirement ids that are explained, spelling, and the Dockerfile.

mod anchors;
mod links;
mod requirements;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::peers::{folder, install_python};
use crate::run::{root, step};

/// The checkers of spelling and of Dockerfiles, pinned.
const PINS: &str = include_str!("../peers/lint.txt");

/// Debian packages of an image are not pinned: old versions leave the archive.
const HADOLINT: [&str; 3] = ["--ignore=DL3008", "--failure-threshold=warning", "deploy/Dockerfile"];

/// Checks everything. Each problem is reported with its file.
pub(crate) fn check() -> Result<()> {
    let root = root();
    let pages = files(&root, "md")?;
    let mut problems = links::check(&root, &pages)?;
    problems.extend(requirements::check(&root)?);
    if !problems.is_empty() {
        bail!("the documents have {} problems:\n{}", problems.len(), problems.join("\n"));
    }
    eprintln!("docs: the links of {} pages lead somewhere", pages.len());
    install_python("lint", PINS)?;
    let bin = folder().join("lint/bin");
    step(&mut Command::new(bin.join("typos")))?;
    step(Command::new(bin.join("hadolint")).args(HADOLINT))
}

/// The files with this extension that git knows or would add.
fn files(root: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let pattern = format!("*.{extension}");
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "--", &pattern]);
    let output = git.current_dir(root).output()?;
    let list = String::from_utf8(output.stdout)?;
    let exists = |path: &PathBuf| root.join(path).is_file();
    Ok(list.lines().map(PathBuf::from).filter(exists).collect())
}
