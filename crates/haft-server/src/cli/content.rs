//! What tools, prompts and resources answer, as text for people.

use haft::Content;
use haft::text::{printable, printable_block};

/// A block, made safe for a terminal.
pub(super) fn shown(block: &Content) -> String {
    printable_block(&text(block)).into_owned()
}

/// A block as text. What is no text is named with its kind and size.
pub(super) fn text(block: &Content) -> String {
    match block {
        Content::Text { text } | Content::Resource { text: Some(text), .. } => text.clone(),
        Content::Image { mime_type, data } | Content::Audio { mime_type, data } => {
            format!("[{}, {} bytes in base64]", printable(mime_type), data.len())
        }
        Content::Resource { uri, text: None, .. } => format!("[{}]", printable(uri)),
    }
}
