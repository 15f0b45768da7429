//! What tools of our own answer, as blocks of MCP. Answers of MCP servers never come here.

use haft::{Content, Envelope};
use serde_json::{Value, json};

/// The result of a call that no MCP server answered: of a local tool, or of a call that failed.
pub(super) fn call_result(envelope: &Envelope) -> Value {
    if envelope.error.is_some() {
        let text = envelope.model_text();
        return json!({ "content": [{ "type": "text", "text": text }], "isError": true });
    }
    let blocks: Vec<Value> = envelope.content.iter().map(block).collect();
    let mut result = json!({ "content": blocks, "isError": false });
    // Only objects are structured content; of everything else the text tells.
    if let Some(data) = envelope.data.as_ref().filter(|data| data.get().starts_with('{'))
        && let Ok(data) = serde_json::to_value(data)
    {
        result["structuredContent"] = data;
    }
    result
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
        Content::Resource { uri, mime_type, text: None, data: None } => {
            let mut link = json!({ "type": "resource_link", "uri": uri, "name": uri });
            if let Some(mime_type) = mime_type {
                link["mimeType"] = json!(mime_type);
            }
            link
        }
        Content::Resource { uri, mime_type, text, data } => {
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
