//! A conversation: what was said, and where it is kept.

use super::store::Journal;
use crate::content::Message;
use crate::model::ChatMessage;

/// What was said so far. Every message is written to its file, if it has one, before the next thing happens.
pub struct Conversation {
    id: String,
    messages: Vec<ChatMessage>,
    journal: Option<Journal>,
    problem: Option<String>,
}

impl Conversation {
    /// A conversation that is kept nowhere.
    pub fn new() -> Self {
        Self::of(uuid::Uuid::now_v7().to_string(), Vec::new(), None)
    }

    pub(super) fn of(id: String, messages: Vec<ChatMessage>, journal: Option<Journal>) -> Self {
        Self { id, messages, journal, problem: None }
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
    let converted = messages.into_iter().map(|Message { role, content }| {
        if role == "assistant" {
            let texts: Vec<_> = content.iter().map(crate::content::Content::as_text).collect();
            ChatMessage::Assistant { text: texts.join("\n"), calls: Vec::new(), kept: None }
        } else {
            ChatMessage::User { content }
        }
    });
    converted.collect()
}
