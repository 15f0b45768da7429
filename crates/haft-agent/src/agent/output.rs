//! The tool that reads on in a cut result, added once a result of the conversation was cut.

use super::Agent;
use super::conversation::Conversation;
use crate::model::{ChatMessage, ModelTool};
use haft::{Content, InlineTool, READ_OUTPUT, ToolDefinition};

impl Agent {
    /// The agent's own tool, unless the toolbox has one of that name.
    pub(super) fn output_tool(&self, name: &str) -> Option<InlineTool> {
        let is_own = name == READ_OUTPUT && self.visible_tool(name).is_none();
        is_own.then(|| self.read_output.clone())
    }

    /// The tool as a model sees it; none where no result was cut.
    pub(super) fn output_offer(&self, conversation: &Conversation) -> Option<ModelTool> {
        let note = format!("`{READ_OUTPUT}`");
        let is_cut = |content: &Content| match content {
            Content::Text { text } => text.contains(&note),
            Content::Image { .. } | Content::Audio { .. } | Content::Resource { .. } => false,
        };
        let has_cut = conversation.messages().iter().any(|message| match message {
            ChatMessage::Tools { results } => {
                results.iter().any(|result| result.content.iter().any(is_cut))
            }
            ChatMessage::User { .. } | ChatMessage::Assistant { .. } => false,
        });
        if !has_cut || self.visible_tool(READ_OUTPUT).is_some() {
            return None;
        }
        let ToolDefinition { name, description, input_schema, .. } =
            self.read_output.tool().definition();
        Some(ModelTool { name, description, input_schema })
    }
}
