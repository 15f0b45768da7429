//! The definition of a tool, as callers and models see it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::redact::Redactor;
use crate::tool_metadata::{Icon, ToolAnnotations};

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
    /// Hints about its behaviour, for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Its icons, for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
}

impl ToolDefinition {
    /// A tool with nothing but a name, a description and the JSON Schema of its arguments.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
    ) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema,
            output_schema: None,
            annotations: None,
            icons: None,
        }
    }

    /// The same without known secrets, which a file may have put into a description.
    pub(crate) fn masked(&self, redactor: &Redactor) -> Self {
        let mut masked = self.clone();
        let Self { name: _, title, description, input_schema, output_schema, annotations, icons } =
            &mut masked;
        title.iter_mut().chain([description]).for_each(|text| redactor.mask(text));
        redactor.mask_value(input_schema);
        if let Some(schema) = output_schema {
            redactor.mask_value(schema);
        }
        if let Some(annotations) = annotations {
            redactor.mask_fields(annotations.fields_mut());
        }
        for icon in icons.iter_mut().flatten() {
            redactor.mask_fields(icon.fields_mut());
        }
        masked
    }
}
