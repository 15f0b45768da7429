//! Metadata of tools that a file declares: title, annotations, icons.

use super::model::Setting;
use crate::definition::ToolDefinition;
use crate::tool_metadata::{Icon, ToolAnnotations};

/// The metadata that a file declares for one tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolMetadata {
    /// A name for people.
    pub title: Option<Setting<String>>,
    /// Hints about its behaviour.
    pub annotations: Option<Setting<ToolAnnotations>>,
    /// Its icons.
    pub icons: Option<Setting<Vec<Icon>>>,
}

impl ToolMetadata {
    /// Returns true if the file declares nothing.
    pub fn is_empty(&self) -> bool {
        let Self { title, annotations, icons } = self;
        title.is_none() && annotations.is_none() && icons.is_none()
    }

    /// Lets what the file declares win over a definition: each hint by its key, all icons together.
    pub fn apply(&self, definition: &mut ToolDefinition) {
        let Self { title, annotations, icons } = self;
        if let Some(title) = title {
            definition.title = Some(title.value.clone());
        }
        if let Some(annotations) = annotations {
            definition.annotations.get_or_insert_default().overlay(&annotations.value);
        }
        if let Some(icons) = icons {
            definition.icons = Some(icons.value.clone());
        }
    }
}
