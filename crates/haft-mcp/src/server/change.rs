//! Changes that clients may subscribe to.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::level::Level;

/// Something that is another than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources, or of templates.
    Resources,
    /// One resource, by its URI.
    Resource(Arc<str>),
    /// A log message, for clients of the legacy era: those of the modern era receive such messages with the answer to
    /// a request.
    Log(LogMessage),
}

/// A log message that does not belong to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMessage {
    /// Its severity.
    pub level: Level,
    /// The component that reports it.
    pub logger: String,
    /// Its text.
    pub text: String,
}

impl LogMessage {
    /// The parameters of `notifications/message`.
    pub fn params(&self) -> String {
        let Self { level, logger, text } = self;
        json!({ "level": level.name(), "logger": logger, "data": text }).to_string()
    }
}

impl Change {
    pub(super) const LISTS: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];

    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Resource(_) => "notifications/resources/updated",
            Self::Log(_) => "notifications/message",
        }
    }

    /// The parameters of the notification; `subscription` is JSON, where the era knows such a thing.
    pub(super) fn params(&self, subscription: Option<&str>) -> String {
        if let Self::Log(message) = self {
            return message.params();
        }
        let meta = subscription
            .map(|id| format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#));
        let uri = match self {
            Self::Resource(uri) => Some(format!(r#""uri":{}"#, json!(**uri))),
            Self::Tools | Self::Prompts | Self::Resources | Self::Log(_) => None,
        };
        let fields: Vec<String> = uri.into_iter().chain(meta).collect();
        format!("{{{}}}", fields.join(","))
    }
}

/// The next changes; nothing when there will be none any more.
pub(super) async fn next(changes: &mut broadcast::Receiver<Change>) -> Option<Vec<Change>> {
    match changes.recv().await {
        Ok(change) => Some(vec![change]),
        // What was missed may have been anything.
        Err(RecvError::Lagged(_)) => Some(Change::LISTS.to_vec()),
        Err(RecvError::Closed) => None,
    }
}
