//! Answers of our own tools as MCP content blocks. Answers of MCP servers never come here.

use haft::{Content, Envelope, ResourceAbout};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The result of a call that no MCP server answered: of a local tool, or of a call that failed.
pub(super) fn call_result(envelope: &Envelope) -> CallResult<'_> {
    if envelope.error.is_some() {
        let text = envelope.model_text();
        let content = vec![json!({ "type": "text", "text": text })];
        return CallResult { content, structured_content: None, is_error: true };
    }
    // Only objects are structured content; everything else is in the text.
    let data = envelope.data.as_deref().filter(|data| data.get().starts_with('{'));
    let content = envelope.content.iter().map(block).collect();
    CallResult { content, structured_content: data, is_error: false }
}

/// The result of `tools/call`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallResult<'a> {
    content: Vec<Value>,
    /// As the tool wrote it: numbers keep their digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'a RawValue>,
    is_error: bool,
}

fn block(content: &Content) -> Value {
    match content {
        Content::Text { text } => json!({ "type": "text", "text": text }),
        Content::Image { data, mime_type } => {
            json!({ "type": "image", "data": data, "mimeType": mime_type })
        }
        Content::Audio { data, mime_type } => {
            json!({ "type": "audio", "data": data, "mimeType": mime_type })
        }
        Content::Resource { uri, mime_type, text: None, data: None, about } => {
            let name = about.name.as_ref().unwrap_or(uri);
            let mut link = json!({ "type": "resource_link", "uri": uri, "name": name });
            let ResourceAbout { name: _, title, description, size } = about;
            for (key, text) in [("title", title), ("description", description)] {
                if let Some(text) = text {
                    link[key] = json!(text);
                }
            }
            if let Some(size) = size {
                link["size"] = json!(size);
            }
            if let Some(mime_type) = mime_type {
                link["mimeType"] = json!(mime_type);
            }
            link
        }
        Content::Resource { uri, mime_type, text, data, about: _ } => {
            let mut resource = json!({ "uri": uri });
            if let Some(mime_type) = mime_type {
                resource["mimeType"] = json!(mime_type);
            }
            if let Some(text) = text {
                resource["text"] = json!(text);
            } else {
                resource["blob"] = json!(data);
            }
            json!({ "type": "resource", "resource": resource })
        }
    }
}
