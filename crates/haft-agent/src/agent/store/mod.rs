//! Conversations on disk: one file each, one line for each message, only ever added to.

mod conversation_store;
mod journal;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::Serialize;

pub use conversation_store::{ConversationLog, ConversationStore, LogError, OwnerCheck};
pub(super) use journal::answered;
use journal::{Journal, Line, Written, first, read, take, unreadable};

use super::conversation::Conversation;
use super::turn::text_of;
use crate::model::ChatMessage;
use haft::config::Config;

/// The folder of conversations, in the state folder.
const SESSIONS_DIR: &str = "sessions";

/// Number of characters of the first message that the title shows.
const TITLE_CHARS: usize = 80;

/// The folder of conversations.
#[derive(Debug, Clone)]
pub struct SessionStore {
    dir: PathBuf,
}

/// A conversation that is kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Saved {
    /// Its id.
    pub id: String,
    /// The time of its start.
    #[serde(with = "haft::record::rfc3339")]
    pub created: Timestamp,
    /// The time of its last message.
    #[serde(with = "haft::record::rfc3339")]
    pub updated: Timestamp,
    /// The model it began with.
    pub model: String,
    /// Its owner: `cli`, or a key's. `None` for conversations from before owners were recorded.
    pub owner: Option<String>,
    /// The beginning of the first message.
    pub title: String,
    /// Number of messages.
    pub messages: usize,
}

/// Reasons why a conversation cannot be saved or found.
#[derive(Debug, thiserror::Error)]
pub enum SessionStoreError {
    /// There is none, or none of that id.
    #[error("no conversation `{0}` is kept")]
    Unknown(String),
    /// Several ids begin like that.
    #[error("`{0}` may mean any of several conversations")]
    Ambiguous(String),
    /// There is none at all.
    #[error("no conversation is kept yet")]
    Empty,
    /// Another process, or another run, uses it.
    #[error("the conversation `{0}` is in use by another process")]
    InUse(String),
    /// It is not there any more, or not readable.
    #[error("the conversation in `{path}` cannot be used: {problem}")]
    Unreadable {
        /// The file.
        path: String,
        /// The problem of the file.
        problem: String,
    },
    /// The store cannot be reached.
    #[error("the conversations cannot be reached: {problem}")]
    Unavailable {
        /// The problem of the store.
        problem: String,
        /// The remedy.
        remedy: String,
    },
}

impl SessionStore {
    /// The conversations of a configuration, in its state folder.
    pub fn of(config: &Config) -> Self {
        Self::new(config.state_dir.value.join(SESSIONS_DIR))
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The conversations in a folder, which need not exist yet.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Begins a conversation of `owner`. Its file is made with the first message.
    pub fn begin(&self, model: &str, owner: &str) -> Conversation {
        let id = uuid::Uuid::now_v7().to_string();
        let first = Line::Session {
            id: id.clone(),
            created: Timestamp::now(),
            model: model.to_owned(),
            owner: Some(owner.to_owned()),
        };
        let journal = Journal::begin(self.path(&id), first);
        Conversation::of(id, Vec::new(), Some(Box::new(journal)))
    }

    /// Resumes a conversation, by its id or a prefix of it. Damaged lines are skipped, with a
    /// WARNING.
    pub fn resume(&self, id: &str) -> Result<Conversation, SessionStoreError> {
        self.resume_where(&self.find(id)?, |_| true)
    }

    /// Resumes a conversation by its whole id. One whose owner `is_meant` rejects counts as
    /// unknown.
    pub fn resume_where(
        &self,
        id: &str,
        is_meant: impl Fn(Option<&str>) -> bool,
    ) -> Result<Conversation, SessionStoreError> {
        self.require(id, is_meant)?;
        let path = self.path(id);
        let journal = Journal::resume(path.clone()).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => SessionStoreError::InUse(id.to_owned()),
            _ => unreadable(&path, &error),
        })?;
        // Read after locking: the previous holder may have added messages.
        let messages = answered(read(&path)?.messages(&path));
        Ok(Conversation::of(id.to_owned(), messages, Some(Box::new(journal))))
    }

    /// Succeeds if a conversation of this id has an owner that `is_meant` accepts.
    pub fn require(
        &self,
        id: &str,
        is_meant: impl Fn(Option<&str>) -> bool,
    ) -> Result<(), SessionStoreError> {
        let unknown = || SessionStoreError::Unknown(id.to_owned());
        if !self.ids().iter().any(|known| known == id) {
            return Err(unknown());
        }
        match first(&self.path(id))? {
            Line::Session { owner, .. } if is_meant(owner.as_deref()) => Ok(()),
            _ => Err(unknown()),
        }
    }

    /// The most recently used conversation of `owner`.
    pub fn last(&self, owner: &str) -> Result<String, SessionStoreError> {
        let is_theirs = |saved: &Saved| saved.owner.as_deref().is_none_or(|it| it == owner);
        let last = self.list().into_iter().find(is_theirs);
        last.map(|saved| saved.id).ok_or(SessionStoreError::Empty)
    }

    /// The conversations that are kept, the one used last first. A file that cannot be read is left out, with a
    /// WARNING.
    pub fn list(&self) -> Vec<Saved> {
        let read = |id: &String| {
            let told = |error: &SessionStoreError| tracing::warn!("{error}");
            saved(&self.path(id)).inspect_err(told).ok()
        };
        let mut saved: Vec<Saved> = self.ids().iter().filter_map(read).collect();
        saved.sort_by(|one, other| other.updated.cmp(&one.updated).then(other.id.cmp(&one.id)));
        saved
    }

    /// A conversation with all its messages. Damaged lines are skipped, with a WARNING.
    pub fn show(&self, id: &str) -> Result<(Saved, Vec<ChatMessage>), SessionStoreError> {
        let path = self.path(&self.find(id)?);
        Ok((saved(&path)?, read(&path)?.messages(&path)))
    }

    /// Deletes a conversation that is not in use, by its id or the beginning of it.
    pub fn remove(&self, id: &str) -> Result<String, SessionStoreError> {
        let id = self.find(id)?;
        self.delete(&id)?;
        Ok(id)
    }

    /// Deletes a conversation by its whole id. One whose owner `is_meant` rejects counts as
    /// unknown.
    pub fn remove_where(
        &self,
        id: &str,
        is_meant: impl Fn(Option<&str>) -> bool,
    ) -> Result<(), SessionStoreError> {
        self.require(id, is_meant)?;
        self.delete(id)
    }

    /// Deletes the conversations whose last message is more than `retain_days` days old at `now`,
    /// and returns their number. A conversation in use stays. With 0 days all stay.
    pub fn delete_expired(&self, retain_days: u32, now: SystemTime) -> usize {
        let retained = Duration::from_hours(24).saturating_mul(retain_days);
        let Some(oldest_kept) = now.checked_sub(retained).filter(|_| retain_days > 0) else {
            return 0;
        };
        // A message is a write, so the file's time is that of the last one.
        let is_expired = |id: &String| {
            let changed = fs::metadata(self.path(id)).and_then(|file| file.modified());
            changed.is_ok_and(|changed| changed < oldest_kept)
        };
        let expired = self.ids().into_iter().filter(is_expired);
        let deleted = expired.filter(|id| match self.delete(id) {
            Ok(()) => true,
            Err(SessionStoreError::InUse(_)) => false,
            Err(error) => {
                tracing::warn!("an expired conversation cannot be deleted: {error}");
                false
            }
        });
        deleted.count()
    }

    fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        let path = self.path(id);
        let _ours = take(&path).map_err(|_| SessionStoreError::InUse(id.to_owned()))?;
        fs::remove_file(&path).map_err(|error| unreadable(&path, &error))
    }

    fn ids(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| Some(name.strip_suffix(".jsonl")?.to_owned())).collect()
    }

    fn find(&self, beginning: &str) -> Result<String, SessionStoreError> {
        let ids = self.ids();
        if ids.iter().any(|id| id == beginning) {
            return Ok(beginning.to_owned());
        }
        let mut fitting =
            ids.into_iter().filter(|id| !beginning.is_empty() && id.starts_with(beginning));
        match (fitting.next(), fitting.next()) {
            (Some(id), None) => Ok(id),
            (Some(_), Some(_)) => Err(SessionStoreError::Ambiguous(beginning.to_owned())),
            (None, _) => Err(SessionStoreError::Unknown(beginning.to_owned())),
        }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.jsonl"))
    }
}

/// The summary of a conversation's file.
fn saved(path: &Path) -> Result<Saved, SessionStoreError> {
    let Written { first, messages, .. } = read(path)?;
    let Line::Session { id, created, model, owner } = first else {
        return Err(unreadable(path, &"it does not begin as one"));
    };
    let title = messages.iter().find_map(|(_, message)| title_of(message)).unwrap_or_default();
    Ok(Saved {
        id,
        created,
        updated: messages.last().map_or(created, |(at, _)| *at),
        model,
        owner,
        title,
        messages: messages.len(),
    })
}

/// The beginning of a message of the user, in one line.
pub fn title_of(message: &ChatMessage) -> Option<String> {
    let said = match message {
        ChatMessage::User { content } => text_of(content),
        ChatMessage::Assistant { .. } | ChatMessage::Tools { .. } => return None,
    };
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(line.chars().take(TITLE_CHARS).collect())
}
