//! The entries of `tools/list`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDescription {
    /// The name `tools/call` expects, kept exactly as sent.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool's purpose; servers may leave it out, which reads as the empty string.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments; a server that sends none takes an object with anything in it.
    #[serde(default = "any_object")]
    pub input_schema: Value,
    /// JSON Schema of `structuredContent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Every other field of the tool, untouched.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

fn any_object() -> Value {
    serde_json::json!({"type": "object", "properties": {}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_without_description_or_schema_gets_the_empty_ones() {
        let tool: ToolDescription =
            serde_json::from_str(r#"{"name":"a b/c!","icons":[]}"#).unwrap();
        assert_eq!((tool.name.as_str(), tool.description.as_str()), ("a b/c!", ""));
        assert_eq!(tool.input_schema, serde_json::json!({"type": "object", "properties": {}}));
        assert!(tool.rest.contains_key("icons"));
    }
}
