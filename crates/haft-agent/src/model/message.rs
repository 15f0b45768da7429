//! The messages of a conversation and the tools a model is offered.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use haft::Content;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ChatMessage {
    /// A user message.
    User {
        /// In order.
        content: Vec<Content>,
    },
    /// An answer of the model.
    Assistant {
        /// Its text; empty if it only calls tools.
        text: String,
        /// The tools it calls, in its order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ModelCall>,
        /// State that the provider expects back unmodified.
        #[serde(rename = "kept", default, skip_serializing_if = "Option::is_none")]
        provider_state: Option<Value>,
    },
    /// The results of the calls of the previous message.
    Tools {
        /// One for each call, in the order of the calls.
        results: Vec<ModelResult>,
    },
}

impl ChatMessage {
    /// A message of a person that is only text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { content: vec![Content::text(text)] }
    }

    /// Returns true if it contains an image.
    pub(crate) fn has_image(&self) -> bool {
        match self {
            Self::User { content } => content.iter().any(Content::is_image),
            Self::Tools { results } => {
                results.iter().any(|result| result.content.iter().any(Content::is_image))
            }
            Self::Assistant { .. } => false,
        }
    }

    /// The blocks of a user or a tool.
    pub(crate) fn blocks_mut(&mut self) -> Vec<&mut Content> {
        match self {
            Self::User { content } => content.iter_mut().collect(),
            Self::Tools { results } => {
                results.iter_mut().flat_map(|result| &mut result.content).collect()
            }
            Self::Assistant { .. } => Vec::new(),
        }
    }
}

/// A tool call of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCall {
    /// The model's id of this call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments as JSON text, or the model's invalid text.
    pub arguments: String,
}

/// The result of such a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelResult {
    /// The call it answers.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// Content for the model, in order.
    pub content: Vec<Content>,
    /// True if the call failed.
    #[serde(default)]
    pub is_error: bool,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTool {
    /// Its name in the toolbox.
    pub name: String,
    /// The purpose of the tool and when to prefer it, unmodified.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
}
