//! The resources.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::content::PNG;

pub(crate) fn list() -> Vec<Resource> {
    let resource = |uri: &str, name: &str, description: &str, mime_type: &str| {
        Resource::new(uri, name).with_description(description).with_mime_type(mime_type)
    };
    vec![
        resource("test://static-text", "static-text", "Always the same text.", "text/plain"),
        resource("test://static-binary", "static-binary", "Always the same image.", "image/png"),
        resource("test://watched-resource", "watched", "Can be subscribed to.", "text/plain"),
    ]
}

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = ResourceTemplate::new("test://template/{id}/data", "template");
    vec![template.with_description("Data for any id.").with_mime_type("application/json")]
}

pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = match uri {
        "test://static-text" => {
            ResourceContents::text("This is the content of the static text resource.", uri)
        }
        "test://static-binary" => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        "test://watched-resource" => ResourceContents::text("Watched resource content", uri),
        _ => from_template(uri).ok_or_else(|| {
            ErrorData::resource_not_found("Resource not found", Some(json!({"uri": uri})))
        })?,
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// The content of `test://template/{id}/data` for the id in a URI.
fn from_template(uri: &str) -> Option<ResourceContents> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    let data = format!("Data for ID: {id}");
    let text = json!({"id": id, "templateTest": true, "data": data}).to_string();
    Some(ResourceContents::text(text, uri).with_mime_type("application/json"))
}
