//! Servers that ask the model: `sampling/createMessage`, answered by the agent's own.

use haft_bounds::parse_error::describe;
use std::sync::Arc;

use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::conversation::said_by;
use crate::model::{
    ChatMessage, ChatModel, ModelError, ModelEvent, ModelFailure, ModelRequest, ModelTurn,
    StopReason,
};
use haft::Content;
use haft::Refusal;

/// Answers requests of servers with a model. Whether a server may ask is decided before (`sampling`).
#[derive(Clone)]
pub struct Sampler {
    model: Arc<dyn ChatModel>,
}

/// The supported parameters of a sampling request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SamplingParams {
    messages: Vec<SamplingMessage>,
    system_prompt: Option<String>,
    max_tokens: Option<u32>,
    temperature: Option<f64>,
    #[serde(default)]
    stop_sequences: Vec<String>,
    #[serde(default)]
    tools: Vec<Value>,
}

#[derive(Deserialize)]
struct SamplingMessage {
    role: String,
    content: Blocks,
}

/// One block, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Blocks {
    Many(Vec<Block>),
    One(Block),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Block {
    Text { text: String },
    Image { data: String, mime_type: String },
    Audio { data: String, mime_type: String },
}

impl Sampler {
    /// Answers with `model`.
    pub fn new(model: Arc<dyn ChatModel>) -> Self {
        Self { model }
    }

    /// The result of `sampling/createMessage`.
    pub async fn sample(&self, params: &RawValue) -> Result<Value, Refusal> {
        let params: SamplingParams = serde_json::from_str(params.get()).map_err(|error| {
            Refusal::new(format!("the request cannot be read: {}", describe(&error)))
        })?;
        if !params.tools.is_empty() {
            return Err(Refusal::new("tools are not offered to servers"));
        }
        let request = ModelRequest {
            system: params.system_prompt,
            messages: params.messages.into_iter().map(message).collect(),
            tools: Vec::new(),
            max_output_tokens: params.max_tokens,
            temperature: params.temperature,
            stop_sequences: params.stop_sequences,
        };
        let answer = match self.answer(request.clone()).await {
            // Many models accept none, and it is only a hint.
            Err(error)
                if request.temperature.is_some() && error.message.contains("temperature") =>
            {
                self.answer(ModelRequest { temperature: None, ..request }).await
            }
            answer => answer,
        };
        let turn = answer.map_err(|error| Refusal::new(error.message))?;
        let stop = match turn.stop {
            StopReason::Length => "maxTokens".to_owned(),
            StopReason::Other(reason) => reason,
            StopReason::End | StopReason::Calls | StopReason::Refused => "endTurn".to_owned(),
        };
        Ok(json!({
            "role": "assistant",
            "content": {"type": "text", "text": turn.text},
            "model": self.model.name(),
            "stopReason": stop,
        }))
    }

    /// The model's final turn.
    async fn answer(&self, request: ModelRequest) -> Result<ModelTurn, ModelError> {
        let mut events = self.model.ask(request);
        while let Some(event) = events.next().await {
            match event? {
                ModelEvent::Done(turn) => return Ok(*turn),
                ModelEvent::Text(_) | ModelEvent::Reasoning(_) | ModelEvent::Restarted { .. } => {}
            }
        }
        Err(ModelError {
            kind: ModelFailure::Unreadable,
            message: "the model gave no answer".to_owned(),
            remedy: None,
        })
    }
}

fn message(SamplingMessage { role, content }: SamplingMessage) -> ChatMessage {
    let blocks = match content {
        Blocks::Many(blocks) => blocks,
        Blocks::One(block) => vec![block],
    };
    let content = blocks.into_iter().map(|block| match block {
        Block::Text { text } => Content::Text { text },
        Block::Image { data, mime_type } => Content::Image { data, mime_type },
        Block::Audio { data, mime_type } => Content::Audio { data, mime_type },
    });
    said_by(&role, content.collect())
}
