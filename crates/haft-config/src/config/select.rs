//! Settings of tool selection.

use std::time::Duration;

use super::model::Setting;
use super::secret::{Secret, ServerUrl};

/// Settings of tool selection.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectConfig {
    /// A service that knows meanings better than the table in the binary.
    pub embeddings: Option<EmbeddingsConfig>,
}

impl EmbeddingsConfig {
    /// Values that must not be shown.
    pub fn secrets(&self) -> Vec<String> {
        let key = self.api_key.iter().map(|key| key.value.expose().to_owned());
        self.url.value.secrets().into_iter().chain(key).collect()
    }
}

/// An OpenAI-compatible service of embeddings.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingsConfig {
    /// Its address, such as `https://api.openai.com/v1`.
    pub url: Setting<ServerUrl>,
    /// The model to request.
    pub model: Setting<String>,
    /// Sent as `Authorization: Bearer`.
    pub api_key: Option<Setting<Secret>>,
    /// Time limit of one request.
    pub timeout: Setting<Duration>,
}
