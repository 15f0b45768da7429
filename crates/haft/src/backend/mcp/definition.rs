//! Tools of MCP servers, as the registry knows them.

use haft_mcp::ToolDescription;

use crate::tool::ToolDefinition;

impl From<ToolDescription> for ToolDefinition {
    /// Name, description and schemas exactly as the server sent them.
    fn from(description: ToolDescription) -> Self {
        let ToolDescription { name, title, description, input_schema, output_schema, rest: _ } =
            description;
        Self { name, title, description, input_schema, output_schema }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves S1-6 on the side of the registry.
    #[test]
    fn a_servers_tool_is_registered_as_it_was_sent() {
        let sent = r#"{"name": "a b", "inputSchema": {"type": "object", "x": 1}, "icons": []}"#;
        let description: ToolDescription = serde_json::from_str(sent).unwrap();
        let tool = ToolDefinition::from(description);
        assert_eq!((tool.name.as_str(), tool.description.as_str()), ("a b", ""));
        assert_eq!(tool.input_schema, serde_json::json!({"type": "object", "x": 1}));
    }
}
