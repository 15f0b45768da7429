//! What happens in a turn, as whoever follows it hears it.

use serde::{Deserialize, Serialize};

use super::turn::TurnEnd;
use crate::model::Usage;

/// Something that happened in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum AgentEvent {
    /// A turn began.
    #[serde(rename = "turn.started")]
    TurnStarted {
        /// The conversation it belongs to.
        session: String,
    },
    /// The model is asked.
    #[serde(rename = "step.started")]
    StepStarted {
        /// How often it was asked in this turn, this time included.
        step: u32,
        /// How many tools it is offered.
        tools: usize,
    },
    /// A piece of the model's answer.
    #[serde(rename = "text.delta")]
    Text {
        /// The piece.
        text: String,
    },
    /// A piece of what the model thinks, where it tells.
    #[serde(rename = "reasoning.delta")]
    Reasoning {
        /// The piece.
        text: String,
    },
    /// The model's answer so far, if there is any, is void: the request is made again.
    #[serde(rename = "text.restarted")]
    Restarted {
        /// Why, and when it is asked again.
        reason: String,
    },
    /// The model has said something to its end, before calls or as its answer.
    #[serde(rename = "text.completed")]
    TextCompleted {
        /// All of it.
        text: String,
    },
    /// The model calls a tool.
    #[serde(rename = "tool.started")]
    ToolStarted {
        /// What the model calls this call.
        call_id: String,
        /// The tool.
        tool: String,
        /// Its arguments, as the model wrote them.
        arguments: String,
    },
    /// A tool says how far it is.
    #[serde(rename = "tool.progress")]
    ToolProgress {
        /// The call.
        call_id: String,
        /// The tool.
        tool: String,
        /// How far, in the tool's own measure.
        progress: f64,
        /// How far it will go, where the tool says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// What it is doing.
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
        /// Whether it failed.
        is_error: bool,
        /// What the model is shown of it, as text.
        text: String,
        /// How long it took.
        duration_ms: u64,
    },
    /// Something is not as it should be, and the turn goes on.
    #[serde(rename = "warning")]
    Warning {
        /// What, and what to do.
        message: String,
    },
    /// The turn is over.
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        /// The model's answer.
        text: String,
        /// Why the turn ended.
        end: TurnEnd,
        /// How often the model was asked.
        steps: u32,
        /// What the turn cost.
        usage: Usage,
    },
    /// The turn could not be finished.
    #[serde(rename = "turn.failed")]
    TurnFailed {
        /// What happened to which thing, and why.
        message: String,
        /// What to do next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<String>,
    },
}
