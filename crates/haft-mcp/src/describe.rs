//! Prompts and resources as their server describes them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A prompt as its server describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptDescription {
    /// The name `prompts/get` expects, kept exactly as sent.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The prompt's purpose.
    #[serde(default)]
    pub description: String,
    /// The prompt's arguments.
    #[serde(default)]
    pub arguments: Vec<PromptArgument>,
    /// Every other field, untouched.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// One thing that can be filled into a prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Its purpose.
    #[serde(default)]
    pub description: String,
    /// True if the prompt needs it.
    #[serde(default)]
    pub required: bool,
    /// Every other field, untouched.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A resource as its server describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDescription {
    /// Where it is.
    pub uri: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its description.
    #[serde(default)]
    pub description: String,
    /// Its media type, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Every other field, untouched.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A family of resources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// The URI with its variable parts, as in RFC 6570.
    pub uri_template: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its description.
    #[serde(default)]
    pub description: String,
    /// The media type of its resources, if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Every other field, untouched.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}
