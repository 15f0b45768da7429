//! Conversations on disk: one file each, one line for each message, only ever added to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

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
    /// It is not there any more, or not readable.
    #[error("the conversation in `{path}` cannot be used: {problem}")]
    Unreadable {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// One line of a conversation's file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    /// The first one.
    Session {
        id: String,
        #[serde(with = "crate::record::rfc3339")]
        created: Timestamp,
        model: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
    },
    Message {
        #[serde(with = "crate::record::rfc3339")]
        at: Timestamp,
        #[serde(flatten)]
        message: ChatMessage,
    },
    /// Everything before is forgotten.
    Cleared {
        #[serde(with = "crate::record::rfc3339")]
        at: Timestamp,
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
        let journal = Journal { path: self.path(&id), first: Some(first), file: None };
        Conversation::of(id, Vec::new(), Some(journal))
    }

    /// Goes on with a conversation, by its id or the beginning of it.
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
        let unknown = || StoreError::Unknown(id.to_owned());
        let id = self.ids().into_iter().find(|known| known == id).ok_or_else(unknown)?;
        let path = self.path(&id);
        let (first, messages) = read(&path)?;
        if !matches!(&first, Line::Session { owner, .. } if is_meant(owner.as_deref())) {
            return Err(unknown());
        }
        let messages = messages.into_iter().map(|(_, message)| message).collect();
        let journal = Journal { path, first: None, file: None };
        Ok(Conversation::of(id, answered(messages), Some(journal)))
    }

    /// The conversation in which something was said last.
    pub fn last(&self) -> Result<String, StoreError> {
        self.list().into_iter().next().map(|saved| saved.id).ok_or(StoreError::Empty)
    }

    /// The conversations that are kept, the one used last first. Files that cannot be read are left out.
    pub fn list(&self) -> Vec<Saved> {
        let mut saved: Vec<Saved> =
            self.ids().iter().filter_map(|id| saved(&self.path(id)).ok()).collect();
        saved.sort_by(|one, other| other.updated.cmp(&one.updated).then(other.id.cmp(&one.id)));
        saved
    }

    /// A conversation with everything that was said in it.
    pub fn show(&self, id: &str) -> Result<(Saved, Vec<ChatMessage>), StoreError> {
        let path = self.path(&self.find(id)?);
        let (_, messages) = read(&path)?;
        Ok((saved(&path)?, messages.into_iter().map(|(_, message)| message).collect()))
    }

    /// Deletes a conversation.
    pub fn remove(&self, id: &str) -> Result<String, StoreError> {
        let id = self.find(id)?;
        let path = self.path(&id);
        fs::remove_file(&path).map_err(|error| unreadable(&path, &error))?;
        Ok(id)
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
    let (first, messages) = read(path)?;
    let Line::Session { id, created, model, .. } = first else {
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
        title: line.chars().take(TITLE_CHARS).collect(),
        messages: messages.len(),
    })
}

/// The file of a conversation that goes on.
pub(super) struct Journal {
    path: PathBuf,
    /// What is written before the first message.
    first: Option<Line>,
    file: Option<File>,
}

impl Journal {
    pub(super) async fn append(&mut self, message: &ChatMessage) -> io::Result<()> {
        self.write(&Line::Message { at: Timestamp::now(), message: message.clone() }).await
    }

    pub(super) async fn clear(&mut self) -> io::Result<()> {
        if self.first.is_some() {
            return Ok(());
        }
        self.write(&Line::Cleared { at: Timestamp::now() }).await
    }

    async fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut text = String::new();
        for line in self.first.iter().chain([line]) {
            text.push_str(&serde_json::to_string(line)?);
            text.push('\n');
        }
        let (path, open) = (self.path.clone(), self.file.take());
        let written = tokio::task::spawn_blocking(move || -> io::Result<File> {
            let mut file = match open {
                Some(file) => file,
                None => open_file(&path)?,
            };
            // One write for whole lines, so that a crash leaves at most the last one torn.
            file.write_all(text.as_bytes())?;
            Ok(file)
        });
        self.file = Some(written.await.map_err(io::Error::other)??);
        self.first = None;
        Ok(())
    }
}

/// What people say is nobody else's business.
fn open_file(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let mut file =
        OpenOptions::new().create(true).read(true).append(true).mode(0o600).open(path)?;
    end_torn_line(&mut file)?;
    Ok(file)
}

/// A line that a crash tore must not spoil the next one.
fn end_torn_line(file: &mut File) -> io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    if file.metadata()?.len() == 0 {
        return Ok(());
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    if last != *b"\n" {
        file.write_all(b"\n")?;
    }
    Ok(())
}

/// The first line and the messages since the conversation was last cleared. A torn line is passed over.
fn read(path: &Path) -> Result<(Line, Vec<(Timestamp, ChatMessage)>), StoreError> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let mut lines = BufReader::new(file).lines();
    let first = lines.next().transpose().map_err(|error| unreadable(path, &error))?;
    let first = first.and_then(|line| serde_json::from_str::<Line>(&line).ok());
    let Some(first @ Line::Session { .. }) = first else {
        return Err(unreadable(path, &"it does not begin as one"));
    };
    let mut messages = Vec::new();
    for line in lines {
        let line = line.map_err(|error| unreadable(path, &error))?;
        match serde_json::from_str(&line) {
            Ok(Line::Message { at, message }) => messages.push((at, message)),
            Ok(Line::Cleared { .. }) => messages.clear(),
            Ok(Line::Session { .. }) | Err(_) => {}
        }
    }
    Ok((first, messages))
}

/// Calls that were never answered, because the program ended in the middle, would be refused by every model.
fn answered(messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    use crate::content::Content;
    use crate::model::ModelResult;
    let mut whole: Vec<ChatMessage> = Vec::with_capacity(messages.len() + 1);
    let mut messages = messages.into_iter().peekable();
    while let Some(message) = messages.next() {
        let open = match &message {
            ChatMessage::Assistant { calls, .. } if !calls.is_empty() => calls.clone(),
            _ => Vec::new(),
        };
        whole.push(message);
        let is_answered = matches!(messages.peek(), Some(ChatMessage::Tools { .. }));
        if open.is_empty() || is_answered {
            continue;
        }
        let results = open.into_iter().map(|call| ModelResult {
            call_id: call.id,
            name: call.name,
            content: vec![Content::text(
                "it is not known what came of this call: the program ended",
            )],
            is_error: true,
        });
        whole.push(ChatMessage::Tools { results: results.collect() });
    }
    whole
}

fn unreadable(path: &Path, problem: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unreadable { path: path.display().to_string(), problem: problem.to_string() }
}
