//! A conversation: what was said, and where it is kept.

use std::borrow::Cow;

use super::store::Journal;
use crate::content::{Content, Message};
use crate::model::ChatMessage;

/// What was said so far. Every message is written to its file, if it has one, before the next thing happens.
pub struct Conversation {
    id: String,
    messages: Vec<ChatMessage>,
    journal: Option<Journal>,
    problem: Option<String>,
    /// How many tokens the model turned out to read, where that is less than it was said to.
    tokens_max: Option<usize>,
    /// The pictures of so many messages are not shown to the model, which refused one of them.
    unseen: usize,
}

impl Conversation {
    /// A conversation that is kept nowhere.
    pub fn new() -> Self {
        Self::of(uuid::Uuid::now_v7().to_string(), Vec::new(), None)
    }

    pub(super) fn of(id: String, messages: Vec<ChatMessage>, journal: Option<Journal>) -> Self {
        Self { id, messages, journal, problem: None, tokens_max: None, unseen: 0 }
    }

    /// Its id; the log keeps it as the session of every call.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether it has a file, or gets one with its first message.
    pub fn is_kept(&self) -> bool {
        self.journal.is_some()
    }

    /// Everything that was said.
    pub fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// Adds a message.
    pub async fn push(&mut self, message: ChatMessage) {
        if let Some(journal) = &mut self.journal
            && let Err(error) = journal.append(&message).await
        {
            self.problem = Some(format!("this conversation is not kept from here on: {error}"));
            self.journal = None;
        }
        self.messages.push(message);
    }

    /// Adds what a model said before it was broken off.
    pub(super) async fn push_cut(&mut self, text: &str) {
        if !text.is_empty() {
            let text = format!("{text}\n[interrupted]");
            self.push(ChatMessage::Assistant { text, calls: Vec::new(), kept: None }).await;
        }
    }

    /// Tells the model nothing any more of what was said. The file keeps it, with a note.
    pub async fn clear(&mut self) {
        if let Some(journal) = &mut self.journal
            && let Err(error) = journal.clear().await
        {
            self.problem = Some(format!("this conversation is not kept from here on: {error}"));
            self.journal = None;
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
            for picture in blocks.into_iter().filter(|block| block.is_picture()) {
                *picture = Content::text(picture.left_out("the model does not take it"));
            }
        }
        Cow::Owned(messages)
    }

    /// How many tokens the model is sent: so many as `said`, unless it turned out to read less.
    pub(super) fn tokens_max(&self, said: usize) -> usize {
        self.tokens_max.unwrap_or(said).min(said)
    }

    /// The model answered to so much; it may read no more.
    pub(super) fn reads_at_most(&mut self, tokens: usize) {
        self.tokens_max = Some(tokens);
    }

    /// Shows the model no picture of what was said so far. Whether there was any that it saw.
    pub(super) fn hide_pictures(&mut self) -> bool {
        let had_some = self.messages.iter().skip(self.unseen).any(ChatMessage::has_picture);
        self.unseen = self.messages.len();
        had_some
    }

    /// What went wrong with keeping it, said once.
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

/// What somebody in this role of MCP says, as a message of a conversation.
pub(super) fn said_by(role: &str, content: Vec<Content>) -> ChatMessage {
    if role == "assistant" {
        let texts: Vec<_> = content.iter().map(Content::as_text).collect();
        ChatMessage::Assistant { text: texts.join("\n"), calls: Vec::new(), kept: None }
    } else {
        ChatMessage::User { content }
    }
}
