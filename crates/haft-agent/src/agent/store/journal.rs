//! The file of one conversation.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::SessionStoreError;
use super::conversation_store::{ConversationLog, LogError};
use crate::model::{ChatMessage, ModelCall, ModelResult};
use haft::{BoxFuture, Content};

/// One line of a conversation's file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Line {
    /// The first one.
    Session {
        id: String,
        #[serde(with = "haft::record::rfc3339")]
        created: Timestamp,
        model: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
    },
    Message {
        #[serde(with = "haft::record::rfc3339")]
        at: Timestamp,
        #[serde(flatten)]
        message: ChatMessage,
    },
    /// Everything before is forgotten.
    Cleared {
        #[serde(with = "haft::record::rfc3339")]
        at: Timestamp,
    },
}

/// The file of an open conversation. While it is open, no other process can resume it.
pub(super) struct Journal {
    path: PathBuf,
    /// The line before the first message.
    first: Option<Line>,
    file: Option<File>,
}

impl Journal {
    /// A conversation that begins; its file is made with the first message.
    pub(super) fn begin(path: PathBuf, first: Line) -> Self {
        Self { path, first: Some(first), file: None }
    }

    /// A resumed conversation.
    pub(super) fn resume(path: PathBuf) -> io::Result<Self> {
        let file = open(&path)?;
        Ok(Self { path, first: None, file: Some(file) })
    }

    async fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut text = String::new();
        for line in self.first.iter().chain([line]) {
            text.push_str(&serde_json::to_string(line)?);
            text.push('\n');
        }
        let (path, known) = (self.path.clone(), self.file.take());
        let written = tokio::task::spawn_blocking(move || -> io::Result<File> {
            let mut file = match known {
                Some(file) => file,
                None => open(&path)?,
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

impl ConversationLog for Journal {
    fn append<'a>(&'a mut self, message: &'a ChatMessage) -> BoxFuture<'a, Result<(), LogError>> {
        let line = Line::Message { at: Timestamp::now(), message: message.clone() };
        Box::pin(async move { self.write(&line).await.map_err(unkept) })
    }

    fn clear(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        Box::pin(async {
            if self.first.is_some() {
                return Ok(());
            }
            self.write(&Line::Cleared { at: Timestamp::now() }).await.map_err(unkept)
        })
    }

    /// The lock of the file holds as long as the process.
    fn check(&self) -> Result<(), LogError> {
        Ok(())
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, ()> {
        drop(self);
        Box::pin(std::future::ready(()))
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
fn unkept(error: io::Error) -> LogError {
    LogError::Unkept(error.to_string())
}

/// Locks the file for deletion. A file that cannot be opened is not in use.
pub(super) fn take(path: &Path) -> io::Result<Option<File>> {
    // Opening a pipe would block.
    let is_file = fs::metadata(path).is_ok_and(|it| it.is_file());
    let Some(file) = is_file.then(|| File::open(path).ok()).flatten() else { return Ok(None) };
    match file.try_lock() {
        Err(busy @ TryLockError::WouldBlock) => Err(busy.into()),
        // Without file locks, no process can resume it.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

/// Opens the file, readable by this user only, because conversations are private.
fn open(path: &Path) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let mut options = OpenOptions::new();
    let mut file = options.create(true).read(true).append(true).mode(0o600).open(path)?;
    // Two concurrent holders would answer each other's calls.
    file.try_lock().map_err(io::Error::from)?;
    end_torn_line(&mut file)?;
    Ok(file)
}

/// A line that a crash tore must not spoil the next one.
fn end_torn_line(file: &mut File) -> io::Result<()> {
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

/// The content of a conversation's file.
pub(super) struct Written {
    pub(super) first: Line,
    /// Messages since the conversation was last cleared.
    pub(super) messages: Vec<(Timestamp, ChatMessage)>,
    /// Number of unreadable lines since then.
    damaged: usize,
}

impl Written {
    /// The messages. Logs a warning if some are missing.
    pub(super) fn messages(self, path: &Path) -> Vec<ChatMessage> {
        let path = path.display();
        match self.damaged {
            0 => {}
            1 => tracing::warn!("a line of the conversation in `{path}` is damaged and left out"),
            count => {
                tracing::warn!(
                    "{count} lines of the conversation in `{path}` are damaged and left out"
                );
            }
        }
        self.messages.into_iter().map(|(_, message)| message).collect()
    }
}

/// The first line of a conversation's file.
pub(super) fn first(path: &Path) -> Result<Line, SessionStoreError> {
    begun(path).map(|(first, _)| first)
}

/// Reads a conversation. A line that a crash tore, be it in the middle of a letter, is left out.
pub(super) fn read(path: &Path) -> Result<Written, SessionStoreError> {
    let unreadable = |error: io::Error| unreadable(path, &error);
    let (first, lines) = begun(path)?;
    let mut written = Written { first, messages: Vec::new(), damaged: 0 };
    for line in lines {
        match serde_json::from_slice(&line.map_err(unreadable)?) {
            Ok(Line::Message { at, message }) => written.messages.push((at, message)),
            Ok(Line::Cleared { .. }) => {
                written.messages.clear();
                written.damaged = 0;
            }
            Ok(Line::Session { .. }) | Err(_) => written.damaged += 1,
        }
    }
    Ok(written)
}

/// The first line, and those that follow.
fn begun(path: &Path) -> Result<(Line, io::Split<BufReader<File>>), SessionStoreError> {
    let unreadable = |error: io::Error| unreadable(path, &error);
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(self::unreadable(path, &"it is not a regular file"));
    }
    let mut lines = BufReader::new(File::open(path).map_err(unreadable)?).split(b'\n');
    let first = lines.next().transpose().map_err(unreadable)?;
    match first.and_then(|line| serde_json::from_slice::<Line>(&line).ok()) {
        Some(first @ Line::Session { .. }) => Ok((first, lines)),
        _ => Err(self::unreadable(path, &"it does not begin as one")),
    }
}

pub(super) fn unreadable(path: &Path, problem: &dyn std::fmt::Display) -> SessionStoreError {
    SessionStoreError::Unreadable { path: path.display().to_string(), problem: problem.to_string() }
}

/// A call without an answer, because the program ended in the middle, and an answer without its call, because its line
/// is damaged, would be refused by every model.
pub(in crate::agent) fn answered(messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    let mut whole: Vec<ChatMessage> = Vec::with_capacity(messages.len() + 1);
    let mut open: Vec<ModelCall> = Vec::new();
    for message in messages {
        let calls = std::mem::take(&mut open);
        let (results, message) = match message {
            ChatMessage::Tools { results } => (results, None),
            ChatMessage::Assistant { calls, text, provider_state } => {
                open.clone_from(&calls);
                (Vec::new(), Some(ChatMessage::Assistant { calls, text, provider_state }))
            }
            user @ ChatMessage::User { .. } => (Vec::new(), Some(user)),
        };
        whole.extend(results_of(calls, results));
        whole.extend(message);
    }
    whole.extend(results_of(open, Vec::new()));
    whole
}

/// One result for each call, existing ones first; empty without calls.
fn results_of(calls: Vec<ModelCall>, mut results: Vec<ModelResult>) -> Option<ChatMessage> {
    let asked: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    results.retain(|result| asked.contains(result.call_id.as_str()));
    let told: HashSet<String> = results.iter().map(|result| result.call_id.clone()).collect();
    let lost = "it is not known what came of this call";
    let missing = calls.into_iter().filter(|call| !told.contains(&call.id));
    results.extend(missing.map(|call| ModelResult {
        call_id: call.id,
        name: call.name,
        content: vec![Content::text(lost)],
        is_error: true,
    }));
    (!results.is_empty()).then_some(ChatMessage::Tools { results })
}
