//! The native file that commands change: `servers add`, `servers remove`, `tools new`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use haft::Config;
use haft::config::{Dialect, LoadOptions, check_text};
use haft_config::edit::{Document, EditError, Syntax};

use super::user_file::{UserFile, broken};
use super::{EXIT_CONFIG, Failure, Global, load, remedy, trust};

/// The file that is made where there is none.
const NEW_FILE: &str = "haft.yaml";
/// Stands for a variable that is not set here. A valid address too, so that it fits wherever a string does.
const PLACEHOLDER: &str = "http://127.0.0.1";

/// A native file, ready to be changed.
pub(super) struct ConfigFile {
    /// As the user names it.
    shown: PathBuf,
    target: PathBuf,
    file: UserFile,
    /// True if its programs may be started without a question.
    is_trusted: bool,
}

/// A change that was written.
pub(super) struct Written {
    pub(super) file: PathBuf,
    /// The copy of the previous content, if one was kept.
    pub(super) backup: Option<PathBuf>,
}

/// The effect of a change on what the file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Everything in it stays.
    Adds,
    /// An entry is removed or replaced, so a copy is kept.
    Removes,
}

impl ConfigFile {
    /// Opens the first native file of the configuration; without a configuration, a new one in this folder.
    pub(super) fn open(global: &Global) -> anyhow::Result<Self> {
        if !load::is_named(global) {
            return Self::at(PathBuf::from(NEW_FILE), true);
        }
        let files = load::files(global)?;
        let missing = files.iter().find(|file| !file.exists());
        if let Some(missing) = missing {
            return Self::at(missing.clone(), true);
        }
        // A broken entry can be replaced or removed, and a variable that is not set here may be set where Haft runs.
        let (config, _) = load::load_usable(global, files.clone())?;
        let Some(file) = config.files.iter().find(|file| file.dialect == Dialect::Native) else {
            let names: Vec<String> = files.iter().map(|it| format!("`{}`", it.display())).collect();
            let problem = format!("{} is not in Haft's own format", names.join(" and "));
            let remedy = "name a haft.yaml with `-c`, change the file by hand, or run `haft import FILE --write`";
            return Err(Failure::new(EXIT_CONFIG, problem, remedy).into());
        };
        // The programs of a broken entry are not part of the trusted ones.
        let is_trusted = config.misconfigured.is_empty() && trust::is_trusted(global, &config);
        Self::at(file.path.clone(), is_trusted)
    }

    fn at(shown: PathBuf, is_trusted: bool) -> anyhow::Result<Self> {
        let target = std::path::absolute(&shown)?;
        Ok(Self { file: UserFile::read(&target)?, shown, target, is_trusted })
    }

    pub(super) fn shown(&self) -> &Path {
        &self.shown
    }

    /// The folder that relative paths in the file start from.
    pub(super) fn folder(&self) -> &Path {
        self.target.parent().unwrap_or(Path::new("/"))
    }

    /// Changes the text and writes it, if the result is a valid configuration.
    pub(super) fn change(
        &self,
        global: &Global,
        kind: Change,
        change: impl FnOnce(&Document<'_>) -> Result<String, EditError>,
    ) -> anyhow::Result<Written> {
        let syntax = Syntax::of(&self.shown.display().to_string());
        let changed = Document::read(self.file.text(), syntax).and_then(|it| change(&it));
        let text = changed.map_err(|error| broken(&self.shown, &error))?;
        let mut options = LoadOptions { builtin: true, ..LoadOptions::from_process(Vec::new()) };
        for name in unset_variables(&text) {
            options.environment.insert(name, PLACEHOLDER.to_owned());
        }
        check_text(&text, &self.target, &options).map_err(remedy::in_problems)?;
        let backup = match kind {
            Change::Adds => {
                self.file.replace_without_copy(&text)?;
                None
            }
            Change::Removes => self.file.replace(&text)?,
        };
        if self.is_trusted
            && let Ok(config) = load::load(global)
        {
            // The user just wrote this entry.
            trust::trust_own(global, &config);
        }
        Ok(Written { file: self.shown.clone(), backup })
    }

    /// Returns true if a section has an entry of this name.
    pub(super) fn has(&self, section: &str, name: &str) -> anyhow::Result<bool> {
        let syntax = Syntax::of(&self.shown.display().to_string());
        let entries = Document::read(self.file.text(), syntax).and_then(|it| it.entries(section));
        Ok(entries.map_err(|error| broken(&self.shown, &error))?.contains_key(name))
    }
}

impl ConfigFile {
    /// The items of a list in the file; none if it is missing.
    pub(super) fn list(&self, section: &str) -> anyhow::Result<Vec<serde_json::Value>> {
        let syntax = Syntax::of(&self.shown.display().to_string());
        let items = Document::read(self.file.text(), syntax).and_then(|it| it.items(section));
        items.map_err(|error| broken(&self.shown, &error))
    }
}

/// The file of a configuration, as the user sees it.
pub(super) fn place_of(config: &Config, server: &str) -> Option<String> {
    let server = config.servers.iter().find(|it| it.name == server)?;
    Some(server.place.file.to_string())
}

/// The variables of a file or an entry that have no default and are not set here.
pub(super) fn unset_variables(text: &str) -> Vec<String> {
    variables(text).into_iter().filter(|name| std::env::var_os(name).is_none()).collect()
}

/// The names in `${NAME}` and `${env:NAME}`, without those that have a default or are written literally (`$${NAME}`).
fn variables(text: &str) -> BTreeSet<String> {
    let references = text.match_indices("${").filter(|(at, _)| !text[..*at].ends_with('$'));
    let parts = references.filter_map(|(at, start)| text[at + start.len()..].split_once('}'));
    let names = parts.map(|(name, _)| name.strip_prefix("env:").unwrap_or(name));
    let is_name = |name: &&str| {
        !name.is_empty() && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
    };
    names.filter(is_name).map(ToOwned::to_owned).collect()
}
