//! The definition of a tool, as callers and models see it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::redact::Redactor;

/// What a caller and a model need to know about a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The tool's own name, before any prefix or normalization.
    pub name: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the tool does and when to prefer it. Reaches the model word for word.
    pub description: String,
    /// JSON Schema (2020-12) of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured answer, if the tool promises one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

impl ToolDefinition {
    /// The same without known secrets, which a file may have put into a description.
    pub(crate) fn masked(&self, redactor: &Redactor) -> Self {
        let mut masked = self.clone();
        let Self { name: _, title, description, input_schema, output_schema } = &mut masked;
        title.iter_mut().chain([description]).for_each(|text| redactor.mask(text));
        redactor.mask_value(input_schema);
        if let Some(schema) = output_schema {
            redactor.mask_value(schema);
        }
        masked
    }
}
