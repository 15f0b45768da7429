//! The provider of a model, detected from its name, and the features of its service.

use genai::adapter::AdapterKind;

use super::relay::Framing;
use crate::model::{ModelError, ModelFailure};
use haft_text::nearest;

/// Between the provider and the name of its model.
const BETWEEN: &str = "::";

/// The provider of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model) enum Provider {
    /// Any service with OpenAI's chat completions.
    OpenAi,
    Anthropic,
    Gemini,
    Ollama,
    /// Another one that genai knows.
    Other(AdapterKind),
}

impl Provider {
    /// Reads `provider::name`.
    pub(in crate::model) fn of(model: &str) -> Result<Self, ModelError> {
        let Some((provider, name)) = model.split_once(BETWEEN) else {
            return Err(spelling(
                format!("the model `{model}` does not say whose it is"),
                format!("write `{}`", suggestion(model)),
            ));
        };
        if name.is_empty() {
            return Err(spelling(
                format!("the model `{model}` has no name"),
                format!("write the model's name after `{provider}::`, such as `openai::gpt-5`"),
            ));
        }
        match AdapterKind::from_lower_str(provider) {
            Some(AdapterKind::OpenAI) => Ok(Self::OpenAi),
            Some(AdapterKind::Anthropic) => Ok(Self::Anthropic),
            Some(AdapterKind::Gemini) => Ok(Self::Gemini),
            Some(AdapterKind::Ollama) => Ok(Self::Ollama),
            Some(other) => Ok(Self::Other(other)),
            None => Err(spelling(
                format!("there is no provider `{provider}` (of the model `{model}`)"),
                match nearest(provider, AdapterKind::all().iter().map(AdapterKind::as_lower_str)) {
                    Some(known) => format!("write `{known}{BETWEEN}{name}`"),
                    None => format!(
                        "for a service that speaks OpenAI's format write `openai{BETWEEN}{name}` \
                         and its address as `base_url`"
                    ),
                },
            )),
        }
    }

    pub(in crate::model) fn adapter(self) -> AdapterKind {
        match self {
            Self::OpenAi => AdapterKind::OpenAI,
            Self::Anthropic => AdapterKind::Anthropic,
            Self::Gemini => AdapterKind::Gemini,
            Self::Ollama => AdapterKind::Ollama,
            Self::Other(kind) => kind,
        }
    }

    /// The path of the service where its address has none.
    pub(super) fn usual_path(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Anthropic => "/v1/",
            Self::Gemini => "/v1beta/",
            Self::Ollama | Self::Other(_) => "/",
        }
    }

    /// The end of an address that people may have copied with it.
    pub(super) fn endpoint_path(self) -> &'static str {
        match self {
            Self::OpenAi => "chat/completions",
            Self::Anthropic => "messages",
            Self::Ollama => "api/chat",
            Self::Gemini | Self::Other(_) => "",
        }
    }

    /// The framing of the provider's streams.
    pub(super) fn framing(self) -> Framing {
        match self {
            Self::Ollama
            | Self::Other(
                AdapterKind::OllamaCloud | AdapterKind::Cohere | AdapterKind::BedrockApi,
            ) => Framing::Lines,
            Self::OpenAi | Self::Anthropic | Self::Gemini | Self::Other(_) => Framing::Events,
        }
    }

    /// The media type under which the provider accepts this image. An unsupported one would fail
    /// every later request of the conversation as well.
    pub(super) fn image_type(self, mime_type: &str) -> Option<&'static str> {
        let known = match essence(mime_type).as_str() {
            "image/png" => "image/png",
            "image/jpeg" | "image/jpg" => "image/jpeg",
            "image/webp" => "image/webp",
            "image/gif" if self != Self::Gemini => "image/gif",
            "image/heic" if self == Self::Gemini => "image/heic",
            "image/heif" if self == Self::Gemini => "image/heif",
            _ => return None,
        };
        Some(known)
    }

    /// The media type for audio. `wanted` is the setting; `None` if the provider decides.
    pub(super) fn audio_type(self, mime_type: &str, wanted: Option<bool>) -> Option<&'static str> {
        let wav_or_mp3 = match essence(mime_type).as_str() {
            "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some("audio/wav"),
            "audio/mp3" | "audio/mpeg" => Some("audio/mp3"),
            _ => None,
        };
        match self {
            Self::Gemini if wanted != Some(false) => {
                wav_or_mp3.or_else(|| match essence(mime_type).as_str() {
                    "audio/aac" => Some("audio/aac"),
                    "audio/aiff" => Some("audio/aiff"),
                    "audio/flac" => Some("audio/flac"),
                    "audio/ogg" => Some("audio/ogg"),
                    _ => None,
                })
            }
            Self::OpenAi | Self::Other(_) if wanted == Some(true) => wav_or_mp3,
            Self::OpenAi | Self::Other(_) | Self::Gemini | Self::Anthropic | Self::Ollama => None,
        }
    }
}

/// A media type without its parameters.
fn essence(mime_type: &str) -> String {
    mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn spelling(message: String, remedy: String) -> ModelError {
    ModelError { kind: ModelFailure::Setup, message, remedy: Some(remedy) }
}

/// The likely intended name. Genai treats an unknown name as a model of Ollama.
fn suggestion(model: &str) -> String {
    // One colon, or a slash as other tools have it.
    if let Some((provider, name)) = model.split_once([':', '/'])
        && AdapterKind::from_lower_str(provider).is_some()
    {
        let name = if name.is_empty() { "NAME" } else { name };
        return format!("{provider}{BETWEEN}{name}");
    }
    let provider = match AdapterKind::from_model(model) {
        Ok(AdapterKind::OpenAI | AdapterKind::OpenAIResp) => "openai",
        Ok(AdapterKind::Ollama) | Err(_) => {
            return format!("openai{BETWEEN}{model}` or `ollama{BETWEEN}{model}");
        }
        Ok(other) => other.as_lower_str(),
    };
    format!("{provider}{BETWEEN}{model}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_spelled_with_its_provider() {
        assert_eq!(Provider::of("openai::gpt-5").unwrap(), Provider::OpenAi);
        assert_eq!(Provider::of("ollama::qwen3:8b").unwrap(), Provider::Ollama);
        assert_eq!(Provider::of("groq::a").unwrap(), Provider::Other(AdapterKind::Groq));
        for (model, remedy) in [
            ("gpt-5", "write `openai::gpt-5`"),
            ("claude-opus-4-5", "write `anthropic::claude-opus-4-5`"),
            ("gemini-3-pro", "write `gemini::gemini-3-pro`"),
            ("openai:gpt-5", "write `openai::gpt-5`"),
            ("anthropic/claude-opus-4-5", "write `anthropic::claude-opus-4-5`"),
            ("ollama:", "write `ollama::NAME`"),
            ("qwen3:8b", "write `openai::qwen3:8b` or `ollama::qwen3:8b`"),
            ("llama3", "write `openai::llama3` or `ollama::llama3`"),
            ("antropic::claude", "write `anthropic::claude`"),
        ] {
            let error = Provider::of(model).unwrap_err();
            assert_eq!((error.kind, error.remedy.as_deref()), (ModelFailure::Setup, Some(remedy)));
        }
        Provider::of("openai::").unwrap_err();
        Provider::of("::x").unwrap_err();
    }

    #[test]
    fn a_kind_that_a_provider_cannot_take_is_known() {
        assert_eq!(Provider::OpenAi.image_type("image/JPG; q=1"), Some("image/jpeg"));
        assert_eq!(Provider::OpenAi.image_type("image/svg+xml"), None);
        assert_eq!(Provider::OpenAi.audio_type("audio/x-wav", None), None);
        assert_eq!(Provider::OpenAi.audio_type("audio/x-wav", Some(true)), Some("audio/wav"));
        assert_eq!(Provider::Gemini.audio_type("audio/ogg", None), Some("audio/ogg"));
        assert_eq!(Provider::Gemini.audio_type("audio/ogg", Some(false)), None);
        assert_eq!(Provider::Anthropic.audio_type("audio/wav", Some(true)), None);
    }
}
