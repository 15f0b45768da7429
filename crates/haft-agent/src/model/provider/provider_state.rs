//! State that a provider expects back with the next request: mostly signed reasoning.

use std::collections::BTreeMap;

use genai::chat::{ContentPart, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kind::Provider;

/// Kept beside an answer, and of use to the same provider only.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct ProviderState {
    provider: String,
    /// The parts before the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<ContentPart>,
    /// Signatures by call id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) signatures: BTreeMap<String, Vec<String>>,
}

impl ProviderState {
    /// Returns `None` for the state of another provider: a conversation may continue with another
    /// model.
    pub(super) fn read(provider_state: &Value, provider: Provider) -> Option<Self> {
        let provider_state = Self::deserialize(provider_state).ok()?;
        (provider_state.provider == provider.adapter().as_lower_str()).then_some(provider_state)
    }

    /// `reasoning` is what was thought without a signature. Services that speak OpenAI's format want
    /// that again as long as tools are being called.
    pub(super) fn write(
        provider: Provider,
        parts: Vec<ContentPart>,
        calls: &[(String, ToolCall)],
        reasoning: Option<String>,
    ) -> Option<Value> {
        let is_kept = |part: &ContentPart| match part {
            ContentPart::ThoughtSignature(_)
            | ContentPart::ReasoningContent(_)
            | ContentPart::Custom(_) => true,
            ContentPart::Text(_)
            | ContentPart::Binary(_)
            | ContentPart::ToolCall(_)
            | ContentPart::ToolResponse(_) => false,
        };
        let mut parts: Vec<ContentPart> = parts.into_iter().filter(is_kept).collect();
        let is_signed = matches!(provider, Provider::Anthropic | Provider::Gemini);
        if !is_signed && parts.is_empty() && !calls.is_empty() {
            parts.extend(reasoning.map(ContentPart::ReasoningContent));
        }
        let signatures: BTreeMap<String, Vec<String>> = calls
            .iter()
            .filter_map(|(id, call)| Some((id.clone(), call.thought_signatures.clone()?)))
            .collect();
        if parts.is_empty() && signatures.is_empty() {
            return None;
        }
        let provider = provider.adapter().as_lower_str().to_owned();
        serde_json::to_value(Self { provider, parts, signatures }).ok()
    }
}
