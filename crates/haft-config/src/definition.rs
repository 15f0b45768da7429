//! The definition of a tool, as callers and models see it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::redact::Redactor;
use crate::tool_metadata::{Icon, ToolAnnotations};

/// The definition of a tool for callers and models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The tool's own name, before any prefix or normalization.
    pub name: String,
    /// A display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The purpose of the tool and when to prefer it. Sent to the model unmodified.
    pub description: String,
    /// JSON Schema (2020-12) of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the structured output, if declared.
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
    /// Creates a definition with a name, a description and the JSON Schema of the arguments.
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

    /// Masks known secrets, which a file may contain in a description.
    #[must_use]
    pub fn masked(&self, redactor: &Redactor) -> Self {
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
