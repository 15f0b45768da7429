//! A conversation: its messages and its stored form.

use std::borrow::Cow;

use super::store::{ConversationLog, LogError, answered};
use crate::model::{ChatMessage, ModelError, ModelFailure};
use haft::{Content, Message};

/// The messages so far. Every message is stored, if the conversation is kept, before the turn
/// continues.
pub struct Conversation {
    id: String,
    messages: Vec<ChatMessage>,
    log: Option<Box<dyn ConversationLog>>,
    problem: Option<String>,
    /// The reason why this process must not continue it.
    lost: Option<String>,
    /// The learned context size of the model, if smaller than declared.
    tokens_max: Option<usize>,
    /// Number of messages whose images are hidden from the model, because it rejected one of them.
    unseen: usize,
}

impl Conversation {
    /// A conversation that is kept nowhere.
    pub fn new() -> Self {
        Self::of(uuid::Uuid::now_v7().to_string(), Vec::new(), None)
    }

    pub(super) fn of(
        id: String,
        messages: Vec<ChatMessage>,
        log: Option<Box<dyn ConversationLog>>,
    ) -> Self {
        Self { id, messages, log, problem: None, lost: None, tokens_max: None, unseen: 0 }
    }

    /// A conversation that `log` stores, with the messages so far. Calls without an answer get one: it is not known what
    /// came of them.
    pub fn resumed(
        id: impl Into<String>,
        messages: Vec<ChatMessage>,
        log: Box<dyn ConversationLog>,
    ) -> Self {
        Self::of(id.into(), answered(messages), Some(log))
    }

    /// Its id; the log keeps it as the session of every call.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns true if it is stored, or will be with its first message.
    pub fn is_kept(&self) -> bool {
        self.log.is_some()
    }

    /// All messages.
    pub fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// Adds a message.
    pub async fn push(&mut self, message: ChatMessage) {
        if let Some(log) = &mut self.log {
            let stored = log.append(&message).await;
            self.note(stored);
        }
        self.messages.push(message);
    }

    /// Ends the use of the conversation, so that another process can resume it.
    pub async fn close(self) {
        if let Some(log) = self.log {
            log.close().await;
        }
    }

    /// Fails if another process may continue the conversation by now.
    pub(super) fn require_held(&self) -> Result<(), ModelError> {
        let lost = match (&self.lost, &self.log) {
            (Some(lost), _) => lost.clone(),
            (None, Some(log)) => match log.check() {
                Ok(()) => return Ok(()),
                Err(error) => error.to_string(),
            },
            (None, None) => return Ok(()),
        };
        let remedy = Some("read the conversation again, then continue it".to_owned());
        Err(ModelError { kind: ModelFailure::Rejected, message: lost, remedy })
    }

    fn note(&mut self, stored: Result<(), LogError>) {
        match stored {
            Ok(()) => {}
            Err(error @ LogError::Unkept(_)) => {
                self.problem = Some(error.to_string());
                self.log = None;
            }
            Err(error @ LogError::Lost(_)) => {
                self.lost = Some(error.to_string());
                self.log = None;
            }
        }
    }

    /// Adds the partial text of an interrupted answer.
    pub(super) async fn push_cut(&mut self, text: &str) {
        if !text.is_empty() {
            let text = format!("{text}\n[interrupted]");
            self.push(ChatMessage::Assistant { text, calls: Vec::new(), provider_state: None })
                .await;
        }
    }

    /// Hides the earlier messages from the model. They stay in the file, or database.
    pub async fn clear(&mut self) {
        if let Some(log) = &mut self.log {
            let stored = log.clear().await;
            self.note(stored);
        }
        self.messages.clear();
        (self.tokens_max, self.unseen) = (None, 0);
    }

    /// The messages as the model may see them.
    pub(super) fn sent(&self) -> Cow<'_, [ChatMessage]> {
        if self.unseen == 0 {
            return Cow::Borrowed(&self.messages);
        }
        let mut messages = self.messages.clone();
        for message in messages.iter_mut().take(self.unseen) {
            let blocks = message.blocks_mut();
            for picture in blocks.into_iter().filter(|block| block.is_image()) {
                *picture = Content::text(picture.left_out("the model does not take it"));
            }
        }
        Cow::Owned(messages)
    }

    /// The token limit of a request: `said`, unless the model turned out to accept less.
    pub(super) fn tokens_max(&self, said: usize) -> usize {
        self.tokens_max.unwrap_or(said).min(said)
    }

    /// The model answered to so much; it may read no more.
    pub(super) fn reads_at_most(&mut self, tokens: usize) {
        self.tokens_max = Some(tokens);
    }

    /// Hides all images so far from the model. Returns true if any was visible.
    pub(super) fn hide_images(&mut self) -> bool {
        let had_some = self.messages.iter().skip(self.unseen).any(ChatMessage::has_image);
        self.unseen = self.messages.len();
        had_some
    }

    /// Takes the error of saving, so that it is reported once.
    pub(super) fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }
}

impl Default for Conversation {
    fn default() -> Self {
        Self::new()
    }
}

/// The messages of a server's prompt as messages of a conversation.
pub fn from_prompt(messages: Vec<Message>) -> Vec<ChatMessage> {
    messages.into_iter().map(|Message { role, content }| said_by(&role, content)).collect()
}

/// Converts content of an MCP role to a message of a conversation.
pub(super) fn said_by(role: &str, content: Vec<Content>) -> ChatMessage {
    if role == "assistant" {
        let texts: Vec<_> = content.iter().map(Content::as_text).collect();
        ChatMessage::Assistant { text: texts.join("\n"), calls: Vec::new(), provider_state: None }
    } else {
        ChatMessage::User { content }
    }
}
