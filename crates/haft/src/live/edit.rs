//! One change of the registry: what is asked for, and why it may be refused.

use haft_bounds::parse_error::describe;
use serde_json::value::RawValue;

use super::document::{Document, Entries, entry_tag, with_disabled};
use super::store::{Documents, Revision, StoreError};
use crate::config::{ConfigError, nearest};
use crate::runtime::StartError;

/// A change of one entry of the registry.
#[derive(Debug, Clone)]
pub struct Edit {
    /// Which document.
    pub document: Document,
    /// The entry's name.
    pub name: String,
    /// What to do with it.
    pub action: Action,
    /// Under which condition.
    pub condition: Condition,
}

/// What to do with an entry.
#[derive(Debug, Clone)]
pub enum Action {
    /// Add it; it must not be there yet.
    Add(Box<RawValue>),
    /// Replace it, or add it.
    Put(Box<RawValue>),
    /// Take it out.
    Remove,
    /// Leave a server out without removing it, or take it back in.
    SetDisabled(bool),
}

/// Under which condition an edit is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// In any case.
    Always,
    /// Only while the entry says what it said under this tag.
    EntryIs(String),
    /// Only while the whole registry is at this revision.
    RegistryIs(Revision),
}

/// What an edit did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// What happened to the entry.
    pub what: Happened,
    /// The registry's revision with the edit, and with those that were made in the same step.
    pub revision: Revision,
    /// Names what the entry says now; nothing for one that is gone.
    pub tag: Option<String>,
}

/// What happened to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// It was added.
    Added,
    /// It was replaced.
    Replaced,
    /// It was taken out.
    Removed,
}

/// Why an edit was refused. Nothing has changed then, except where [`StoreError::Write`] says so.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// There is nowhere to write to.
    #[error("there is no registry to write to")]
    NoRegistry,
    /// The entry is there already.
    #[error("`{name}` is there already")]
    Exists {
        /// Its name.
        name: String,
    },
    /// The entry is not there.
    #[error("the registry has no entry `{name}`")]
    Missing {
        /// Its name.
        name: String,
        /// The most similar name there is.
        nearest: Option<String>,
    },
    /// The name belongs to a file that only people write to.
    #[error("`{name}` is configured in `{file}`, which Haft does not write to")]
    ReadOnly {
        /// Its name.
        name: String,
        /// The file.
        file: String,
    },
    /// The entry, or the registry, says something else than the condition wants.
    #[error("`{name}` was changed in the meantime")]
    Changed {
        /// Its name.
        name: String,
    },
    /// The configuration would not be valid.
    #[error("{0}")]
    Invalid(ConfigError),
    /// The toolbox would refuse to run like that.
    #[error("{0}")]
    Refused(#[from] StartError),
    /// The operator does not allow it.
    #[error("{problem}")]
    NotAllowed {
        /// What is not allowed.
        problem: String,
        /// What to do next.
        remedy: String,
    },
    /// The files are broken, and nothing is written over them before they are mended.
    #[error("`{file}` is broken and is not written over: {problem}")]
    Broken {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The registry cannot be read or written.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// Too many edits are waiting.
    #[error("too many changes are waiting")]
    Busy,
    /// The toolbox is shutting down.
    #[error("Haft is shutting down")]
    Stopping,
}

impl EditError {
    /// What to do next.
    pub fn remedy(&self) -> String {
        match self {
            Self::NoRegistry => {
                "set `registry: {dir: ./tools}` in haft.yaml, with a tools.json and an mcp.json there"
                    .to_owned()
            }
            Self::Exists { name } => format!("replace `{name}` instead, or choose another name"),
            Self::Missing { nearest: Some(nearest), .. } => format!("did you mean `{nearest}`?"),
            Self::Missing { nearest: None, .. } => "list what there is".to_owned(),
            Self::ReadOnly { file, .. } => format!("change it in `{file}`, or choose another name"),
            Self::Changed { .. } => "read it again and decide anew".to_owned(),
            Self::Invalid(ConfigError { problems }) => {
                problems.first().map(|problem| problem.remedy.clone()).unwrap_or_default()
            }
            Self::Refused(error) => error
                .remedy()
                .unwrap_or_else(|| "add what is missing to the tool's settings first".to_owned()),
            Self::NotAllowed { remedy, .. } => remedy.clone(),
            Self::Broken { file, .. } => format!("mend `{file}` by hand first"),
            Self::Store(error) => error.remedy().to_owned(),
            Self::Busy => "try again in a moment".to_owned(),
            Self::Stopping => "try again when it is back".to_owned(),
        }
    }
}

impl Edit {
    /// Makes the change in `documents`, which are at `revision` if that has a name already. They
    /// stay as they are if it is refused.
    pub(super) fn make(
        &self,
        documents: &mut Documents,
        revision: Option<&Revision>,
        nodes_max: usize,
    ) -> Result<Made, EditError> {
        let text = match self.document {
            Document::Tools => &mut documents.tools,
            Document::Servers => &mut documents.servers,
        };
        let mut entries = Entries::parse(self.document, text, nodes_max).map_err(|problem| {
            EditError::Broken { file: self.document.file_name().to_owned(), problem }
        })?;
        let tag = entries.get(&self.name).map(entry_tag);
        match &self.condition {
            Condition::Always => {}
            Condition::EntryIs(wanted) if tag.as_ref() == Some(wanted) => {}
            Condition::RegistryIs(wanted) if Some(wanted) == revision => {}
            Condition::EntryIs(_) if tag.is_none() => return Err(self.missing(&entries)),
            Condition::EntryIs(_) | Condition::RegistryIs(_) => {
                return Err(EditError::Changed { name: self.name.clone() });
            }
        }
        let new = match &self.action {
            Action::Add(_) if tag.is_some() => {
                return Err(EditError::Exists { name: self.name.clone() });
            }
            Action::Add(entry) | Action::Put(entry) => Some(entry.clone()),
            Action::Remove if tag.is_none() => return Err(self.missing(&entries)),
            Action::Remove => None,
            Action::SetDisabled(is_disabled) => {
                let entry = entries.get(&self.name).ok_or_else(|| self.missing(&entries))?;
                Some(with_disabled(entry, *is_disabled).map_err(|error| self.unreadable(&error))?)
            }
        };
        // What is permitted is looked up by name, so an entry has no other name than its edit.
        let name = match &new {
            Some(entry) => self.document.name_in(entry).map_err(|error| self.unreadable(&error))?,
            None => None,
        };
        if name.is_some_and(|name| name != self.name) {
            return Err(EditError::NotAllowed {
                problem: format!("the entry for `{}` has another name", self.name),
                remedy: format!("name it `{}`", self.name),
            });
        }
        let what = match (&tag, &new) {
            (None, _) => Happened::Added,
            (Some(_), Some(_)) => Happened::Replaced,
            (Some(_), None) => Happened::Removed,
        };
        let tag = new.as_deref().map(entry_tag);
        match new {
            Some(entry) => {
                entries.put(&self.name, entry).map_err(|error| self.unreadable(&error))?;
            }
            None => drop(entries.remove(&self.name)),
        }
        *text = entries.render();
        Ok(Made { what, tag })
    }

    fn missing(&self, entries: &Entries) -> EditError {
        let nearest = nearest(&self.name, entries.names()).map(ToOwned::to_owned);
        EditError::Missing { name: self.name.clone(), nearest }
    }

    fn unreadable(&self, error: &serde_json::Error) -> EditError {
        EditError::NotAllowed {
            problem: format!("the entry `{}` cannot be read: {}", self.name, describe(error)),
            remedy: "send a JSON object".to_owned(),
        }
    }
}

/// What an edit did to the documents.
pub(super) struct Made {
    pub(super) what: Happened,
    pub(super) tag: Option<String>,
}
