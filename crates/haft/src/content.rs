//! What a tool answers, in the kinds a model can be shown.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::memory::Held;

/// One block of a tool's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Plain text.
    Text {
        /// The text itself.
        text: String,
    },
    /// A picture.
    Image {
        /// The bytes, base64.
        data: String,
        /// Its media type, such as `image/png`.
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// The bytes, base64.
        data: String,
        /// Its media type, such as `audio/wav`.
        mime_type: String,
    },
    /// A resource, embedded or linked.
    Resource {
        /// Where the resource lives.
        uri: String,
        /// Its media type, where the tool says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its text, where it is a text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Its bytes in base64, where it is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
        /// What a link says about the resource behind it.
        #[serde(flatten, default)]
        about: ResourceAbout,
    },
}

/// What a server says about a resource it links to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceAbout {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl ResourceAbout {
    /// About how much memory its texts take.
    fn bytes(&self) -> usize {
        let Self { name, title, description, size: _ } = self;
        [name, title, description].into_iter().flatten().map(String::len).sum()
    }

    /// Title or name, and the description, for a text that stands for the resource.
    fn phrase(&self) -> String {
        let Self { name, title, description, size: _ } = self;
        let texts = [title.as_ref().or(name.as_ref()), description.as_ref()];
        let texts: Vec<&str> = texts.into_iter().flatten().map(String::as_str).collect();
        if texts.is_empty() { String::new() } else { format!(": {}", texts.join(" - ")) }
    }
}

impl Content {
    /// A block of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Whether it is a picture, be it as a resource.
    #[cfg(feature = "agent")]
    pub(crate) fn is_picture(&self) -> bool {
        match self {
            Self::Image { .. } => true,
            Self::Resource { mime_type: Some(kind), data: Some(_), text: None, .. } => {
                kind.starts_with("image/")
            }
            Self::Resource { .. } | Self::Text { .. } | Self::Audio { .. } => false,
        }
    }

    /// What stands in its place where a model is not shown it.
    #[cfg(feature = "agent")]
    pub(crate) fn left_out(&self, why: &str) -> String {
        let what = self.as_text();
        let what = what.trim_start_matches('[').trim_end_matches(']');
        format!("[left out, {why}: {what}]")
    }

    /// The block as a text: its own, or one that says what it is.
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

/// One message of a prompt: who speaks, and what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `user` or `assistant`.
    pub role: String,
    /// What is said.
    pub content: Vec<Content>,
}

/// What a backend hands back when the tool ran.
#[derive(Debug, Clone, Default)]
pub struct ToolOutput {
    /// What a model is shown, in order.
    pub content: Vec<Content>,
    /// The structured answer, as the tool wrote it: key order and large numbers survive.
    pub data: Option<Box<RawValue>>,
    /// The tool itself says that it failed. Its content then explains why.
    pub is_error: bool,
    /// The whole answer as an MCP server wrote it, for those who hand it on untouched.
    pub raw: Option<Box<RawValue>>,
    /// Some of `raw` could not be turned into `content`, so the log keeps `raw` as well.
    pub is_partial: bool,
    /// The memory of all that.
    pub memory: Held,
}

impl ToolOutput {
    /// About how much memory its texts take.
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

    /// An answer that is only text.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::text(text)], ..Self::default() }
    }

    /// A structured answer; a model is shown its JSON.
    pub fn from_raw(data: Box<RawValue>) -> Self {
        Self { content: vec![Content::text(data.get())], data: Some(data), ..Self::default() }
    }

    /// A structured answer from anything that serializes.
    pub fn from_json(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self::from_raw)
    }
}
