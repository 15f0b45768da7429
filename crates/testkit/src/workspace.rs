//! A folder of its own for one test.

use std::path::{Path, PathBuf};

use regex::Regex;
use tempfile::TempDir;

/// A temporary folder with files in it, gone when the test ends. Beside it lies a home for the state of the programs
/// that run in it.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    _dir: TempDir,
    state: TempDir,
}

impl Workspace {
    /// An empty folder.
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        // What a program prints is the real path, so that one is compared with.
        let path = dir.path().canonicalize().expect("the folder's real path");
        let state = tempfile::tempdir().expect("a temporary folder for the state");
        Self { path, _dir: dir, state }
    }

    /// A folder with files, each given by its relative path and its text.
    pub fn with(files: &[(&str, &str)]) -> Self {
        let workspace = Self::new();
        for (path, text) in files {
            workspace.write(path, text);
        }
        workspace
    }

    /// Writes a file, with the folders around it.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let full = self.path.join(path);
        let folder = full.parent().expect("a file has a folder");
        std::fs::create_dir_all(folder).expect("the file's folder");
        std::fs::write(&full, text).expect("the file");
        full
    }

    /// The text of a file, where it exists.
    pub fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path.join(path)).ok()
    }

    /// Where the folder lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The variable that puts the state of a program into this test's own folder, and not the user's.
    pub fn state_home(&self) -> (&'static str, PathBuf) {
        ("XDG_STATE_HOME", self.state.path().to_path_buf())
    }

    /// Replaces everything that differs from run to run: the folders, execution ids, times and durations.
    pub fn stable(&self, text: &str) -> String {
        let text = text.replace(&self.path.display().to_string(), "WORKSPACE");
        let text = text.replace(&self.state.path().display().to_string(), "STATE-HOME");
        let changing = [
            (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "EXECUTION-ID"),
            (r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "TIME"),
            (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME"),
            (r#""(duration|queued)_ms": ?\d+"#, r#""${1}_ms": N"#),
            (r"\b\d+ms ([{(])", "Nms $1"),
        ];
        changing.iter().fold(text, |text, (pattern, word)| {
            let pattern = Regex::new(pattern).expect("a valid pattern");
            pattern.replace_all(&text, *word).into_owned()
        })
    }
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}
