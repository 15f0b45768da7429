//! The trust store: one small file for each answer, in the user's state folder.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use super::starts::Starts;
use crate::cli::load::state_home;

/// Only the user reads and writes it.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The folder of answers. Without a home there is none, and nothing is known.
#[derive(Debug)]
pub(super) struct TrustStore(Option<PathBuf>);

impl TrustStore {
    /// `$XDG_STATE_HOME/haft/trusted`, or the same below `~/.local/state`.
    pub(super) fn from_process() -> Self {
        Self(state_home().map(|state| state.join("trusted")))
    }

    /// Returns true if the user agreed. A store that cannot be read knows nothing.
    pub(super) fn knows(&self, digest: &str) -> bool {
        self.0.as_ref().is_some_and(|folder| folder.join(digest).is_file())
    }

    /// Keeps the answer, with what was agreed to, for people who read the file.
    pub(super) fn remember(&self, starts: &Starts) -> io::Result<()> {
        let folder = self.0.as_ref().ok_or_else(|| io::Error::other("HOME is not set"))?;
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(FILE_MODE);
        let mut file = options.open(folder.join(starts.digest()))?;
        writeln!(file, "{}\n{}", starts.file(), starts.lines().join("\n"))
    }
}
