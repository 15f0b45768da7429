//! Conversations on disk: one file each, one line for each message, only ever added to.

mod journal;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::Serialize;

pub(super) use journal::Journal;
use journal::{Line, Written, answered, first, read, take, unreadable};

use super::conversation::Conversation;
use super::turn::text_of;
use crate::config::Config;
use crate::model::ChatMessage;

/// The folder of conversations, in the state folder.
const SESSIONS_DIR: &str = "sessions";

/// How much of what was said first is shown as a title.
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
    /// When it began.
    #[serde(with = "crate::record::rfc3339")]
    pub created: Timestamp,
    /// When something was last said in it.
    #[serde(with = "crate::record::rfc3339")]
    pub updated: Timestamp,
    /// The model it began with.
    pub model: String,
    /// Whose it is: `cli`, or a key's. Nothing where it was begun before that was written down.
    pub owner: Option<String>,
    /// What was said first, in short.
    pub title: String,
    /// How many messages it has.
    pub messages: usize,
}

/// Why a conversation cannot be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is none, or none of that id.
    #[error("no conversation `{0}` is kept")]
    Unknown(String),
    /// Several ids begin like that.
    #[error("`{0}` may mean any of several conversations")]
    Ambiguous(String),
    /// There is none at all.
    #[error("no conversation is kept yet")]
    Empty,
    /// Another program, or another run, goes on with it.
    #[error("somebody else is going on with the conversation `{0}`")]
    InUse(String),
    /// It is not there any more, or not readable.
    #[error("the conversation in `{path}` cannot be used: {problem}")]
    Unreadable {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
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
        Conversation::of(id, Vec::new(), Some(journal))
    }

    /// Goes on with a conversation, by its id or the beginning of it. Lines that are damaged are left out, with a
    /// WARNING.
    pub fn resume(&self, id: &str) -> Result<Conversation, StoreError> {
        self.resume_where(&self.find(id)?, |_| true)
    }

    /// Goes on with a conversation by its whole id. One whose owner `is_meant` does not let through is not
    /// known.
    pub fn resume_where(
        &self,
        id: &str,
        is_meant: impl Fn(Option<&str>) -> bool,
    ) -> Result<Conversation, StoreError> {
        self.require(id, is_meant)?;
        let path = self.path(id);
        let journal = Journal::resume(path.clone()).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => StoreError::InUse(id.to_owned()),
            _ => unreadable(&path, &error),
        })?;
        // Read once it is ours: whoever had it until now may have said more.
        let messages = answered(read(&path)?.messages(&path));
        Ok(Conversation::of(id.to_owned(), messages, Some(journal)))
    }

    /// Whether there is a conversation of this id whose owner `is_meant` lets through.
    pub fn require(
        &self,
        id: &str,
        is_meant: impl Fn(Option<&str>) -> bool,
    ) -> Result<(), StoreError> {
        let unknown = || StoreError::Unknown(id.to_owned());
        if !self.ids().iter().any(|known| known == id) {
            return Err(unknown());
        }
        match first(&self.path(id))? {
            Line::Session { owner, .. } if is_meant(owner.as_deref()) => Ok(()),
            _ => Err(unknown()),
        }
    }

    /// The conversation of `owner` in which something was said last.
    pub fn last(&self, owner: &str) -> Result<String, StoreError> {
        let is_theirs = |saved: &Saved| saved.owner.as_deref().is_none_or(|it| it == owner);
        let last = self.list().into_iter().find(is_theirs);
        last.map(|saved| saved.id).ok_or(StoreError::Empty)
    }

    /// The conversations that are kept, the one used last first. A file that cannot be read is left out, with a
    /// WARNING.
    pub fn list(&self) -> Vec<Saved> {
        let read = |id: &String| {
            let told = |error: &StoreError| tracing::warn!("{error}");
            saved(&self.path(id)).inspect_err(told).ok()
        };
        let mut saved: Vec<Saved> = self.ids().iter().filter_map(read).collect();
        saved.sort_by(|one, other| other.updated.cmp(&one.updated).then(other.id.cmp(&one.id)));
        saved
    }

    /// A conversation with everything that was said in it. Lines that are damaged are left out, with a WARNING.
    pub fn show(&self, id: &str) -> Result<(Saved, Vec<ChatMessage>), StoreError> {
        let path = self.path(&self.find(id)?);
        Ok((saved(&path)?, read(&path)?.messages(&path)))
    }

    /// Deletes a conversation that is not in use, by its id or the beginning of it.
    pub fn remove(&self, id: &str) -> Result<String, StoreError> {
        let id = self.find(id)?;
        self.delete(&id)?;
        Ok(id)
    }

    /// Deletes a conversation by its whole id. One whose owner `is_meant` does not let through is not
    /// known.
    pub fn remove_where(
        &self,
        id: &str,
        is_meant: impl Fn(Option<&str>) -> bool,
    ) -> Result<(), StoreError> {
        self.require(id, is_meant)?;
        self.delete(id)
    }

    /// Deletes the conversations whose last message is more than `retain_days` days old at `now`, and
    /// returns how many there were. A conversation that is in use stays. With 0 days all stay.
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
            Err(StoreError::InUse(_)) => false,
            Err(error) => {
                tracing::warn!("an expired conversation cannot be deleted: {error}");
                false
            }
        });
        deleted.count()
    }

    fn delete(&self, id: &str) -> Result<(), StoreError> {
        let path = self.path(id);
        let _ours = take(&path).map_err(|_| StoreError::InUse(id.to_owned()))?;
        fs::remove_file(&path).map_err(|error| unreadable(&path, &error))
    }

    fn ids(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| Some(name.strip_suffix(".jsonl")?.to_owned())).collect()
    }

    fn find(&self, beginning: &str) -> Result<String, StoreError> {
        let ids = self.ids();
        if ids.iter().any(|id| id == beginning) {
            return Ok(beginning.to_owned());
        }
        let mut fitting =
            ids.into_iter().filter(|id| !beginning.is_empty() && id.starts_with(beginning));
        match (fitting.next(), fitting.next()) {
            (Some(id), None) => Ok(id),
            (Some(_), Some(_)) => Err(StoreError::Ambiguous(beginning.to_owned())),
            (None, _) => Err(StoreError::Unknown(beginning.to_owned())),
        }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.jsonl"))
    }
}

/// What a conversation's file says of it in short.
fn saved(path: &Path) -> Result<Saved, StoreError> {
    let Written { first, messages, .. } = read(path)?;
    let Line::Session { id, created, model, owner } = first else {
        return Err(unreadable(path, &"it does not begin as one"));
    };
    let said = messages.iter().find_map(|(_, message)| match message {
        ChatMessage::User { content } => Some(text_of(content)),
        ChatMessage::Assistant { .. } | ChatMessage::Tools { .. } => None,
    });
    let said = said.unwrap_or_default();
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Saved {
        id,
        created,
        updated: messages.last().map_or(created, |(at, _)| *at),
        model,
        owner,
        title: line.chars().take(TITLE_CHARS).collect(),
        messages: messages.len(),
    })
}
