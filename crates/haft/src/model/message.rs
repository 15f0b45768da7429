//! The messages of a conversation and the tools a model is offered.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::Content;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ChatMessage {
    /// What a person says.
    User {
        /// In order.
        content: Vec<Content>,
    },
    /// What the model says.
    Assistant {
        /// Its answer; empty where it only calls tools.
        text: String,
        /// The tools it calls, in its order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ModelCall>,
        /// What the provider wants to see again, word for word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<Value>,
    },
    /// What the tools answer to the calls of the message before.
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

    /// Whether a picture is in it.
    pub(crate) fn has_picture(&self) -> bool {
        match self {
            Self::User { content } => content.iter().any(Content::is_picture),
            Self::Tools { results } => {
                results.iter().any(|result| result.content.iter().any(Content::is_picture))
            }
            Self::Assistant { .. } => false,
        }
    }

    /// What a person or a tool put into it.
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

/// A tool that a model wants to call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCall {
    /// What the model calls this call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments as JSON text. What the model wrote where that is no JSON.
    pub arguments: String,
}

/// What came of such a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelResult {
    /// The call it answers.
    pub call_id: String,
    /// The tool.
    pub name: String,
    /// What the model is shown, in order.
    pub content: Vec<Content>,
    /// Whether the call failed.
    #[serde(default)]
    pub is_error: bool,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTool {
    /// Its name in the toolbox.
    pub name: String,
    /// What it does and when to prefer it, word for word.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
}
