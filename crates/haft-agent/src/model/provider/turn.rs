//! Assembles genai's events into one turn.

use std::collections::HashSet;

use genai::chat::{
    ChatResponse, ChatStreamEvent, ContentPart, MessageContent, StopReason as GenaiStop, StreamEnd,
    ToolCall, Usage as GenaiUsage,
};
use serde_json::Value;
use uuid::Uuid;

use super::kind::Provider;
use super::provider_state::ProviderState;
use super::tool_calls::CALLS_MAX;
use crate::model::adapt::Offer;
use crate::model::{ModelCall, ModelEvent, ModelTurn, StopReason, Usage};

/// Maximum size of one answer, all text and calls together.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// An answer while it comes in.
#[derive(Default)]
pub(super) struct TurnBuilder {
    text: String,
    /// The calls with the model's unmodified arguments, if genai provides them. Genai parses the
    /// final event: large numbers and repeated keys are lost there.
    calls: Vec<ToolCall>,
    /// Total size, reasoning included.
    bytes: usize,
    /// True once the service sent any data.
    pub(super) is_begun: bool,
}

/// The meaning of one event of genai.
pub(super) enum Chunk {
    Event(ModelEvent),
    End(Box<StreamEnd>),
    Nothing,
    /// It exceeds [`ANSWER_BYTES_MAX`].
    TooMuch,
}

/// Reasons why the end of an answer is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnError {
    /// The rest is missing.
    BrokenOff,
    /// It announces tool calls and has none.
    NoCalls,
    /// It has too many calls.
    TooManyCalls,
}

impl TurnBuilder {
    pub(super) fn push(&mut self, event: ChatStreamEvent) -> Chunk {
        // Genai emits `Start` before it sends the request.
        self.is_begun |= !matches!(event, ChatStreamEvent::Start);
        self.bytes += self.size(&event);
        if self.bytes > ANSWER_BYTES_MAX {
            return Chunk::TooMuch;
        }
        match event {
            ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                self.text.push_str(&chunk.content);
                Chunk::Event(ModelEvent::Text(chunk.content))
            }
            ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                Chunk::Event(ModelEvent::Reasoning(chunk.content))
            }
            ChatStreamEvent::ToolCallChunk(chunk) => {
                self.call(chunk.tool_call);
                Chunk::Nothing
            }
            ChatStreamEvent::End(end) => Chunk::End(Box::new(end)),
            ChatStreamEvent::Start
            | ChatStreamEvent::Heartbeat
            | ChatStreamEvent::Chunk(_)
            | ChatStreamEvent::ReasoningChunk(_)
            | ChatStreamEvent::ThoughtSignatureChunk(_) => Chunk::Nothing,
        }
    }

    /// The size that an event adds. A piece of a call contains all previous ones.
    fn size(&self, event: &ChatStreamEvent) -> usize {
        match event {
            ChatStreamEvent::Chunk(chunk)
            | ChatStreamEvent::ReasoningChunk(chunk)
            | ChatStreamEvent::ThoughtSignatureChunk(chunk) => chunk.content.len(),
            ChatStreamEvent::ToolCallChunk(chunk) => {
                let known = self.calls.iter().rfind(|it| it.call_id == chunk.tool_call.call_id);
                let length = |call: &ToolCall| call.fn_arguments.as_str().map_or(64, str::len);
                length(&chunk.tool_call).saturating_sub(known.map_or(0, length))
            }
            ChatStreamEvent::Start | ChatStreamEvent::Heartbeat | ChatStreamEvent::End(_) => 0,
        }
    }

    /// Each piece of a call holds all that came before it; one that does not is another call of the same id.
    fn call(&mut self, call: ToolCall) {
        let goes_on = |known: &&mut ToolCall| {
            let texts = known.fn_arguments.as_str().zip(call.fn_arguments.as_str());
            known.call_id == call.call_id
                && known.fn_name == call.fn_name
                && texts.is_some_and(|(known, more)| more.starts_with(known))
        };
        match self.calls.iter_mut().rfind(goes_on) {
            Some(known) => *known = call,
            None => self.calls.push(call),
        }
    }

    /// The whole answer. `tool_calls` are its calls where the format is OpenAI's.
    pub(super) fn finish(
        mut self,
        end: StreamEnd,
        tool_calls: Vec<ToolCall>,
        provider: Provider,
        offer: &Offer,
    ) -> Result<ModelTurn, TurnError> {
        let StreamEnd {
            captured_usage,
            captured_stop_reason,
            captured_content,
            captured_reasoning_content,
            captured_response_id: _,
        } = end;
        let mut parts = captured_content.map(MessageContent::into_parts).unwrap_or_default();
        let ended = take_calls(&mut parts);
        if !tool_calls.is_empty() {
            self.calls = tool_calls;
        }
        let calls = self.with_signatures(ended);
        // Some formats have a stop reason, and without it the rest is missing; in the others there
        // is at least some content.
        let says_why = matches!(provider, Provider::Gemini | Provider::Ollama);
        let is_nothing = self.text.is_empty() && calls.is_empty();
        match &captured_stop_reason {
            None if says_why || is_nothing => return Err(TurnError::BrokenOff),
            Some(GenaiStop::ToolCall(_)) if calls.is_empty() => return Err(TurnError::NoCalls),
            _ if calls.len() > CALLS_MAX => return Err(TurnError::TooManyCalls),
            Some(_) | None => {}
        }
        Ok(turn(
            Answer {
                text: self.text,
                calls,
                parts,
                reasoning: captured_reasoning_content,
                usage: captured_usage.unwrap_or_default(),
                stop: captured_stop_reason,
            },
            provider,
            offer,
        ))
    }

    /// The calls from the stream; signatures come with the end.
    fn with_signatures(&self, ended: Vec<ToolCall>) -> Vec<ToolCall> {
        if self.calls.is_empty() {
            return ended;
        }
        let mut calls = self.calls.clone();
        for call in &mut calls {
            let end = ended.iter().find(|end| end.call_id == call.call_id);
            let signatures = || end.and_then(|end| end.thought_signatures.clone());
            call.thought_signatures = call.thought_signatures.take().or_else(signatures);
        }
        calls
    }
}

/// An answer that came in one piece.
pub(super) fn whole(response: ChatResponse, provider: Provider, offer: &Offer) -> ModelTurn {
    let mut parts = response.content.into_parts();
    let calls = take_calls(&mut parts);
    let texts = parts.iter().filter_map(|part| match part {
        ContentPart::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let answer = Answer {
        text: texts.collect(),
        calls,
        parts,
        reasoning: response.reasoning_content,
        usage: response.usage,
        stop: response.stop_reason,
    };
    turn(answer, provider, offer)
}

struct Answer {
    text: String,
    calls: Vec<ToolCall>,
    parts: Vec<ContentPart>,
    reasoning: Option<String>,
    usage: GenaiUsage,
    stop: Option<GenaiStop>,
}

fn turn(answer: Answer, provider: Provider, offer: &Offer) -> ModelTurn {
    let mut ids = HashSet::new();
    let named = |call: ToolCall| (id_of(&call.call_id, &mut ids), call);
    let named: Vec<(String, ToolCall)> = answer.calls.into_iter().map(named).collect();
    // At the token limit, missing arguments do not mean empty ones.
    let none = if matches!(answer.stop, Some(GenaiStop::MaxTokens(_))) { "" } else { "{}" };
    let calls: Vec<ModelCall> = named
        .iter()
        .map(|(id, call)| {
            let arguments = text_of(&call.fn_arguments, none);
            let (name, arguments) = offer.call_of_model(&call.fn_name, arguments);
            ModelCall { id: id.clone(), name, arguments }
        })
        .collect();
    let count = |tokens: Option<i32>| tokens.and_then(|it| u64::try_from(it).ok()).unwrap_or(0);
    ModelTurn {
        stop: stop(answer.stop, !calls.is_empty()),
        usage: Usage {
            input_tokens: count(answer.usage.prompt_tokens),
            output_tokens: count(answer.usage.completion_tokens),
        },
        provider_state: ProviderState::write(provider, answer.parts, &named, answer.reasoning),
        text: answer.text,
        calls,
    }
}

fn take_calls(parts: &mut Vec<ContentPart>) -> Vec<ToolCall> {
    let mut calls = Vec::new();
    let others = std::mem::take(parts).into_iter().filter_map(|part| match part {
        ContentPart::ToolCall(call) => {
            calls.push(call);
            None
        }
        other => Some(other),
    });
    *parts = others.collect();
    calls
}

/// The service's own id. A missing or repeated one is replaced, because results would go to the
/// wrong call. Genai generates missing ids: `call_0` in OpenAI's format, `call#name#0` in Gemini's,
/// and recognizes the latter, so that shape stays.
fn id_of(id: &str, seen: &mut HashSet<String>) -> String {
    let is_counted = id
        .strip_prefix("call_")
        .is_some_and(|rest| rest.len() < 4 && rest.bytes().all(|byte| byte.is_ascii_digit()));
    let unique = Uuid::now_v7();
    let id = match id.strip_prefix("call#").and_then(|rest| rest.rsplit_once('#')) {
        Some((name, _)) => format!("call#{name}#{}", unique.as_u64_pair().1),
        None if id.is_empty() || is_counted || seen.contains(id) => {
            format!("call_{}", unique.simple())
        }
        None => id.to_owned(),
    };
    seen.insert(id.clone());
    id
}

/// Arguments as JSON text, or the model's own text if invalid, and `none` if the model wrote
/// nothing.
fn text_of(arguments: &Value, none: &str) -> String {
    match arguments {
        Value::String(text) if text.trim().is_empty() => none.to_owned(),
        Value::String(text) => text.clone(),
        Value::Null => none.to_owned(),
        other => other.to_string(),
    }
}

fn stop(reason: Option<GenaiStop>, has_calls: bool) -> StopReason {
    match reason {
        Some(GenaiStop::MaxTokens(_)) => StopReason::Length,
        Some(GenaiStop::ContentFilter(_)) => StopReason::Refused,
        // Some services send `stop` for calls.
        Some(GenaiStop::Completed(_) | GenaiStop::ToolCall(_)) | None if has_calls => {
            StopReason::Calls
        }
        Some(GenaiStop::Completed(_) | GenaiStop::StopSequence(_) | GenaiStop::ToolCall(_))
        | None => StopReason::End,
        Some(GenaiStop::Other(reason)) => StopReason::Other(reason),
    }
}
