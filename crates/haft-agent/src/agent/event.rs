//! Events of a turn, for a listener.

use serde::{Deserialize, Serialize};

use super::turn::TurnEnd;
use crate::model::Usage;

/// Something that happened in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum AgentEvent {
    /// A turn began.
    #[serde(rename = "turn.started")]
    TurnStarted {
        /// The conversation it belongs to.
        session: String,
    },
    /// A model request starts.
    #[serde(rename = "step.started")]
    StepStarted {
        /// The number of the request in this turn, starting at 1.
        step: u32,
        /// Number of offered tools.
        tools: usize,
    },
    /// A piece of the model's answer.
    #[serde(rename = "text.delta")]
    Text {
        /// The piece.
        text: String,
    },
    /// A piece of the model's reasoning, if the provider sends it.
    #[serde(rename = "reasoning.delta")]
    Reasoning {
        /// The piece.
        text: String,
    },
    /// The model's answer so far, if there is any, is void: the request is made again.
    #[serde(rename = "text.restarted")]
    Restarted {
        /// The reason, and the time of the retry.
        reason: String,
    },
    /// A complete text of the model, before calls or as its answer.
    #[serde(rename = "text.completed")]
    TextCompleted {
        /// All of it.
        text: String,
    },
    /// The model calls a tool.
    #[serde(rename = "tool.started")]
    ToolStarted {
        /// The model's id of this call.
        call_id: String,
        /// The tool.
        tool: String,
        /// Its arguments, as the model wrote them.
        arguments: String,
    },
    /// Progress of a tool.
    #[serde(rename = "tool.progress")]
    ToolProgress {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// Completed work, in the tool's own unit.
        progress: f64,
        /// Total work, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// The current step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A call is over.
    #[serde(rename = "tool.completed")]
    ToolCompleted {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// The id of its log entry; none where the call was not made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        execution_id: Option<String>,
        /// True if it failed.
        is_error: bool,
        /// The content for the model, as text.
        text: String,
        /// Duration of the call.
        duration_ms: u64,
    },
    /// A problem that does not end the turn.
    #[serde(rename = "warning")]
    Warning {
        /// The problem and its remedy.
        message: String,
    },
    /// The turn is over.
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        /// The model's answer.
        text: String,
        /// The reason of the end.
        end: TurnEnd,
        /// Number of model requests.
        steps: u32,
        /// Tokens used by the turn.
        usage: Usage,
    },
    /// The turn could not be finished.
    #[serde(rename = "turn.failed")]
    TurnFailed {
        /// The failure, the item it concerns, and the cause.
        message: String,
        /// The remedy.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<String>,
    },
}
