//! Converts content to the provider's form, or to a note about the omission.

use genai::chat::{Binary, ContentPart};
use serde_json::{Value, json};

use super::kind::Provider;
use haft::Content;

/// The media that a model accepts.
#[derive(Debug, Clone, Copy)]
pub(in crate::model) struct MediaSupport {
    pub(in crate::model) provider: Provider,
    pub(in crate::model) images: bool,
    /// `None` if the provider decides.
    pub(in crate::model) audio: Option<bool>,
}

/// A block, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block<'c> {
    Text(String),
    Image { data: &'c str, mime_type: &'static str },
    Audio { data: &'c str, mime_type: &'static str },
}

impl MediaSupport {
    /// The blocks in order. Blank text is dropped, because some providers reject it.
    pub(super) fn blocks(self, content: &[Content]) -> Vec<Block<'_>> {
        let blocks = content.iter().map(|block| self.block(block));
        blocks
            .filter(|block| !matches!(block, Block::Text(text) if text.trim().is_empty()))
            .collect()
    }

    fn block(self, content: &Content) -> Block<'_> {
        match content {
            Content::Text { text } | Content::Resource { text: Some(text), .. } => {
                Block::Text(text.clone())
            }
            Content::Image { data, mime_type }
            | Content::Audio { data, mime_type }
            | Content::Resource {
                mime_type: Some(mime_type), data: Some(data), text: None, ..
            } => self.binary(content, data, mime_type),
            Content::Resource { text: None, .. } => Block::Text(content.as_text().into_owned()),
        }
    }

    fn binary<'c>(self, content: &Content, data: &'c str, mime_type: &str) -> Block<'c> {
        if !is_base64(data) {
            return Block::Text(content.left_out("its data is not base64"));
        }
        let image = self.images.then(|| self.provider.image_type(mime_type)).flatten();
        if let Some(mime_type) = image {
            return Block::Image { data, mime_type };
        }
        if let Some(mime_type) = self.provider.audio_type(mime_type, self.audio) {
            return Block::Audio { data, mime_type };
        }
        Block::Text(content.left_out("this model is not shown it"))
    }
}

/// Returns true if the data is valid base64: a damaged image would make the provider reject the
/// conversation from then on.
fn is_base64(data: &str) -> bool {
    let bytes = data.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !bytes.is_empty()
        && data.len().is_multiple_of(4)
        && data.len() - bytes.len() <= 2
        && bytes.bytes().all(is_digit)
}

impl Block<'_> {
    pub(super) fn into_part(self) -> ContentPart {
        match self {
            Self::Text(text) => ContentPart::Text(text),
            Self::Image { data, mime_type } | Self::Audio { data, mime_type } => {
                ContentPart::Binary(Binary::from_base64(mime_type, data, None))
            }
        }
    }

    /// Converts to a block of Anthropic's `tool_result`.
    pub(super) fn into_anthropic(self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Image { data, mime_type } => json!({"type": "image", "source": {
                "type": "base64", "media_type": mime_type, "data": data}}),
            // This provider accepts no audio, so there is none here; the fallback is text.
            Self::Audio { mime_type, .. } => {
                json!({"type": "text", "text": format!("[left out: {mime_type}]")})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_provider_could_read_is_left_out() {
        let shown = MediaSupport { provider: Provider::OpenAi, images: true, audio: None };
        for data in ["!!!notb64", "", "AAA", "A===", "AAAA\n", "AA=A"] {
            let image = Content::Image { data: data.into(), mime_type: "image/png".into() };
            let blocks = shown.blocks(std::slice::from_ref(&image));
            assert!(
                matches!(&blocks[..], [Block::Text(text)] if text.starts_with("[left out, its data is not base64")),
                "{data}: {blocks:?}"
            );
        }
        assert!(is_base64("AA==") && is_base64("+/09azAZ"));
    }

    #[test]
    fn what_is_not_shown_is_said() {
        let image = Content::Image { data: "AAAA".into(), mime_type: "image/png".into() };
        let resource = Content::Resource {
            uri: "file:///a.png".into(),
            mime_type: Some("image/png".into()),
            text: None,
            data: Some("AAAA".into()),
            about: haft::ResourceAbout::default(),
        };
        let content = [image, resource, Content::text(" ")];
        let shown = MediaSupport { provider: Provider::OpenAi, images: true, audio: None };
        let picture = || Block::Image { data: "AAAA", mime_type: "image/png" };
        assert_eq!(shown.blocks(&content), [picture(), picture()]);
        let hidden = MediaSupport { images: false, ..shown };
        assert_eq!(
            hidden.blocks(&content),
            [
                Block::Text(
                    "[left out, this model is not shown it: image/png, 3 bytes]".to_owned()
                ),
                Block::Text(
                    "[left out, this model is not shown it: resource file:///a.png, image/png, \
                     3 bytes]"
                        .to_owned()
                ),
            ]
        );
    }
}
