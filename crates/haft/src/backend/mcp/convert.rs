//! Converts server results to content for a model. Unknown content is never rejected.

use haft_bounds::parse_error::describe;
use std::borrow::Cow;

use haft_mcp::RequestError;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::content::{Content, Message, ResourceAbout, ToolOutput};
use crate::memory::Held;
use haft_text::printable;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(borrow, default)]
    content: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: bool,
}

/// One block, in any of the kinds the protocol knows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    data: Option<String>,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(borrow, default)]
    resource: Option<&'a RawValue>,
}

/// The content of a resource, embedded or read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceContent {
    uri: String,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    blob: Option<String>,
}

/// Number of bytes shown of an unknown kind.
const KIND_BYTES_MAX: usize = 64;
/// Maximum number of blocks of one result. A note states how many were omitted.
pub const BLOCKS_MAX: usize = 1_000;

/// The result of `tools/call`.
pub(super) fn tool_output(raw: Box<RawValue>) -> Result<ToolOutput, RequestError> {
    let result: CallResult<'_> = serde_json::from_str(raw.get()).map_err(|error| {
        RequestError::protocol(format!(
            "the result of the tool cannot be read: {}",
            describe(&error)
        ))
    })?;
    let CallResult { content, structured_content, is_error } = result;
    let Blocks { content, is_partial } = Blocks::read(&content);
    let data = structured_content.map(ToOwned::to_owned);
    Ok(ToolOutput { content, data, is_error, raw: Some(raw), is_partial, memory: Held::default() })
}

/// Converts blocks in order. An unknown kind becomes a note with its name and size.
pub fn content_blocks(blocks: &[&RawValue]) -> Vec<Content> {
    Blocks::read(blocks).content
}

/// The blocks of one answer.
struct Blocks {
    content: Vec<Content>,
    /// Some could not be shown, or were left out.
    is_partial: bool,
}

impl Blocks {
    fn read(raw: &[&RawValue]) -> Self {
        let mut unknown = Unknown::default();
        let shown = &raw[..raw.len().min(BLOCKS_MAX)];
        // Each block is read once: it may be most of a large answer.
        let mut content: Vec<Content> =
            shown.iter().map(|raw| block(raw).unwrap_or_else(|| unknown.shown(raw))).collect();
        unknown.warn();
        let left_out = raw.len() - shown.len();
        if left_out > 0 {
            content.push(more(left_out));
        }
        Self { content, is_partial: unknown.count > 0 || left_out > 0 }
    }
}

fn block(raw: &RawValue) -> Option<Content> {
    let Block { kind, text, data, mime_type, uri, resource } =
        serde_json::from_str(raw.get()).ok()?;
    match kind.as_ref() {
        "text" => Some(Content::Text { text: text? }),
        "image" => Some(Content::Image { data: data?, mime_type: mime_type? }),
        "audio" => Some(Content::Audio { data: data?, mime_type: mime_type? }),
        "resource_link" => {
            // A link with a description that cannot be read is a link all the same.
            let about = serde_json::from_str(raw.get()).unwrap_or_default();
            Some(Content::Resource { uri: uri?, mime_type, text: None, data: None, about })
        }
        "resource" => serde_json::from_str(resource?.get()).ok().map(resource_block),
        _ => None,
    }
}

fn resource_block(content: ResourceContent) -> Content {
    let ResourceContent { uri, mime_type, text, blob } = content;
    Content::Resource { uri, mime_type, text, data: blob, about: ResourceAbout::default() }
}

/// The block in place of those that are left out.
fn more(left_out: usize) -> Content {
    Content::text(format!("[{left_out} more blocks left out: an answer has at most {BLOCKS_MAX}]"))
}

/// The blocks of an answer that Haft does not know.
#[derive(Default)]
struct Unknown {
    count: usize,
    /// The kind of the first one.
    kind: String,
}

impl Unknown {
    /// The text in place of such a block.
    fn shown(&mut self, raw: &RawValue) -> Content {
        #[derive(Deserialize)]
        struct Kind {
            #[serde(rename = "type")]
            kind: String,
        }
        let kind = serde_json::from_str::<Kind>(raw.get()).map(|it| it.kind);
        let kind = kind
            .as_deref()
            .map_or("without a kind", |kind| &kind[..kind.floor_char_boundary(KIND_BYTES_MAX)]);
        let kind = printable(kind);
        self.count += 1;
        if self.count == 1 {
            self.kind = kind.clone().into_owned();
        }
        Content::text(format!(
            "[content of kind `{kind}`, {} bytes of JSON, which Haft cannot show; the execution log has it]",
            raw.get().len()
        ))
    }

    /// Logs one line per result, whatever the number of unknown blocks.
    fn warn(&self) {
        let Self { count, kind } = self;
        if *count > 0 {
            tracing::warn!(
                count,
                "a tool answered with content of a kind Haft does not know: {kind}"
            );
        }
    }
}

/// The result of `prompts/get`: messages of a chat.
pub fn prompt_messages(raw: &RawValue) -> Result<Vec<Message>, RequestError> {
    #[derive(Deserialize)]
    struct Prompt<'a> {
        #[serde(borrow)]
        messages: Vec<PromptMessage<'a>>,
    }
    #[derive(Deserialize)]
    struct PromptMessage<'a> {
        role: String,
        #[serde(borrow)]
        content: &'a RawValue,
    }
    let prompt: Prompt<'_> = serde_json::from_str(raw.get()).map_err(|error| {
        RequestError::protocol(format!("the prompt cannot be read: {}", describe(&error)))
    })?;
    let left_out = prompt.messages.len().saturating_sub(BLOCKS_MAX);
    let mut messages: Vec<Message> = prompt
        .messages
        .into_iter()
        .take(BLOCKS_MAX)
        .map(|PromptMessage { role, content }| {
            // One block, though servers send lists of them too.
            let blocks: Vec<&RawValue> =
                serde_json::from_str(content.get()).unwrap_or_else(|_| vec![content]);
            Message { role, content: content_blocks(&blocks) }
        })
        .collect();
    if let Some(last) = messages.last_mut().filter(|_| left_out > 0) {
        last.content.push(more(left_out));
    }
    Ok(messages)
}

/// The result of `resources/read`.
pub fn resource_contents(raw: &RawValue) -> Result<Vec<Content>, RequestError> {
    #[derive(Deserialize)]
    struct Contents {
        contents: Vec<ResourceContent>,
    }
    let Contents { contents } = serde_json::from_str(raw.get()).map_err(|error| {
        RequestError::protocol(format!("the resource cannot be read: {}", describe(&error)))
    })?;
    let left_out = contents.len().saturating_sub(BLOCKS_MAX);
    let mut shown: Vec<Content> =
        contents.into_iter().take(BLOCKS_MAX).map(resource_block).collect();
    if left_out > 0 {
        shown.push(more(left_out));
    }
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(json: &str) -> ToolOutput {
        tool_output(serde_json::from_str(json).unwrap()).unwrap()
    }

    /// Proves S3-FR-017, S3-FR-018, S3-FR-019, S3-FR-020, S3-US3-4, S3-US3-5, S3-REF-2.
    #[test]
    fn every_kind_becomes_its_own_and_the_order_is_kept() {
        let output = output(
            r#"{"content": [
                {"type": "audio", "data": "QQ==", "mimeType": "audio/wav", "annotations": {}},
                {"type": "text", "text": "a"},
                {"type": "image", "data": "Qg==", "mimeType": "image/png"},
                {"type": "resource_link", "uri": "file:///x", "name": "x", "title": "An X",
                 "description": "What x is.", "size": 12},
                {"type": "resource", "resource": {"uri": "a://t", "mimeType": "text/plain", "text": "t"}},
                {"type": "resource", "resource": {"uri": "a://b", "blob": "Qw=="}}
            ]}"#,
        );
        let resource = |uri: &str, mime: Option<&str>, text: Option<&str>, data: Option<&str>| {
            Content::Resource {
                uri: uri.into(),
                mime_type: mime.map(Into::into),
                text: text.map(Into::into),
                data: data.map(Into::into),
                about: ResourceAbout::default(),
            }
        };
        let link = Content::Resource {
            uri: "file:///x".into(),
            mime_type: None,
            text: None,
            data: None,
            about: ResourceAbout {
                name: Some("x".into()),
                title: Some("An X".into()),
                description: Some("What x is.".into()),
                size: Some(12),
            },
        };
        assert_eq!(link.as_text(), "[resource file:///x, 12 bytes: An X - What x is.]");
        let expected = vec![
            Content::Audio { data: "QQ==".into(), mime_type: "audio/wav".into() },
            Content::text("a"),
            Content::Image { data: "Qg==".into(), mime_type: "image/png".into() },
            link,
            resource("a://t", Some("text/plain"), Some("t"), None),
            resource("a://b", None, None, Some("Qw==")),
        ];
        assert_eq!(output.content, expected);
    }

    /// Proves S3-EC-3.
    #[test]
    fn an_unknown_kind_is_named_and_kept_raw() {
        let output = output(r#"{"content": [{"type": "hologram", "x": 1}, 5, {"type": "text"}]}"#);
        let texts: Vec<String> = output.content.iter().map(|it| format!("{it:?}")).collect();
        assert!(texts[0].contains("`hologram`, 28 bytes"), "{texts:?}");
        assert!(texts[1].contains("`without a kind`, 1 bytes"), "{texts:?}");
        assert!(texts[2].contains("`text`, 16 bytes"), "{texts:?}");
        assert!(output.raw.unwrap().get().contains("hologram"));
    }

    #[test]
    fn an_answer_of_very_many_blocks_is_cut_and_says_so() {
        let blocks = vec![r#"{"type": "text", "text": "a"}"#; BLOCKS_MAX + 5].join(",");
        let output = output(&format!(r#"{{"content": [{blocks}]}}"#));
        assert_eq!(output.content.len(), BLOCKS_MAX + 1);
        let last = Content::text("[5 more blocks left out: an answer has at most 1000]");
        assert_eq!(output.content.last(), Some(&last));
        assert!(output.is_partial);
        let raw = format!(
            r#"{{"contents": [{}]}}"#,
            vec![r#"{"uri": "a://b"}"#; BLOCKS_MAX + 5].join(",")
        );
        let contents = resource_contents(&serde_json::from_str::<Box<RawValue>>(&raw).unwrap());
        assert_eq!(contents.unwrap().last(), Some(&last));
    }

    #[test]
    fn structure_stays_as_it_was_written() {
        let output = output(r#"{"structuredContent": {"b": 12345678901234567890123, "a": 1}}"#);
        assert_eq!(output.data.unwrap().get(), r#"{"b": 12345678901234567890123, "a": 1}"#);
        assert!(output.content.is_empty() && !output.is_error);
    }
}
