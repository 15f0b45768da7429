//! Edits of the registry, and the reasons why they are refused.

use haft_bounds::parse_error::describe;
use haft_config::Remedy;
use serde_json::value::RawValue;

use super::document::{Entries, ParsedTools, RegistryDocument, entry_tag, with_disabled};
use super::store::{Documents, Revision, StoreError};
use super::upload::{UploadedScript, split};
use crate::config::ConfigError;
use crate::runtime::StartError;
use haft_text::nearest;

/// A change of one entry of the registry.
#[derive(Debug, Clone)]
pub struct Edit {
    /// The document.
    pub document: RegistryDocument,
    /// The entry's name.
    pub name: String,
    /// The action.
    pub action: Action,
    /// The precondition.
    pub condition: Condition,
}

/// An action on an entry.
#[derive(Debug, Clone)]
pub enum Action {
    /// Add it; it must not exist.
    Add(Box<RawValue>),
    /// Replace it, or add it.
    Put(Box<RawValue>),
    /// Remove it.
    Remove,
    /// Disable or enable a server without removing it.
    SetDisabled(bool),
}

/// The precondition of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// None.
    Always,
    /// The entry still has this tag.
    EntryIs(String),
    /// The whole registry is still at this revision.
    RegistryIs(Revision),
}

/// The result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditOutcome {
    /// The effect on the entry.
    pub what: EditEffect,
    /// The registry's revision with this edit and those of the same batch.
    pub revision: Revision,
    /// The tag of the entry's new content; `None` if it was removed.
    pub tag: Option<String>,
}

/// The effect of an edit on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditEffect {
    /// It was added.
    Added,
    /// It was replaced.
    Replaced,
    /// It was removed.
    Removed,
}

/// Reasons why an edit is refused. Nothing has changed, except as [`StoreError::Write`] describes.
#[derive(Debug, thiserror::Error)]
pub enum RegistryEditError {
    /// No registry is configured.
    #[error("there is no registry to write to")]
    NoRegistry,
    /// The entry already exists.
    #[error("`{name}` is there already")]
    Exists {
        /// Its name.
        name: String,
    },
    /// The entry does not exist.
    #[error("the registry has no entry `{name}`")]
    Missing {
        /// Its name.
        name: String,
        /// The most similar existing name.
        nearest: Option<String>,
    },
    /// The name belongs to a file that only people edit.
    #[error("`{name}` is configured in `{file}`, which Haft does not write to")]
    ReadOnly {
        /// Its name.
        name: String,
        /// The file.
        file: String,
    },
    /// The entry or the registry does not meet the precondition.
    #[error("`{name}` was changed in the meantime")]
    Changed {
        /// Its name.
        name: String,
    },
    /// The resulting configuration is invalid.
    #[error("{0}")]
    Invalid(ConfigError),
    /// The toolbox cannot start with the result.
    #[error("{0}")]
    Refused(#[from] StartError),
    /// The operator's policy does not allow it.
    #[error("{problem}")]
    NotAllowed {
        /// The part that is not allowed.
        problem: String,
        /// The remedy.
        remedy: String,
    },
    /// The files are invalid, and are not overwritten until they are fixed.
    #[error("`{file}` is broken and is not written over: {problem}")]
    Broken {
        /// The file.
        file: String,
        /// The problem of the file.
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

impl RegistryEditError {
    /// The remedy.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::NoRegistry => {
                "set `registry: {dir: ./tools}` in haft.yaml, with a tools.json and an mcp.json there"
                    .into()
            }
            Self::Exists { name } => {
                format!("replace `{name}` instead, or choose another name").into()
            }
            Self::Missing { nearest: Some(nearest), .. } => {
                format!("did you mean `{nearest}`?").into()
            }
            Self::Missing { nearest: None, .. } => "list what there is".into(),
            Self::ReadOnly { file, .. } => {
                format!("change it in `{file}`, or choose another name").into()
            }
            Self::Changed { .. } => "read it again and retry".into(),
            Self::Invalid(ConfigError { problems }) => problems
                .first()
                .map_or_else(|| "fix the entry".into(), |problem| problem.remedy.clone()),
            Self::Refused(error) => error.remedy().map_or_else(
                || "add what is missing to the tool's settings first".into(),
                Remedy::from,
            ),
            Self::NotAllowed { remedy, .. } => remedy.as_str().into(),
            Self::Broken { file, .. } => format!("fix `{file}` by hand first").into(),
            Self::Store(error) => error.remedy().into(),
            Self::Busy => "try again shortly".into(),
            Self::Stopping => "try again when it is back".into(),
        }
    }
}

impl Edit {
    /// Applies the edit to `documents`, which are at `revision` if known. A refused edit leaves
    /// them unchanged.
    pub(super) fn make(
        &self,
        documents: &mut Documents,
        revision: Option<&Revision>,
        nodes_max: usize,
        parsed: &mut ParsedTools,
    ) -> Result<AppliedEdit, RegistryEditError> {
        let text = match self.document {
            RegistryDocument::Tools => &mut documents.tools,
            RegistryDocument::Servers => &mut documents.servers,
        };
        let broken = |problem| {
            let file = self.document.file_name().to_owned();
            RegistryEditError::Broken { file, problem }
        };
        let mut of_servers;
        let entries = match self.document {
            RegistryDocument::Tools => parsed.of(text, nodes_max).map_err(broken)?,
            RegistryDocument::Servers => {
                of_servers = Entries::parse(self.document, text, nodes_max).map_err(broken)?;
                &mut of_servers
            }
        };
        let tag = entries.get(&self.name).map(entry_tag);
        match &self.condition {
            Condition::Always => {}
            Condition::EntryIs(wanted) if tag.as_ref() == Some(wanted) => {}
            Condition::RegistryIs(wanted) if Some(wanted) == revision => {}
            Condition::EntryIs(_) if tag.is_none() => return Err(self.missing(entries)),
            Condition::EntryIs(_) | Condition::RegistryIs(_) => {
                return Err(RegistryEditError::Changed { name: self.name.clone() });
            }
        }
        let mut script = None;
        let new = match &self.action {
            Action::Add(_) if tag.is_some() => {
                return Err(RegistryEditError::Exists { name: self.name.clone() });
            }
            Action::Add(entry) | Action::Put(entry) => {
                let (entry, uploaded) = match self.document {
                    RegistryDocument::Tools => split(&self.name, entry.clone())?,
                    RegistryDocument::Servers => (entry.clone(), None),
                };
                script = uploaded;
                Some(entry)
            }
            Action::Remove if tag.is_none() => return Err(self.missing(entries)),
            Action::Remove => None,
            Action::SetDisabled(is_disabled) => {
                let entry = entries.get(&self.name).ok_or_else(|| self.missing(entries))?;
                Some(with_disabled(entry, *is_disabled).map_err(|error| self.unreadable(&error))?)
            }
        };
        // The policy looks entries up by name, so an entry must have the name of its edit.
        let name = match &new {
            Some(entry) => self.document.name_in(entry).map_err(|error| self.unreadable(&error))?,
            None => None,
        };
        if name.is_some_and(|name| name != self.name) {
            return Err(RegistryEditError::NotAllowed {
                problem: format!("the entry for `{}` has another name", self.name),
                remedy: format!("name it `{}`", self.name),
            });
        }
        let what = match (&tag, &new) {
            (None, _) => EditEffect::Added,
            (Some(_), Some(_)) => EditEffect::Replaced,
            (Some(_), None) => EditEffect::Removed,
        };
        let tag = new.as_deref().map(entry_tag);
        let changed = match new {
            Some(entry) => entries.put(&self.name, &entry),
            None => entries.remove(&self.name).map(drop),
        };
        changed.map_err(|error| self.unreadable(&error))?;
        entries.text().clone_into(text);
        Ok(AppliedEdit { what, tag, script })
    }

    fn missing(&self, entries: &Entries) -> RegistryEditError {
        let nearest = nearest(&self.name, entries.names()).map(ToOwned::to_owned);
        RegistryEditError::Missing { name: self.name.clone(), nearest }
    }

    fn unreadable(&self, error: &serde_json::Error) -> RegistryEditError {
        RegistryEditError::NotAllowed {
            problem: format!("the entry `{}` cannot be read: {}", self.name, describe(error)),
            remedy: "send a JSON object".to_owned(),
        }
    }
}

/// The effect of an edit on the documents.
pub(super) struct AppliedEdit {
    pub(super) what: EditEffect,
    pub(super) tag: Option<String>,
    /// The script that the entry brought along.
    pub(super) script: Option<UploadedScript>,
}
