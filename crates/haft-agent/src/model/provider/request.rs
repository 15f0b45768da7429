//! A question as genai takes it.

use genai::chat::{
    ChatMessage as GenaiMessage, ChatOptions, ChatRequest, ChatRole, ContentPart, CustomPart,
    ReasoningEffort, Tool, ToolCall, ToolResponse,
};
use serde_json::{Map, Value, json};

use super::content::{Block, MediaSupport};
use super::kind::Provider;
use super::provider_state::ProviderState;
use crate::model::adapt::Offer;
use crate::model::{ChatMessage, ModelCall, ModelRequest, ModelResult};
use haft_text::name::hash;

/// Maximum length of a call id: OpenAI's limit.
const CALL_ID_CHARS_MAX: usize = 40;
const CALL_HASH_CHARS: usize = 32;
/// Separates two strings of one message.
const BETWEEN_TEXTS: &str = "\n\n";
/// Replaces an empty user message.
const NOTHING_SAID: &str = "(empty message)";
/// The key for a model's invalid arguments when they are sent back: providers require an object
/// there, and the model must see its own text.
const INVALID_ARGUMENTS: &str = "invalid_arguments";

/// The conversation and the tools.
pub(super) fn chat(request: &ModelRequest, offer: &Offer, shows: MediaSupport) -> ChatRequest {
    let mut messages = Vec::new();
    for message in &request.messages {
        match message {
            ChatMessage::User { content } => say(&mut messages, user(content, shows)),
            ChatMessage::Assistant { text, calls, provider_state } => {
                let provider_state = provider_state
                    .as_ref()
                    .and_then(|provider_state| ProviderState::read(provider_state, shows.provider));
                let parts = assistant(
                    text,
                    calls,
                    provider_state.unwrap_or_default(),
                    offer,
                    shows.provider,
                );
                // A message without anything in it is refused.
                if !parts.is_empty() {
                    messages.push(GenaiMessage::assistant(parts));
                }
            }
            ChatMessage::Tools { results } => tools(&mut messages, results, offer, shows),
        }
    }
    let mut chat = ChatRequest::from_messages(messages);
    chat.system.clone_from(&request.system);
    if !offer.tools().is_empty() {
        chat.tools = Some(
            offer
                .tools()
                .iter()
                .map(|tool| {
                    let mut offered = Tool::new(tool.name.as_str())
                        .with_description(tool.description.as_str())
                        .with_schema(tool.schema.clone());
                    offered.strict = tool.is_strict.then_some(true);
                    offered
                })
                .collect(),
        );
    }
    chat
}

/// The options of a request.
pub(super) fn options(
    request: &ModelRequest,
    provider: Provider,
    is_verbatim: bool,
) -> ChatOptions {
    let mut options = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_content(true)
        // This would request reasoning from Gemini, and its models without reasoning reject the
        // request.
        .with_capture_reasoning_content(provider != Provider::Gemini)
        .with_capture_tool_calls(true);
    options.max_tokens = request.max_output_tokens;
    options.temperature = request.temperature;
    options.stop_sequences.clone_from(&request.stop_sequences);
    if is_verbatim {
        // Else genai takes `-max` at the end of a name for an effort and cuts it off. A budget means
        // nothing in OpenAI's format, so it is not sent.
        options.reasoning_effort = Some(ReasoningEffort::Budget(0));
    }
    options
}

fn user(content: &[haft::Content], shows: MediaSupport) -> Vec<ContentPart> {
    let mut parts: Vec<ContentPart> =
        shows.blocks(content).into_iter().map(Block::into_part).collect();
    if parts.is_empty() {
        parts.push(ContentPart::from_text(NOTHING_SAID));
    }
    parts
}

/// Adds a user message. Consecutive user messages become one, because some models reject two in a
/// row. So do consecutive strings: some services accept a single one only, or concatenate them.
fn say(messages: &mut Vec<GenaiMessage>, more: Vec<ContentPart>) {
    let mut parts = match messages.pop_if(|last| last.role == ChatRole::User) {
        Some(last) => last.content.into_parts(),
        None => Vec::new(),
    };
    for part in more {
        match (parts.last_mut(), part) {
            (Some(ContentPart::Text(before)), ContentPart::Text(text)) => {
                before.push_str(BETWEEN_TEXTS);
                before.push_str(&text);
            }
            (_, part) => parts.push(part),
        }
    }
    messages.push(GenaiMessage::user(parts));
}

/// The id of a call as the provider takes it, which need not be the one that gave it: a conversation may continue with
/// another model.
fn call_id(id: &str, provider: Provider) -> String {
    let is_counted = id.starts_with("call#");
    let is_plain = id.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-'));
    let is_taken = match provider {
        Provider::Gemini | Provider::Ollama => true,
        Provider::OpenAi => id.len() <= CALL_ID_CHARS_MAX && !is_counted,
        Provider::Anthropic | Provider::Other(_) => id.len() <= CALL_ID_CHARS_MAX && is_plain,
    };
    if is_taken { id.to_owned() } else { format!("call_{}", hash(id, CALL_HASH_CHARS)) }
}

fn assistant(
    text: &str,
    calls: &[ModelCall],
    provider_state: ProviderState,
    offer: &Offer,
    provider: Provider,
) -> Vec<ContentPart> {
    let ProviderState { parts, signatures, .. } = provider_state;
    let mut content = parts;
    if !text.trim().is_empty() {
        content.push(ContentPart::from_text(text));
    }
    content.extend(calls.iter().map(|call| {
        ContentPart::ToolCall(ToolCall {
            call_id: call_id(&call.id, provider),
            fn_name: offer.name_for_model(&call.name),
            fn_arguments: arguments(&call.arguments),
            thought_signatures: signatures.get(&call.id).cloned(),
        })
    }));
    content
}

fn arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Value::Object(arguments),
        Ok(_) | Err(_) if text.trim().is_empty() => Value::Object(Map::new()),
        Ok(_) | Err(_) => json!({ INVALID_ARGUMENTS: text }),
    }
}

fn tools(
    messages: &mut Vec<GenaiMessage>,
    results: &[ModelResult],
    offer: &Offer,
    shows: MediaSupport,
) {
    if shows.provider == Provider::Anthropic {
        let blocks = results.iter().map(|result| anthropic_result(result, shows));
        messages.push(GenaiMessage::tool(blocks.collect::<Vec<ContentPart>>()));
        return;
    }
    let mut answers = Vec::new();
    let mut attached = Vec::new();
    for result in results {
        let (text, more) = split(result, shows);
        let name = offer.name_for_model(&result.name);
        let id = call_id(&result.call_id, shows.provider);
        let answer = ToolResponse::new(id, text).with_fn_name(name);
        answers.push(ContentPart::ToolResponse(answer));
        attached.extend(more);
    }
    if shows.provider == Provider::Ollama {
        // It has one result in each message.
        messages.extend(answers.into_iter().map(|answer| GenaiMessage::tool(vec![answer])));
    } else {
        messages.push(GenaiMessage::tool(answers));
    }
    if !attached.is_empty() {
        say(messages, attached);
    }
}

/// Anthropic's own block, which supports images and an error flag.
fn anthropic_result(result: &ModelResult, shows: MediaSupport) -> ContentPart {
    let blocks = shows.blocks(&result.content).into_iter();
    let content: Vec<Value> = blocks.map(Block::into_anthropic).collect();
    let id = call_id(&result.call_id, shows.provider);
    let mut data = json!({"type": "tool_result", "tool_use_id": id});
    if !content.is_empty() {
        data["content"] = Value::Array(content);
    }
    if result.is_error {
        data["is_error"] = Value::Bool(true);
    }
    ContentPart::Custom(CustomPart { model_iden: None, data })
}

/// The text of a result, and the blocks that must follow in a separate message because a result can
/// only be text. Both refer to each other, and the order stays.
fn split(result: &ModelResult, shows: MediaSupport) -> (String, Vec<ContentPart>) {
    let mut texts: Vec<String> = Vec::new();
    let mut attached: Vec<ContentPart> = Vec::new();
    for block in shows.blocks(&result.content) {
        let what = match &block {
            Block::Text(text) => {
                texts.push(text.clone());
                continue;
            }
            Block::Image { mime_type, .. } | Block::Audio { mime_type, .. } => *mime_type,
        };
        let number = attached.len() / 2 + 1;
        texts.push(format!("[{what}, shown below as attachment {number} of this result]"));
        attached.push(ContentPart::from_text(format!(
            "Attachment {number} of the result of `{}` (call {}):",
            result.name,
            call_id(&result.call_id, shows.provider)
        )));
        attached.push(block.into_part());
    }
    (texts.join("\n"), attached)
}
