//! Selects the tools for the model: all of a small toolbox, the best matches of a large one.

use std::collections::HashSet;

use super::Agent;
use super::conversation::Conversation;
use super::turn::text_of;
use crate::model::{ChatMessage, ModelTool};
use haft::ToolInfo;

/// Number of recent user messages that decide: `yes, do that` alone is not enough.
const SAID_MAX: usize = 2;

/// The tool that a model needs when it lacks something else, so it is always offered.
const ALWAYS: &str = "request_human_input";

impl Agent {
    /// Returns the current tools of the toolbox, so that an added tool is in the next request and a
    /// removed one is not.
    pub(super) async fn offer(&self, conversation: &Conversation) -> Vec<ModelTool> {
        let mut tools = self.visible_tools();
        tools.retain(|tool| !tool.app_only);
        let max = self.settings.tools_max;
        let mut offered: Vec<ModelTool> = if tools.len() <= max {
            tools.into_iter().map(offered).collect()
        } else {
            let fitting = self.fitting(conversation, max).await;
            tools.into_iter().filter(|tool| fitting.contains(&tool.name)).map(offered).collect()
        };
        offered.extend(self.resource_offers());
        offered.extend(self.output_offer(conversation));
        offered
    }

    /// The tools that were called before, which the model may want again, and then the best.
    async fn fitting(&self, conversation: &Conversation, max: usize) -> HashSet<String> {
        let messages = conversation.messages();
        let called = messages.iter().rev().flat_map(|message| match message {
            ChatMessage::Assistant { calls, .. } => calls.as_slice(),
            ChatMessage::User { .. } | ChatMessage::Tools { .. } => &[],
        });
        // Half of the room at most: a long conversation must not keep new tools out.
        let mut fitting: HashSet<String> = HashSet::new();
        if max > 1 && self.visible_tool(ALWAYS).is_some() {
            fitting.insert(ALWAYS.to_owned());
        }
        for call in called {
            if fitting.len() >= max / 2 {
                break;
            }
            if self.visible_tool(&call.name).is_some() {
                fitting.insert(call.name.clone());
            }
        }
        let said = messages.iter().rev().filter_map(|message| match message {
            ChatMessage::User { content } => Some(text_of(content)),
            ChatMessage::Assistant { .. } | ChatMessage::Tools { .. } => None,
        });
        let said: Vec<String> = said.take(SAID_MAX).collect();
        // Half by the last message, because the earlier one may be much longer; then by both.
        let last = said.first().map(String::as_str).unwrap_or_default();
        let half = fitting.len() + (max - fitting.len()).div_ceil(2);
        self.fill(&mut fitting, half, last).await;
        self.fill(&mut fitting, max, &said.join("\n")).await;
        fitting
    }

    /// Adds the best matches for a request up to `count` tools.
    async fn fill(&self, fitting: &mut HashSet<String>, count: usize, request: &str) {
        let lists = &self.settings.lists;
        let ranked = if lists.is_whole() {
            self.runtime.select(request, count).await
        } else {
            let shows = |server: Option<&str>, name: &str| lists.shows_tool(server, name);
            self.runtime.choose_among(request, count, shows).await.ranked
        };
        for ranked in ranked {
            if fitting.len() >= count {
                break;
            }
            fitting.insert(ranked.tool);
        }
    }
}

fn offered(tool: ToolInfo) -> ModelTool {
    let ToolInfo { name, description, input_schema, .. } = tool;
    ModelTool { name, description, input_schema }
}
