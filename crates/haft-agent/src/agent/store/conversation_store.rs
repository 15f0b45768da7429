//! Where conversations are kept: in files, or where several processes share them.

use std::sync::Arc;
use std::time::SystemTime;

use haft::BoxFuture;

use super::super::conversation::Conversation;
use super::{Saved, SessionStore, SessionStoreError};
use crate::model::ChatMessage;

/// Returns true if the caller may use a conversation with this id and owner.
pub type OwnerCheck = Arc<dyn Fn(&str, Option<&str>) -> bool + Send + Sync>;

/// Where conversations are kept. A conversation whose owner a check rejects counts as unknown.
pub trait ConversationStore: Send + Sync {
    /// Fails if the store cannot be reached, so that nothing begins that cannot be stored.
    fn check(&self) -> BoxFuture<'_, Result<(), SessionStoreError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Begins a conversation of `owner`. It is stored with its first message.
    fn begin(&self, model: &str, owner: &str) -> Conversation;

    /// Resumes a conversation by its id. It is in use from then on, until it is [closed](Conversation::close) or dropped.
    fn resume<'a>(
        &'a self,
        id: &'a str,
        is_owner: OwnerCheck,
    ) -> BoxFuture<'a, Result<Conversation, SessionStoreError>>;

    /// Succeeds if there is a conversation of this id.
    fn require<'a>(
        &'a self,
        id: &'a str,
        is_owner: OwnerCheck,
    ) -> BoxFuture<'a, Result<(), SessionStoreError>>;

    /// The conversations, the one used last first. With `owner`, those of others may be left out.
    fn list<'a>(
        &'a self,
        owner: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Saved>, SessionStoreError>>;

    /// A conversation with all its messages.
    fn show<'a>(
        &'a self,
        id: &'a str,
        is_owner: OwnerCheck,
    ) -> BoxFuture<'a, Result<(Saved, Vec<ChatMessage>), SessionStoreError>>;

    /// Deletes a conversation that is not in use.
    fn remove<'a>(
        &'a self,
        id: &'a str,
        is_owner: OwnerCheck,
    ) -> BoxFuture<'a, Result<(), SessionStoreError>>;

    /// Deletes the conversations whose last message is more than `retain_days` days old, and returns their number. A
    /// conversation in use stays. With 0 days all stay.
    fn delete_expired(&self, retain_days: u32) -> BoxFuture<'_, Result<usize, SessionStoreError>>;
}

/// The stored form of one open conversation.
pub trait ConversationLog: Send + Sync {
    /// Stores a message.
    fn append<'a>(&'a mut self, message: &'a ChatMessage) -> BoxFuture<'a, Result<(), LogError>>;

    /// Stores that the messages so far are cleared.
    fn clear(&mut self) -> BoxFuture<'_, Result<(), LogError>>;

    /// Fails if another process may continue the conversation by now.
    fn check(&self) -> Result<(), LogError>;

    /// Ends the use of the conversation, so that others can resume it.
    fn close(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// Reasons why a message is not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// It cannot be stored. The conversation continues in memory.
    #[error("this conversation is not kept from here on: {0}")]
    Unkept(String),
    /// Another process may continue the conversation, so this one must not.
    #[error("the conversation cannot be continued here: {0}")]
    Lost(String),
}

/// The file store, on threads that may wait for files.
impl ConversationStore for SessionStore {
    fn begin(&self, model: &str, owner: &str) -> Conversation {
        Self::begin(self, model, owner)
    }

    fn resume<'a>(
        &'a self,
        id: &'a str,
        is_owner: OwnerCheck,
    ) -> BoxFuture<'a, Result<Conversation, SessionStoreError>> {
        self.on_thread(id, move |store, id| store.resume_where(id, |owner| is_owner(id, owner)))
    }

    fn require<'a>(
        &'a self,
        id: &'a str,
        is_owner: OwnerCheck,
    ) -> BoxFuture<'a, Result<(), SessionStoreError>> {
        self.on_thread(id, move |store, id| Self::require(store, id, |owner| is_owner(id, owner)))
    }

    fn list<'a>(
        &'a self,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Saved>, SessionStoreError>> {
        self.on_thread("", |store, _| Ok(Self::list(store)))
    }

    fn show<'a>(
        &'a self,
        id: &'a str,
        is_owner: OwnerCheck,
    ) -> BoxFuture<'a, Result<(Saved, Vec<ChatMessage>), SessionStoreError>> {
        self.on_thread(id, move |store, id| {
            Self::require(store, id, |owner| is_owner(id, owner))?;
            Self::show(store, id)
        })
    }

    fn remove<'a>(
        &'a self,
        id: &'a str,
        is_owner: OwnerCheck,
    ) -> BoxFuture<'a, Result<(), SessionStoreError>> {
        self.on_thread(id, move |store, id| store.remove_where(id, |owner| is_owner(id, owner)))
    }

    fn delete_expired(&self, retain_days: u32) -> BoxFuture<'_, Result<usize, SessionStoreError>> {
        self.on_thread("", move |store, _| {
            Ok(Self::delete_expired(store, retain_days, SystemTime::now()))
        })
    }
}

impl SessionStore {
    fn on_thread<'a, T: Send + 'static>(
        &'a self,
        id: &'a str,
        work: impl FnOnce(&Self, &str) -> Result<T, SessionStoreError> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, SessionStoreError>> {
        let (store, id) = (self.clone(), id.to_owned());
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || work(&store, &id)).await;
            done.unwrap_or_else(|error| {
                Err(SessionStoreError::Unavailable {
                    problem: error.to_string(),
                    remedy: "try again".to_owned(),
                })
            })
        })
    }
}
