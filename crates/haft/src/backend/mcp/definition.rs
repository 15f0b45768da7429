//! Tools of MCP servers, as the registry knows them.

use haft_mcp::ToolDescription;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::tool::ToolDefinition;

/// The definition of a server's tool. Name, description and schemas stay exactly as the server sent them.
pub(crate) fn tool_definition(description: ToolDescription) -> ToolDefinition {
    let ToolDescription { name, title, description, input_schema, output_schema, rest } =
        description;
    ToolDefinition {
        name,
        title,
        description,
        input_schema,
        output_schema,
        annotations: field(&rest, "annotations"),
        icons: field(&rest, "icons"),
    }
}

/// A field as far as it has the form that MCP gives it. What has another form stays in the server's
/// description, which the gateway passes on unmodified.
fn field<T: DeserializeOwned>(rest: &Map<String, Value>, key: &str) -> Option<T> {
    rest.get(key).and_then(|value| T::deserialize(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves S1-6 on the side of the registry.
    #[test]
    fn a_servers_tool_is_registered_as_it_was_sent() {
        let sent = r#"{"name": "a b", "inputSchema": {"type": "object", "x": 1}, "icons": []}"#;
        let description: ToolDescription = serde_json::from_str(sent).unwrap();
        let tool = tool_definition(description);
        assert_eq!((tool.name.as_str(), tool.description.as_str()), ("a b", ""));
        assert_eq!(tool.input_schema, serde_json::json!({"type": "object", "x": 1}));
        assert_eq!((tool.annotations, tool.icons), (None, Some(Vec::new())));
    }

    #[test]
    fn metadata_of_another_form_is_no_metadata() {
        let sent =
            r#"{"name": "a", "annotations": "none", "icons": ["https://example.com/i.png"]}"#;
        let tool = tool_definition(serde_json::from_str::<ToolDescription>(sent).unwrap());
        assert_eq!((tool.annotations, tool.icons), (None, None));
    }
}
