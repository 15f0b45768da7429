//! The output of a tool, in content types that a model accepts.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::memory::Held;

/// One content block of a tool's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Plain text.
    Text {
        /// The text itself.
        text: String,
    },
    /// An image.
    Image {
        /// The bytes, base64.
        data: String,
        /// Its media type, such as `image/png`.
        mime_type: String,
    },
    /// Audio.
    Audio {
        /// The bytes, base64.
        data: String,
        /// Its media type, such as `audio/wav`.
        mime_type: String,
    },
    /// A resource, embedded or linked.
    Resource {
        /// The URI of the resource.
        uri: String,
        /// Its media type, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its text, if it is textual.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Its bytes in base64, for a binary resource.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
        /// Metadata of a linked resource.
        #[serde(flatten, default)]
        about: ResourceAbout,
    },
}

/// Metadata of a linked resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceAbout {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description of its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl ResourceAbout {
    /// Approximate memory use of its strings.
    fn bytes(&self) -> usize {
        let Self { name, title, description, size: _ } = self;
        [name, title, description].into_iter().flatten().map(String::len).sum()
    }

    /// Title or name with the description, for a note that represents the resource.
    fn phrase(&self) -> String {
        let Self { name, title, description, size: _ } = self;
        let texts = [title.as_ref().or(name.as_ref()), description.as_ref()];
        let texts: Vec<&str> = texts.into_iter().flatten().map(String::as_str).collect();
        if texts.is_empty() { String::new() } else { format!(": {}", texts.join(" - ")) }
    }
}

impl Content {
    /// Creates a block of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns true for an image, also as a resource.
    pub fn is_image(&self) -> bool {
        match self {
            Self::Image { .. } => true,
            Self::Resource { mime_type: Some(kind), data: Some(_), text: None, .. } => {
                kind.starts_with("image/")
            }
            Self::Resource { .. } | Self::Text { .. } | Self::Audio { .. } => false,
        }
    }

    /// The placeholder for a block that a model does not receive.
    pub fn left_out(&self, why: &str) -> String {
        let what = self.as_text();
        let what = what.trim_start_matches('[').trim_end_matches(']');
        format!("[left out, {why}: {what}]")
    }

    /// The block as text: its own text, or a description of it.
    pub fn as_text(&self) -> Cow<'_, str> {
        let bytes = |base64: &str| base64.trim_end_matches('=').len() * 3 / 4;
        match self {
            Self::Text { text } | Self::Resource { text: Some(text), .. } => text.into(),
            Self::Image { data, mime_type } | Self::Audio { data, mime_type } => {
                format!("[{mime_type}, {} bytes]", bytes(data)).into()
            }
            Self::Resource { uri, mime_type, text: None, data, about } => {
                let kind = mime_type.as_deref().map(|kind| format!(", {kind}")).unwrap_or_default();
                let size = data.as_deref().map(|data| bytes(data) as u64).or(about.size);
                let size = size.map(|size| format!(", {size} bytes")).unwrap_or_default();
                format!("[resource {uri}{kind}{size}{}]", about.phrase()).into()
            }
        }
    }
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `user` or `assistant`.
    pub role: String,
    /// The content of the message.
    pub content: Vec<Content>,
}

/// The output of a backend.
#[derive(Debug, Clone, Default)]
pub struct ToolOutput {
    /// Content for the model, in order.
    pub content: Vec<Content>,
    /// The structured output, unmodified: key order and large numbers survive.
    pub data: Option<Box<RawValue>>,
    /// True if the tool reports its own failure. Its content then explains the reason.
    pub is_error: bool,
    /// The unmodified result of an MCP server, for gateways.
    pub raw: Option<Box<RawValue>>,
    /// True if some of `raw` has no equivalent in `content`, so the log keeps `raw` as well.
    pub is_partial: bool,
    /// The memory reservation for all of it.
    pub memory: Held,
}

impl ToolOutput {
    /// Approximate memory use of its strings.
    pub(crate) fn bytes(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let raw = |json: &Option<Box<RawValue>>| json.as_ref().map_or(0, |json| json.get().len());
        let block = |block: &Content| match block {
            Content::Text { text } => text.len(),
            Content::Image { data, .. } | Content::Audio { data, .. } => data.len(),
            Content::Resource { text: inside, data, about, .. } => {
                text(inside) + text(data) + about.bytes()
            }
        };
        self.content.iter().map(block).sum::<usize>() + raw(&self.data) + raw(&self.raw)
    }

    /// Creates an output of plain text.
    ///
    /// ```
    /// let output = haft::ToolOutput::from_text("done");
    /// assert_eq!(output.content[0].as_text(), "done");
    /// ```
    pub fn from_text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::text(text)], ..Self::default() }
    }

    /// Creates a structured output; a model receives its JSON.
    pub fn from_raw(data: Box<RawValue>) -> Self {
        Self { content: vec![Content::text(data.get())], data: Some(data), ..Self::default() }
    }

    /// Creates a structured output from any serializable value.
    ///
    /// ```
    /// let output = haft::ToolOutput::from_json(&serde_json::json!({"temp": 12.5}))?;
    /// assert!(output.data.is_some());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn from_json(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self::from_raw)
    }
}
