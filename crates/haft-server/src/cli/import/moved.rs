//! `--move`: takes imported entries out of the client's file.

use std::path::{Path, PathBuf};

use haft::config::{Dialect, Imported};
use haft_config::edit::{Document, Syntax};

use crate::cli::user_file::{UserFile, broken};
use crate::cli::{EXIT_CONFIG, Failure};

/// A client's file and its text without the entries.
pub(super) struct Plan {
    file: UserFile,
    text: String,
}

/// Prepares the change, so that nothing is written if it is not possible.
pub(super) fn plan(path: &Path, imported: &Imported) -> anyhow::Result<Plan> {
    let section = match imported.formats.first() {
        Some(Dialect::Claude | Dialect::Cursor | Dialect::Mcphost | Dialect::Inspector) => {
            "mcpServers"
        }
        Some(Dialect::Vscode) => "servers",
        Some(Dialect::Codex) => "mcp_servers",
        Some(Dialect::Goose) => "extensions",
        _ => {
            let message = format!("`{}` is not the file of an MCP client", path.display());
            let remedy = "leave `--move` out and delete the entries by hand";
            return Err(Failure::new(EXIT_CONFIG, message, remedy).into());
        }
    };
    let file = UserFile::read(path)?;
    let syntax = Syntax::of(&path.display().to_string());
    let mut text = file.text().to_owned();
    for name in imported.servers.keys() {
        let document = Document::read(&text, syntax).map_err(|it| broken(path, &it))?;
        let entries = document.entries(section).map_err(|it| broken(path, &it))?;
        if !entries.contains_key(name) {
            let message = format!("`{name}` is not in `{section}` of `{}`", path.display());
            let remedy = "leave `--move` out and delete the entry by hand";
            return Err(Failure::new(EXIT_CONFIG, message, remedy).into());
        }
        text = document.remove(section, name).map_err(|it| broken(path, &it))?;
    }
    Ok(Plan { file, text })
}

impl Plan {
    /// Writes the file and returns the copy of what it was.
    pub(super) fn carry_out(self) -> anyhow::Result<Option<PathBuf>> {
        self.file.replace(&self.text)
    }
}
